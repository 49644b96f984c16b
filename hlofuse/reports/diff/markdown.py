"""The report for a pull request."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import plural
from hlofuse.reports.diff import phrases
from hlofuse.reports.diff.clusters import Cluster
from hlofuse.reports.diff.model import ChangeGroup, FusionGroup, SourceLine, Summary
from hlofuse.reports.diff.phrases import ALL, figure_pairs, limited, loop_notes, verdict


def to_markdown(summary: Summary, *, limit: int = 20, only: Collection[str] = ALL) -> str:
    """The report as GitHub markdown; `limit` bounds each table, 0 is no bound."""
    s, diff = summary, summary.diff
    parts = [f"**{markdown(verdict(diff))}**\n"]
    rows = [[_label(label), figure] for label, figure in figure_pairs(s)]
    parts.append(table(["", ""], rows, right=[1]))
    parts += [f"{markdown(note)}\n" for note in loop_notes(summary.accounts)]
    if "fusions" in only and s.fusions:
        parts.append(f"### Fusions ({diff.fusions_unchanged} unchanged)\n")
        parts += _table(
            ["", "fusions", "inside", "bytes" if s.accounts.devices is None else "bytes, time"],
            [_fusion(s, g) for g in s.fusions],
            limit,
        )
    if "sources" in only and s.sources:
        parts.append("### Kernels by source line\n")
        lines = [
            [
                markdown_code(phrases.line_shown(line)),
                phrases.count_change_of(line.kernels_before, line.kernels_after),
                phrases.change_of(line.bytes_before, line.bytes_after, "B"),
                *(_time(line) if s.accounts.devices is not None else []),
            ]
            for line in s.sources
        ]
        timed = ["estimated time"] if s.accounts.devices is not None else []
        parts += _table(["line", "kernels", "bytes moved", *timed], lines, limit)
    if "sources" in only and s.moved_lines:
        parts.append(f"{markdown(phrases.moved_lines_note(s.moved_lines))}\n")
    if "instructions" in only and diff.edits:
        parts.append(f"### Instructions ({plural(len(diff.causes), 'change')})\n")
        rows = [_cluster(g) for g in s.clusters] + [_changed(g) for g in s.changes]
        for g in s.moved:
            where = markdown(f"from {g.source} to {g.destination}")
            rows.append(["moved", markdown(phrases.names(g.members)), where])
        parts += _table(["", "instructions", "what"], rows, limit)
        if s.following:
            parts.append(f"And {plural(s.following, 'change')} that only follow from these.\n")
    if "header" in only and diff.header:
        parts.append("### Module header\n")
        parts.append("".join(f"- {markdown(phrases.detail(d))}\n" for d in diff.header))
    return "\n".join(parts)


def _table(header: list[str], rows: list[list[str]], limit: int) -> Iterable[str]:
    shown, rest = limited(rows, limit)
    yield table(header, shown)
    if rest:
        yield f"… and {rest:,} more.\n"


def _fusion(summary: Summary, group: FusionGroup) -> list[str]:
    change = group.first
    side = summary.diff.after if change.after else summary.diff.before
    lines = phrases.inside(change)
    place = phrases.sources(side.module, change.members)
    return [
        phrases.times(change.kind, len(group.changes)),
        markdown(phrases.what_happened(change)),
        "<br>".join(markdown(line) for line in [*lines, *([place] if place else [])]),
        phrases.saved(change, summary.accounts),
    ]


def _cluster(group: tuple[Cluster, ...]) -> list[str]:
    first = group[0]
    what = phrases.what_is_in(first) + (f" ({first.note})" if first.note else "")
    return [
        phrases.times(first.kind, len(group)),
        markdown(phrases.who_is_in(first)),
        markdown(what),
    ]


def _changed(group: ChangeGroup) -> list[str]:
    members = [c.after[0].instruction for c in group.changes]
    return [
        phrases.times("changed", len(members)),
        markdown(phrases.names(members)),
        "<br>".join(markdown(phrases.detail(d)) for d in group.details),
    ]


def _label(text: str) -> str:
    return markdown("bytes moved" if text == "bytes" else text.rstrip(":"))


def _time(line: SourceLine) -> list[str]:
    return [phrases.time_change_of(*line.us) if line.us else ""]
