"""What became of many modules, as one page."""

from __future__ import annotations

from hlofuse.diff.batch import BatchDiff
from hlofuse.diff.report.batch import cells_of, changed, heads, notes, totals, verdict
from hlofuse.diff.report.phrases import ARROW
from hlofuse.format.html import esc, figures, page, table


def to_html(found: BatchDiff, titles: tuple[str, str]) -> str:
    """All rows: what changed most comes first."""
    said = verdict(found)
    body = [
        f"<h1>{esc(said)}</h1>",
        f"<p class=faint>{esc(titles[0])} {ARROW} {esc(titles[1])}</p>",
        figures(totals(found)),
    ]
    rows = changed(found)
    if rows:
        timed = any(m.us is not None for m in rows)
        columns = heads(timed)
        right = range(1, len(columns) - 1)
        cells = [[esc(cell) for cell in cells_of(m, timed)] for m in rows]
        body += ["<h2>What changed</h2>", table(columns, cells, right)]
    same = [m.name for m in found.compared if m.same]
    if same:
        body.append(f"<h2>The same</h2><p>{esc(', '.join(same))}</p>")
    body += [f"<p class=note>{esc(note)}</p>" for note in notes(found)]
    return page(said, body)
