"""`timeline --format markdown`."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import bytes_text, plural
from hlofuse.reports.common.phrases import loops_line
from hlofuse.reports.timeline import phrases
from hlofuse.reports.timeline.dumps import Reel
from hlofuse.reports.timeline.model import Film, Step


def reels_markdown(found: Sequence[Reel]) -> str:
    """The modules of a directory, the largest first."""
    rows = [
        [markdown_code(r.label), f"{len(r.frames):,}", bytes_text(r.size)]
        for r in sorted(found, key=lambda r: -r.size)
    ]
    return f"## {plural(len(found), 'module')}\n\n" + table(["module", "dumps", "first dump"], rows, (1, 2))


def film_markdown(film: Film, *, limit: int = 5, every: bool = False) -> str:
    """A film as a markdown document."""
    out = [f"## {markdown(phrases.headline(film))}\n"]
    if film.first is not None and film.last is not None:
        out.append(f"{markdown(phrases.sizes_text(film.first, film.last))}\n")
        if film.last.loops:
            out.append(f"{markdown(loops_line(film.last.loops))}\n")
    out += [f"> {markdown(note)}\n" for note in film.notes]
    if film.times:
        out.append(f"No times: {markdown(film.times)}.\n")
    if limit and len(film.changed) > limit:
        out += ["### Largest changes\n", _steps(film, film.largest[:limit])]
    shown = film.steps if every else [s for s in film.steps if s.changed or s.problem]
    if shown:
        out += ["### In order\n", _steps(film, shown)]
    if film.seconds is not None:
        out.append(f"{phrases.TIMES_NOTE}\n")
    return "\n".join(out)


def _steps(film: Film, steps: Sequence[Step]) -> str:
    timed = film.seconds is not None
    rows = []
    for s in steps:
        b, a = s.before, s.after
        rows.append(
            [
                "" if s.frame.number is None else f"{s.frame.number:04d}",
                markdown_code(phrases.pass_name(s.frame)),
                markdown(s.frame.pipeline),
                phrases.count_text(b.instructions if b else None, a.instructions) if a else "",
                phrases.count_text(b.kernels if b else None, a.kernels) if a else "",
                *([phrases.seconds_text(s.seconds) if s.seconds is not None else ""] if timed else []),
                markdown(phrases.what(s)),
            ]
        )
    time = ["time"] if timed else []
    heads = ["dump", "pass", "pipeline", "instructions", "kernels", *time, "what it did"]
    return table(heads, rows, right=(0, 3, 4, 5) if timed else (0, 3, 4))
