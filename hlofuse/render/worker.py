"""`python -m hlofuse.render.worker -Tsvg [-Knop2] [-Gname=value]…`: `dot`, by pygraphviz."""

import sys


def main(arguments: list[str]) -> None:
    """Read DOT from standard input, write the picture to standard output."""
    import pygraphviz

    graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode())
    fmt, prog = "svg", "dot"
    for argument in arguments:
        if argument.startswith("-T"):
            fmt = argument[2:]
        elif argument.startswith("-K"):
            prog = argument[2:]
        elif argument.startswith("-G"):
            name, _, value = argument[2:].partition("=")
            graph.graph_attr[name] = value
    sys.stdout.buffer.write(graph.draw(format=fmt, prog=prog))


if __name__ == "__main__":
    main(sys.argv[1:])
