"""The head of a what-if report for the terminal: that it is one, and what it changes."""

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import Rows, print_more
from hlofuse.reports.difference.model import ChangedEdge, Difference
from hlofuse.reports.difference.phrases import FUSED_HEADING, PARTED_HEADING, difference_lines, edge_line


def print_difference(d: Difference, console: Console, *, limit: int = 10) -> None:
    """The warning, the figures, and up to `limit` edges each way (0: all)."""
    first, *rest = difference_lines(d)
    console.print(Text(first, style="bold yellow"))
    for line in rest:
        console.print(Text(line))
    for heading, edges in ((FUSED_HEADING, d.fused), (PARTED_HEADING, d.parted)):
        if edges:
            _print_edges(heading, edges, console, limit)
    console.print()


def _print_edges(heading: str, edges: tuple[ChangedEdge, ...], console: Console, limit: int) -> None:
    shown = edges[: limit or None]
    rows = Rows((heading, "left"), ("", "left"), drop=(1,))
    for e in shown:
        rows.add_row(Text(edge_line(e)), Text(printable(e.consumer.source or ""), style="dim"))
    rows.print(console)
    print_more(console, len(edges) - len(shown))
