"""`explain --compare-device` for the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import plain_table, print_more
from hlofuse.format.units import bytes_text, listing, plural, us_text
from hlofuse.ir.grouping import grouped
from hlofuse.reports.common.costs import number_text, worth_text
from hlofuse.reports.compare_builds.model import Comparison, FlippedEdge, Side
from hlofuse.reports.difference.phrases import warning_line


def by_kernels(flipped: Sequence[FlippedEdge]) -> list[list[FlippedEdge]]:
    """Edges that come apart cause the same two kernels, together."""
    kernels = (((e.unfused_on, *(e.kernels or (e.producer.name, e.consumer.name))), e) for e in flipped)
    return list(grouped(kernels).values())


def beginning_lines(c: Comparison, most: int = 3) -> list[str]:
    """Whether each device ran its own passes before fusion, and what these leave on one device only."""
    first, second = (printable(s.label) for s in c.sides)
    if not c.from_program:
        own = f"differences from {second}'s own passes before fusion are not included"
        return [
            f"Both replays start at the fusion input of {first}: {own}.",
            "Give the module before optimizations to include them.",
        ]
    lines = []
    for device, places in zip((first, second), c.alone, strict=True):
        if places:
            names = listing([f"{printable(p.name)} ({p.opcode})" for p in places], most)
            count = plural(len(places), "operation")
            lines.append(f"The passes before fusion leave {count} on {device} only: {names}.")
    return lines


def side_figures(s: Side) -> tuple[str, str, str]:
    """Kernels, bytes and time, before → after."""
    time = f"{us_text(s.before.us)} → {us_text(s.after.us)}" if s.before.us and s.after.us else ""
    moved = f"{bytes_text(s.before.cost.bytes_accessed)} → {bytes_text(s.after.cost.bytes_accessed)}"
    return f"{s.before.kernels:,} → {s.after.kernels:,}", moved, time


def edge_phrases(e: FlippedEdge) -> list[str]:
    """Why the two stay apart where they do, and which number of the device makes the difference."""
    out = []
    between = ""
    if e.kernels is not None and e.kernels != (e.producer.name, e.consumer.name):
        between = f" {printable(e.kernels[0])} → {printable(e.kernels[1])}:"
    if e.answer is not None:
        settled = e.answer.settled_by
        if settled is not None and settled.event == "ineligible":
            out.append(
                f"on {printable(e.unfused_on)}:{between} {settled.rule.code},"
                f" {printable(settled.reason or settled.rule.title)}"
            )
        elif e.answer.cost is not None:
            out.append(f"on {printable(e.unfused_on)}:{between} {worth_text(e.answer.cost)}")
    for name, own, other_value in e.terms[:3]:
        out.append(
            f"{name} alone changes that: {number_text(name, own)} on {printable(e.unfused_on)},"
            f" {number_text(name, other_value)} on {printable(e.fused_on)}"
        )
    if not out:
        out.append("earlier decisions about neighbouring operations cause it")
    elif not e.terms and not e.between_releases:
        out.append("no single device number changes that; several together do")
    return out


_EDGES = 4  # named of those between the same two kernels


def print_comparison(c: Comparison, console: Console, *, limit: int = 10) -> None:
    """Both results in figures, then what is decided differently and why."""
    names = " and ".join(printable(s.label) for s in c.sides)
    xla = "" if c.what_if else f", {c.release}"
    console.print(Text(f"{printable(c.module)} on {names}{xla}", style="bold"))
    if c.what_if:
        console.print(Text(warning_line(c.what_if), style="bold yellow"))
    table = plain_table(("", "left"), ("kernels", "left"), ("moved", "left"), ("est. time", "left"))
    for s in c.sides:
        table.add_row(Text(printable(s.label)), *map(Text, side_figures(s)))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
    for line in beginning_lines(c):
        console.print(Text(line))
    if not c.flipped:
        console.print(Text(f"Both decide every edge {'that both have ' if any(c.alone) else ''}the same."))
        return
    print_flipped(c, console, limit=limit)


def print_flipped(c: Comparison, console: Console, *, limit: int = 10) -> None:
    """Print the changed decisions, by the kernels that they separate."""
    groups = by_kernels(c.flipped)
    console.print(Text(f"{plural(len(c.flipped), 'edge')} decided differently", style="bold cyan"))
    for edges in groups[: limit or None]:
        _print_edges(edges, console)
    print_more(console, sum(map(len, groups[limit:])) if limit else 0)


def _print_edges(edges: Sequence[FlippedEdge], console: Console) -> None:
    first = edges[0]
    for e in edges[:_EDGES]:
        line = Text(f"{printable(e.producer.name)} → {printable(e.consumer.name)}", style="bold")
        if e is first:
            where = f"  fused on {printable(e.fused_on)}, not fused on {printable(e.unfused_on)}"
            line.append(where, style="not bold")
        if e.producer.source:
            line.append(f"  {printable(e.producer.source)}", style="not bold dim")
        console.print(Padding(line, (0, 0, 0, 2)))
    if len(edges) > _EDGES:
        more = Text(f"… {len(edges) - _EDGES:,} more between the same two", style="dim")
        console.print(Padding(more, (0, 0, 0, 2)))
    for text in edge_phrases(first):
        console.print(Padding(Text(text), (0, 0, 0, 6)))
