"""The report as GitHub markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Collection

from hlofuse.format.page import as_markdown
from hlofuse.reports.diff.model import Summary
from hlofuse.reports.diff.phrases import ALL
from hlofuse.reports.diff.text import draw


def to_markdown(summary: Summary, *, limit: int = 20, only: Collection[str] = ALL) -> str:
    """The report; `limit` bounds each list, 0 is no bound."""
    return as_markdown(lambda page: draw(summary, page, limit=limit, only=only))
