"""The report for a terminal."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from rich.text import Text

from hlofuse.diff.model import Changed, FusionChange, FusionKind, MeasuredChange
from hlofuse.format import broken, plural, printable, times
from hlofuse.format.terminal import Page, plain_grid
from hlofuse.matching.graph import Matched
from hlofuse.reports.common.functions import changes
from . import phrases
from .model import Cluster, Summary
from .phrases import ALL, figure_pairs, loop_notes, profile_notes, side_notes, verdict

_STYLES = {
    FusionKind.SPLIT: "red",
    FusionKind.VANISHED: "red",
    FusionKind.SHRUNK: "yellow",
    FusionKind.REGROUPED: "yellow",
    FusionKind.CHANGED: "yellow",
    FusionKind.MERGED: "green",
    FusionKind.NEW: "green",
    FusionKind.GROWN: "green",
}
_EDIT_STYLES = {"added": "green", "removed": "red", "replaced": "yellow"}


def draw(summary: Summary, console: Page, *, only: Collection[str] = ALL) -> None:
    """Print the report."""
    _Report(summary, console).draw(only)


class _Row(NamedTuple):
    """A row of a list: lines, of which the first leads, a figure at the right, and a label at the left."""

    lines: list[str]
    figure: str = ""
    label: str = ""
    style: str = ""


class _Report(Struct):
    summary: Summary
    console: Page

    def draw(self, only: Collection[str]) -> None:
        s, diff = self.summary, self.summary.diff
        self._print(verdict(diff), "bold green" if diff.same else "bold")
        for line in broken(" · ".join(map(" ".join, figure_pairs(s))), self.console.width):
            self._print(line)
        for note in (*side_notes(s.accounts), *loop_notes(s.accounts), *profile_notes(s.accounts)):
            self._print(note)
        if "kernels" in only and s.measured:
            self._head("kernels, measured", "slower first; time of one run")
            self._list(self._measured(change) for change in s.measured)
        functions = s.accounts.functions
        if "kernels" in only and (changed := changes(*functions)):
            self._head("functions", functions[0].unit)
            rows = []
            for name, old, new, bounds in changed:
                text = phrases.time_change_of(old, new, bounds=bounds, is_open=any(bounds))
                text = phrases.change_of(old, new, "B") if functions[0].unit == "bytes" else text
                rows.append(_Row([name], text))
            self._list(rows)
        if "fusions" in only and s.fusions:
            self._head("fusions", f"{diff.fusions_unchanged} unchanged")
            self._list(self._fusion(g) for g in s.fusions)
            self._duplicated(s.duplicated, s.duplicated_trivial)
        if "sources" in only and s.sources:
            self._head("kernels by source line")
            self._sources()
        if "sources" in only and s.moved_lines:
            self._print(f"\n{phrases.moved_lines_note(s.moved_lines)}", "dim")
        if "instructions" in only:
            self._instructions()
        if "header" in only and diff.header:
            self._head("module header")
            self._list(_Row([phrases.detail(d)]) for d in diff.header)
        sides = ((diff.before.unreachable, "BEFORE"), (diff.after.unreachable, "AFTER"))
        parts = [f"{plural(n, 'computation')} of {word}" for n, word in sides if n]
        if parts and not diff.same:
            self._print(f"\nnot compared: {' and '.join(parts)}, which have no callers", "dim")

    def _measured(self, change: MeasuredChange) -> _Row:
        sides = [[r.instruction for r in side] for side in (change.before, change.after)]
        one, other = (phrases.names(side, 3) for side in sides)
        line = one if one == other else f"{one or 'new'} {phrases.ARROW} {other or 'removed'}"
        module = self.summary.accounts.after.module if sides[1] else self.summary.accounts.before.module
        place = phrases.sources(module, sides[1] or sides[0])
        return _Row([f"{line}  {place}".rstrip()], phrases.time_change_of(*change.us))

    def _fusion(self, group: Sequence[FusionChange]) -> _Row:
        change = group[0]
        module = (self.summary.diff.after if change.after else self.summary.diff.before).module
        lines = [phrases.what_happened(change), *phrases.inside(change)]
        lines += filter(None, [phrases.sources(module, change.members)])
        saved = phrases.saved(change, self.summary.accounts)
        return _Row(lines, saved, times(change.kind, len(group)), _STYLES[change.kind])

    def _duplicated(self, duplicated: Iterable[Matched], trivial: int) -> None:
        found = list(duplicated)
        if not found and not trivial:
            return
        self._head("duplicated more than before")
        rows = []
        for m in found:
            fusions = list(dict.fromkeys(p.fusion for p in m.after if p.fusion))
            head = f"{m.before[0].instruction.name}  duplicated into {plural(len(fusions), 'fusion')}"
            rows.append(_Row([f"{head}: {phrases.names(fusions, 4)}"]))
        if trivial:
            text = plural(trivial, "constant, broadcast or similar", "constants, broadcasts and similar")
            rows.append(_Row([text]))
        self._list(rows)

    def _sources(self) -> None:
        rows = []
        for line in self.summary.sources:
            moved = phrases.change_of(line.bytes_before, line.bytes_after, "B")
            launched = phrases.count_change_of(line.kernels_before, line.kernels_after)
            timed = f"  {phrases.time_change_of(*line.us)}" if line.us is not None else ""
            rows.append(_Row([phrases.line_shown(line), f"kernels {launched}"], moved + timed))
        self._list(rows)

    def _instructions(self) -> None:
        s = self.summary
        if not s.diff.edits:
            return
        self._head("instructions", plural(len(s.diff.causes), "change"))
        rows = [self._cluster(group) for group in s.clusters]
        rows += [self._changed(group) for group in s.changes]
        for (source, destination), members in s.moved.items():
            head = f"from {source} to {destination}: {phrases.opcodes(members)}"
            rows.append(_Row([head, phrases.names(members)], label="moved", style="yellow"))
        self._list(rows)
        if s.following:
            self._print(f"  {plural(s.following, 'more change', 'more changes')} due to these", "dim")

    def _cluster(self, group: tuple[Cluster, ...]) -> _Row:
        first = group[0]
        diff = self.summary.diff
        lines = [phrases.what_is_in(first), f" {phrases.ARROW} ".join(map(phrases.names, first.sides))]
        if first.note:
            lines[0] += f"  ({first.note})"
        module, members = (
            (diff.after.module, first.added) if first.added else (diff.before.module, first.removed)
        )
        lines += filter(None, [phrases.sources(module, members)])
        return _Row(lines, "", times(first.kind, len(group)), _EDIT_STYLES[first.kind])

    def _changed(self, group: Sequence[Changed]) -> _Row:
        members = [c.after[0].instruction for c in group]
        lines = [f"{phrases.opcodes(members)}  {phrases.names(members)}"]
        lines += [phrases.detail(d) for d in group[0].details]
        if len(members) == 1:
            lines += filter(None, [phrases.sources(self.summary.diff.after.module, members)])
        return _Row(lines, label="changed", style="yellow")

    def _print(self, text: str, style: str = "") -> None:
        start = "\n" if text.startswith("\n") else ""
        self.console.print(start + printable(text.lstrip("\n")), style=style)

    def _head(self, title: str, note: str = "") -> None:
        line = Text("\n" + title, style="bold")
        if note:
            line.append(f"   {note}", style="not bold dim")
        self.console.print(line)

    def _list(self, rows: Iterable[_Row]) -> None:
        every = list(rows)
        shown = self.console.first(every)
        grid = plain_grid()
        labelled = any(row.label for row in shown)
        figures_line = any(row.figure for row in shown)
        grid.add_column(width=1)
        if labelled:
            grid.add_column(no_wrap=True, min_width=9)
        grid.add_column(overflow="fold", ratio=1)
        if figures_line:
            grid.add_column(justify="right", no_wrap=True)
        grid.expand = figures_line
        for lines, figure, label, style in shown:
            body = Text(printable(lines[0]))
            for line in lines[1:]:
                body.append("\n" + printable(line), style="dim")
            cells = [Text(""), *([Text(label, style=style)] if labelled else []), body]
            if figures_line:
                cells.append(Text(figure))
            grid.add_row(*cells)
        self.console.print(grid)
        self.console.print_rest(every)
