"""`trace-op` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable, shorten
from hlofuse.format.terminal import indented, plain_table, print_more
from hlofuse.reports.timeline.phrases import pass_name
from hlofuse.reports.trace_op import phrases
from hlofuse.reports.trace_op.model import Provenance
from hlofuse.reports.trace_op.phrases import dump_number, end_lines, events_with_text, unreadable_line


def print_provenance(provenance: Provenance, console: Console, *, limit: int = 5) -> None:
    """Each operation: its stops, then the kernel it ends in."""
    console.print(Text(printable(phrases.headline(provenance)), style="bold"))
    if provenance.unreadable:
        console.print(Text(unreadable_line(provenance), style="yellow"))
    for trail in provenance.trails[: limit or None]:
        console.print()
        console.print(Text(printable(phrases.trail_title(trail)), style="bold"))
        rows = plain_table(("", "right"), ("", "left"), ("", "left"))
        for event, text in events_with_text(trail):
            name = Text(shorten(pass_name(event.dump), max(36, console.width // 8)))
            rows.add_row(Text(dump_number(event), style="dim"), name, Text(printable(text)))
        indented(console, rows)
        for end in end_lines(trail):
            indented(console, Text(printable(end), style="green" if trail.ends else "dim"))
    hidden = len(provenance.trails) - limit
    if limit and hidden > 0:
        console.print()
        print_more(console, hidden, "operation", indent=0)
