"""`hlofuse upgrade` as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.markdown import markdown, table
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


def upgrade_markdown(found: Sequence[Upgrade], old: str, new: str, *, limit: int = 10) -> str:
    """The table of modules, worst first, and what makes the difference in each that differs."""
    parts = []
    if len(found) > 1:
        parts += [f"**{markdown(summary(found, old, new))}**\n"]
        rows = [[markdown(cell) for cell in row(f)] for f in found[: limit or None]]
        parts += [table(HEADINGS, rows)]
    for f in [f for f in found if len(found) == 1 or not f.same][: limit or None]:
        parts += [f"### {markdown(f.name)}\n\n{markdown(headline(f, old, new))}\n"]
        parts += [markdown(line) + "\n" for line in (compiled_line(f), unexplained(f)) if line]
        parts += [f"- {markdown('; '.join(cause_phrases(cause, f)))}" for cause in f.causes]
    return "\n".join(parts) + "\n"
