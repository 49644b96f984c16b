"""The head of a what-if report as markdown."""

from __future__ import annotations

from hlofuse.format.escape import printable
from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.reports.difference.model import Difference
from hlofuse.reports.difference.phrases import FUSED_HEADING, PARTED_HEADING, difference_lines, edge_line


def difference_markdown(d: Difference, *, limit: int = 10) -> str:
    """The same as the head of a markdown document."""
    first, *rest = difference_lines(d)
    out = [f"> **{markdown(first)}**"]
    out += [f"> {markdown(printable(line))}  " for line in rest]
    out.append("")
    rows = [
        (heading, markdown_code(edge_line(e)), markdown(e.consumer.source or ""))
        for heading, edges in ((FUSED_HEADING, d.fused), (PARTED_HEADING, d.parted))
        for e in edges[: limit or None]
    ]
    if rows:
        out.append(table(("", "edge", "source"), rows))
    return "\n".join(out) + "\n"
