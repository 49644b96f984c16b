"""`timeline --format markdown`."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import bytes_text, plural
from hlofuse.reports.common.phrases import loops_line
from hlofuse.reports.timeline import phrases
from hlofuse.reports.timeline.dumps import DumpSequence
from hlofuse.reports.timeline.model import PassTimeline, Step


def sequences_markdown(found: Sequence[DumpSequence]) -> str:
    """The modules of a directory, the largest first."""
    rows = [
        [markdown_code(r.label), f"{len(r.dumps):,}", bytes_text(r.size)]
        for r in sorted(found, key=lambda r: -r.size)
    ]
    return f"## {plural(len(found), 'module')}\n\n" + table(["module", "dumps", "first dump"], rows, (1, 2))


def timeline_markdown(timeline: PassTimeline, *, limit: int = 5, every: bool = False) -> str:
    """A film as a markdown document."""
    out = [f"## {markdown(phrases.headline(timeline))}\n"]
    if timeline.first is not None and timeline.last is not None:
        out.append(f"{markdown(phrases.sizes_text(timeline.first, timeline.last))}\n")
        if timeline.last.loops:
            out.append(f"{markdown(loops_line(timeline.last.loops))}\n")
    out += [f"> {markdown(note)}\n" for note in timeline.notes]
    if timeline.times:
        out.append(f"No times: {markdown(timeline.times)}.\n")
    if limit and len(timeline.changed) > limit:
        out += ["### Largest changes\n", _steps(timeline, timeline.largest[:limit])]
    shown = timeline.steps if every else [s for s in timeline.steps if s.changed or s.problem]
    if shown:
        out += ["### In order\n", _steps(timeline, shown)]
    if timeline.seconds is not None:
        out.append(f"{phrases.TIMES_NOTE}\n")
    return "\n".join(out)


def _steps(timeline: PassTimeline, steps: Sequence[Step]) -> str:
    timed = timeline.seconds is not None
    rows = []
    for s in steps:
        b, a = s.before, s.after
        rows.append(
            [
                "" if s.dump.number is None else f"{s.dump.number:04d}",
                markdown_code(phrases.pass_name(s.dump)),
                markdown(s.dump.pipeline),
                phrases.count_text(b.instructions if b else None, a.instructions) if a else "",
                phrases.count_text(b.kernels if b else None, a.kernels) if a else "",
                *([phrases.seconds_text(s.seconds) if s.seconds is not None else ""] if timed else []),
                markdown(phrases.what(s)),
            ]
        )
    time = ["time"] if timed else []
    heads = ["dump", "pass", "pipeline", "instructions", "kernels", *time, "what it did"]
    return table(heads, rows, right=(0, 3, 4, 5) if timed else (0, 3, 4))
