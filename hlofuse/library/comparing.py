"""Two modules compared as they are."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hlofuse.library.answer import Answer
from hlofuse.library.listener import Listener
from hlofuse.library.side_by_side import SECTIONS, accounts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from hlofuse.diff import ModuleDiff
    from hlofuse.diff.accounts import Accounts
    from hlofuse.ir.graph import Module


def compared(
    before: Module,
    after: Module,
    *,
    devices: tuple[str | None, str | None] = (None, None),
    releases: tuple[str | None, str | None] = (None, None),
    metadata: bool = False,
    listener: Listener,
) -> Answer[ModuleDiff]:
    """What AFTER does differently; times where devices are given or lie beside the modules."""
    from hlofuse.diff import diff
    from hlofuse.inputs.identity import identify_file
    from hlofuse.reports.common.head import Head, head_lines
    from hlofuse.reports.diff.json import as_dict
    from hlofuse.reports.diff.model import summarize
    from hlofuse.reports.diff.text import draw as draw_summary

    with listener.activity("comparing"):
        found = diff(before, after, metadata=metadata)

    @cache
    def accounts() -> Accounts:
        return accounts_of(found, device=devices[0], device_after=devices[1], releases=releases)

    heads = [Head(identify_file(m, xla)) for m, xla in zip((before, after), releases, strict=True)]

    def draw(console: Console, limit: int = 20, only: Sequence[str] = SECTIONS) -> None:
        for line in head_lines(heads):
            console.print(line, style="dim")
        draw_summary(summarize(found, accounts()), console, limit=limit, only=only)

    return Answer(
        "difference",
        lambda: found,
        json=lambda data: as_dict(data, accounts()),
        body=draw,
        rows_of=lambda document: document["fusions"],
        entries_of=lambda data: data.fusions,
        heads=heads,
        prints_heads=True,
    )
