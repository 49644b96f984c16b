"""`trace-op --format markdown`."""

from __future__ import annotations

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import plural
from hlofuse.reports.timeline.phrases import pass_name
from hlofuse.reports.trace_op import phrases
from hlofuse.reports.trace_op.model import Journey
from hlofuse.reports.trace_op.phrases import dump_number, end_lines, stops_with_text, unreadable_line


def journey_markdown(journey: Journey, *, limit: int = 5) -> str:
    """The same as a markdown document."""
    out = [f"## {markdown(phrases.headline(journey))}\n"]
    if journey.unreadable:
        out.append(f"> {markdown(unreadable_line(journey))}\n")
    for trail in journey.trails[: limit or None]:
        out.append(f"### {markdown(phrases.subject(trail))}\n")
        rows = [
            [dump_number(stop), markdown_code(pass_name(stop.frame)), markdown(text)]
            for stop, text in stops_with_text(trail)
        ]
        out.append(table(["dump", "pass", ""], rows, right=(0,)))
        out += [f"{markdown(end)}\n" for end in end_lines(trail)]
    hidden = len(journey.trails) - limit
    if limit and hidden > 0:
        out.append(f"and {plural(hidden, 'more operation')}\n")
    return "\n".join(out)
