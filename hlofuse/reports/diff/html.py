"""The report as one page to open, keep or attach; with the picture of both sides where there is one."""

from collections.abc import Collection, Iterator, Sequence

from hlofuse.diff.model import FusionKind
from hlofuse.format.html import esc, figures, inline_svg, page, table
from hlofuse.format.units import plural
from hlofuse.reports.diff import phrases
from hlofuse.reports.diff.clusters import Cluster
from hlofuse.reports.diff.model import ChangeGroup, FusionGroup, Summary
from hlofuse.reports.diff.phrases import ALL, ARROW, figure_pairs, limited, loop_notes, verdict

TONES = {
    FusionKind.SPLIT: "bad",
    FusionKind.VANISHED: "bad",
    FusionKind.MERGED: "good",
    FusionKind.NEW: "good",
    FusionKind.GROWN: "good",
}


def to_html(
    summary: Summary, *, limit: int = 20, only: Collection[str] = ALL, picture: str | None = None
) -> str:
    """The whole page; `limit` bounds each table, 0 is no bound. `picture` is an SVG of our own."""
    text = verdict(summary.diff)
    return page(text, _body(summary, text, limit, only, picture))


def _body(s: Summary, text: str, limit: int, only: Collection[str], picture: str | None) -> Iterator[str]:
    diff = s.diff
    yield f"<h1>{esc(text)}</h1>"
    files = [side.module.filename or side.module.name for side in (diff.before, diff.after)]
    yield f"<p class=faint>{esc(files[0])} {ARROW} {esc(files[1])}</p>"
    yield figures(figure_pairs(s))
    yield from (f"<p class=faint>{esc(note)}</p>" for note in loop_notes(s.accounts))
    if "fusions" in only and s.fusions:
        yield f"<h2>Fusions <small>{diff.fusions_unchanged} unchanged</small></h2>"
        head = ["", "fusions", "inside", "bytes" if s.accounts.devices is None else "bytes, time"]
        yield from _table(head, [_fusion(s, g) for g in s.fusions], limit, right=[3])
    if picture is not None:
        yield "<details open><summary>Side by side, numbered by AFTER's kernels</summary>"
        yield inline_svg(picture) + "</details>"
    if "sources" in only and s.sources:
        yield "<h2>Kernels by source line</h2>"
        timed = ["estimated time"] if s.accounts.devices is not None else []
        rows = [
            [
                esc(phrases.line_shown(line)),
                phrases.count_change_of(line.kernels_before, line.kernels_after),
                phrases.change_of(line.bytes_before, line.bytes_after, "B"),
                *([phrases.time_change_of(*line.us) if line.us is not None else ""] if timed else []),
            ]
            for line in s.sources
        ]
        yield from _table(["line", "kernels", "bytes moved", *timed], rows, limit, right=[1, 2, 3])
    if "sources" in only and s.moved_lines:
        yield f"<p>{esc(phrases.moved_lines_note(s.moved_lines))}</p>"
    if "instructions" in only and diff.edits:
        yield f"<h2>Instructions <small>{plural(len(diff.causes), 'change')}</small></h2>"
        rows = [_cluster(g) for g in s.clusters] + [_changed(g) for g in s.changes]
        for g in s.moved:
            where = f"from {g.source} to {g.destination}"
            rows.append([_kind("moved", "note"), esc(phrases.names(g.members)), esc(where)])
        yield from _table(["", "instructions", "what"], rows, limit)
        if s.following:
            yield f"<p class=faint>and {plural(s.following, 'change')} that follow from these</p>"
    if "header" in only and diff.header:
        yield "<h2>Module header</h2>"
        yield "<ul>" + "".join(f"<li>{esc(phrases.detail(d))}</li>" for d in diff.header) + "</ul>"


def _table(header: list[str], rows: list[list[str]], limit: int, right: Sequence[int] = ()) -> Iterator[str]:
    shown, rest = limited(rows, limit)
    yield table(header, shown, right)
    if rest:
        yield f"<details><summary>{rest:,} more</summary>{table(header, rows[limit:], right)}</details>"


def _fusion(s: Summary, group: FusionGroup) -> list[str]:
    change = group.first
    side = s.diff.after if change.after else s.diff.before
    place = phrases.sources(side.module, change.members)
    lines = [*phrases.inside(change), *([place] if place else [])]
    return [
        _kind(phrases.times(change.kind, len(group.changes)), TONES.get(change.kind, "note")),
        esc(phrases.what_happened(change)),
        "<br>".join(f"<span class=faint>{esc(line)}</span>" for line in lines),
        esc(phrases.saved(change, s.accounts)),
    ]


def _cluster(group: tuple[Cluster, ...]) -> list[str]:
    first = group[0]
    what = phrases.what_is_in(first) + (f" ({first.note})" if first.note else "")
    tone = {"removed": "bad", "added": "good"}.get(first.kind, "note")
    names = esc(phrases.who_is_in(first))
    return [_kind(phrases.times(first.kind, len(group)), tone), names, esc(what)]


def _changed(group: ChangeGroup) -> list[str]:
    members = [c.after[0].instruction for c in group.changes]
    return [
        _kind(phrases.times("changed", len(members)), "note"),
        esc(phrases.names(members)),
        "<br>".join(esc(phrases.detail(d)) for d in group.details),
    ]


def _kind(text: str, tone: str) -> str:
    return f'<td class="k {tone}">{esc(text)}</td>'
