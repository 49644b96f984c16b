"""`verify --format markdown`."""

from __future__ import annotations

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import plural
from hlofuse.reports.verify.model import Report
from hlofuse.reports.verify.phrases import (
    final_lines,
    release_line,
    sides,
    summary_rows,
    undumped_line,
    verdict_word,
)


def report_markdown(report: Report, *, limit: int = 10) -> str:
    """The report as a markdown document."""
    compared = len(report.compared)
    out = [
        f"## {report.exact} of {plural(compared, 'module')} exact on target {markdown(report.target)}\n",
        table(("compared", "agree"), summary_rows(report)),
    ]
    if line := release_line(report):
        out.append(f"{markdown(line)}\n")
    if undumped := undumped_line(report):
        out.append(f"{markdown(undumped)}\n")
    bad = [v for v in report.verdicts if verdict_word(v) != "exact"]
    for v in bad[: limit or None]:
        out.append(f"### {markdown_code(v.name)} {verdict_word(v)}\n")
        if v.note:
            out.append(f"{markdown(v.note)}\n")
        if v.error is not None:
            out.append(f"{markdown(v.error.replace(chr(10), ' '))}\n")
        out += [f"- {markdown(line)}" for line in final_lines(v)]
        if v.error is None and v.difference is not None:
            actual, xla = sides(v.difference.ours, v.difference.xla)
            out.append(f"- XLA: {markdown_code(xla)}")
            out.append(f"- ours: {markdown_code(actual)}\n")
    if limit and len(bad) > limit:
        out.append(f"and {len(bad) - limit} more\n")
    return "\n".join(out)
