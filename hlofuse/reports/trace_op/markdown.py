"""`trace-op --format markdown`."""

from __future__ import annotations

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import plural
from hlofuse.reports.timeline.phrases import pass_name
from hlofuse.reports.trace_op import phrases
from hlofuse.reports.trace_op.model import Provenance
from hlofuse.reports.trace_op.phrases import dump_number, end_lines, events_with_text, unreadable_line


def provenance_markdown(provenance: Provenance, *, limit: int = 5) -> str:
    """The same as a markdown document."""
    out = [f"## {markdown(phrases.headline(provenance))}\n"]
    if provenance.unreadable:
        out.append(f"> {markdown(unreadable_line(provenance))}\n")
    for trail in provenance.trails[: limit or None]:
        out.append(f"### {markdown(phrases.trail_title(trail))}\n")
        rows = [
            [dump_number(event), markdown_code(pass_name(event.dump)), markdown(text)]
            for event, text in events_with_text(trail)
        ]
        out.append(table(["dump", "pass", ""], rows, right=(0,)))
        out += [f"{markdown(end)}\n" for end in end_lines(trail)]
    hidden = len(provenance.trails) - limit
    if limit and hidden > 0:
        out.append(f"and {plural(hidden, 'more operation')}\n")
    return "\n".join(out)
