"""`explain --compare-device` for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import plain_table, print_more
from hlofuse.format.units import plural
from hlofuse.reports.compare_builds.model import Comparison, FlippedEdge
from hlofuse.reports.compare_builds.phrases import (
    beginning_lines,
    by_kernels,
    edge_phrases,
    same_line,
    side_figures,
)
from hlofuse.reports.difference.phrases import warning_line

_EDGES = 4  # named of those between the same two kernels


def print_comparison(c: Comparison, console: Console, *, limit: int = 10) -> None:
    """Both results in figures, then what is decided differently and why."""
    names = " and ".join(printable(s.label) for s in c.sides)
    xla = "" if c.what_if else f", as XLA in {c.release}"
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
        console.print(Text(same_line(c)))
        return
    print_flipped(c, console, limit=limit)


def print_flipped(c: Comparison, console: Console, *, limit: int = 10) -> None:
    """What is decided differently, by the kernels that it keeps apart."""
    groups = by_kernels(c.flipped)
    console.print(Text(f"{plural(len(c.flipped), 'edge')} decided differently", style="bold cyan"))
    for edges in groups[: limit or None]:
        _print_edges(edges, console)
    print_more(console, sum(map(len, groups[limit:])) if limit else 0, "edge")


def _print_edges(edges: Sequence[FlippedEdge], console: Console) -> None:
    first = edges[0]
    for e in edges[:_EDGES]:
        line = Text(f"{printable(e.producer.name)} → {printable(e.consumer.name)}", style="bold")
        if e is first:
            where = f"  fused on {printable(e.fused_on)}, apart on {printable(e.unfused_on)}"
            line.append(where, style="not bold")
        if e.producer.source:
            line.append(f"  {printable(e.producer.source)}", style="not bold dim")
        console.print(Padding(line, (0, 0, 0, 2)))
    if len(edges) > _EDGES:
        more = Text(f"and {len(edges) - _EDGES:,} more between the same two", style="dim")
        console.print(Padding(more, (0, 0, 0, 2)))
    for text in edge_phrases(first):
        console.print(Padding(Text(text), (0, 0, 0, 6)))
