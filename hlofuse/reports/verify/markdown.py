"""`verify --format markdown`."""

from __future__ import annotations

from hlofuse.format.page import as_markdown
from hlofuse.reports.verify.model import Report
from hlofuse.reports.verify.text import print_report


def report_markdown(report: Report, *, limit: int = 10) -> str:
    """The report as a markdown document."""
    return as_markdown(lambda page: print_report(report, page, limit=limit))
