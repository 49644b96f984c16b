"""`hlofuse upgrade` for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hlofuse.format.terminal import print_more, print_rows
from hlofuse.reports.compare_builds.text import print_flipped
from hlofuse.reports.upgrade.model import Upgrade
from hlofuse.reports.upgrade.phrases import (
    HEADINGS,
    cause_phrases,
    compiled_line,
    headline,
    row,
    summary,
    unexplained,
)


def print_upgrade(found: Sequence[Upgrade], old: str, new: str, console: Console, *, limit: int = 10) -> None:
    """One module in full; of several a table, worst first, and the first of them in full."""
    if len(found) > 1:
        console.print(Text(summary(found, old, new), style="bold"))
        rows = [[Text(cell) for cell in row(f)] for f in found]
        columns = [
            (heading, "left" if heading in ("module", "because of") else "right") for heading in HEADINGS
        ]
        print_rows(console, columns, rows[: limit or None])
        print_more(console, len(rows[limit:]) if limit else 0, "module")
        console.print()
        found = [f for f in found if not f.same][:1]
    for f in found:
        _print_one(f, old, new, console, limit)


def _print_one(found: Upgrade, old: str, new: str, console: Console, limit: int) -> None:
    console.print(Text(f"{found.name}: {headline(found, old, new)}", style="bold"))
    line = compiled_line(found)
    if line:
        console.print(Text(line))
    if found.same:
        return
    console.print(Text("What makes the difference", style="bold cyan"))
    for cause in found.causes:
        what, alone = cause_phrases(cause, found)
        console.print(Padding(Text(what, style="bold"), (0, 0, 0, 2)))
        console.print(Padding(Text(alone), (0, 0, 0, 6)))
    if unexplained(found):
        console.print(Padding(Text(unexplained(found)), (0, 0, 0, 2)))
    if found.comparison.flipped:
        print_flipped(found.comparison, console, limit=limit)
