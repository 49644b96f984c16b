"""Comparisons of two compilations for the terminal."""

from rich.console import Console
from rich.text import Text

from hlofuse.format import plural, printable
from hlofuse.format.terminal import Rows, indented, print_lines, print_more, print_rest
from .model import Comparison
from .phrases import FUSED_HEADING, PARTED_HEADING, by_kernels, difference_lines, edge_line, edge_phrase


def print_difference(d: Comparison, console: Console, *, limit: int) -> None:
    """The warning, the figures, and up to `limit` edges each way (0: all)."""
    first, *rest = difference_lines(d)
    console.print(first, style="bold yellow")
    print_lines(console, rest, 0)
    for heading, edges in ((FUSED_HEADING, d.fused), (PARTED_HEADING, d.parted)):
        if edges:
            rows = Rows((heading, "left"), "left", drop=(1,))
            for e in edges[: limit or None]:
                rows.add_row(edge_line(e), Text(printable(e.consumer.source or ""), style="dim"))
            rows.print(console)
            print_rest(console, edges, limit)
    console.print()


_EDGES = 4  # named of those between the same two kernels


def print_flipped(c: Comparison, console: Console, *, limit: int) -> None:
    """Print the changed decisions, by the kernels that they separate."""
    groups = by_kernels(c.flipped)
    console.print(f"{plural(len(c.flipped), 'edge')} decided differently", style="bold cyan")
    for edges in groups[: limit or None]:
        first = edges[0]
        for e in edges[:_EDGES]:
            line = Text(edge_line(e), style="bold")
            if e is first:
                where = f"  fused on {printable(e.fused_on)}, not fused on {printable(e.unfused_on)}"
                line.append(where, style="not bold")
            if e.producer.source:
                line.append(f"  {printable(e.producer.source)}", style="not bold dim")
            indented(console, line)
        if len(edges) > _EDGES:
            indented(console, f"… {len(edges) - _EDGES:,} more between the same two", 2, "dim")
        indented(console, edge_phrase(first), 6)
    print_more(console, sum(map(len, groups[limit:])) if limit else 0)
