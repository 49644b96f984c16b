"""The result of a diff in two lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hlofuse.analysis.loops import outermost_loops
from hlofuse.diff.model import Edit, FusionChange, FusionKind, ModuleDiff, only_annotations
from hlofuse.diff.report.phrases import ARROW, change_of, count_change_of, time_change_of
from hlofuse.diff.report.summary import Summary
from hlofuse.format.loops import loops_line
from hlofuse.format.units import plural
from hlofuse.inputs.stage import stage_of


def verdict(diff: ModuleDiff) -> str:
    """The first line: the same or not, and in what."""
    ours, theirs = diff.before.module.name, diff.after.module.name
    name = ours if ours == theirs else f"{ours} and {theirs}"
    if diff.same:
        return f"{name}: the same, {'fusions included' if is_fused(diff) else 'ahead of fusion'}"
    fusions = fusions_text(diff.fusions)
    if diff.same_program:
        return f"{name}: the same program, fused differently: {fusions}"
    fusions = fusions or "fusions unchanged"
    if not diff.edits:
        return f"{name}: the same program, another module header; {fusions}"
    if only_annotations(diff.edits):
        count = plural(len(diff.edits), "instruction")
        return f"{name}: the same program, annotations differ on {count}; {fusions}"
    counts = Counter(_word(e) for e in diff.edits)
    told = ", ".join(f"{counts[w]} {w}" for w in ("removed", "added", "changed", "moved") if counts[w])
    return f"{name}: the program differs ({told}); {fusions}"


def is_fused(diff: ModuleDiff) -> bool:
    """The fusion passes have been over one of the two at least."""
    return any(stage_of(side.module).is_fused for side in (diff.before, diff.after))


def fusions_text(changes: Iterable[FusionChange]) -> str:
    """`2 merged, 3 new`."""
    counts = Counter(c.kind for c in changes)
    return ", ".join(f"{counts[kind]} {kind}" for kind in FusionKind if counts[kind])


def figure_pairs(summary: Summary) -> list[tuple[str, str]]:
    """Label and figure: kernels, bytes, flops, and the time where a device is given."""
    diff, times = summary.diff, summary.times
    b, a = diff.before, diff.after
    pairs = [
        ("kernels", count_change_of(b.kernels, a.kernels)),
        ("bytes", change_of(b.cost.bytes_accessed, a.cost.bytes_accessed, "B")),
        ("flops", change_of(b.cost.flops, a.cost.flops)),
    ]
    if b.cost.unknown or a.cost.unknown:
        pairs.append(("custom calls not counted:", count_change_of(b.cost.unknown, a.cost.unknown)))
    if times is not None:
        same = times.devices[0] == times.devices[1]
        devices = times.devices[0] if same else f" {ARROW} ".join(times.devices)
        pairs.append((f"estimated time on {devices}", time_change_of(*times.totals(diff))))
        without = times.untimed(diff)
        if any(without):
            pairs.append(("kernels without an estimate:", count_change_of(*without)))
    return pairs


def loop_notes(diff: ModuleDiff) -> list[str]:
    """That kernels, bytes and time count one turn of each loop, and how often the loops run; none without."""
    sides = [outermost_loops(side.module) for side in (diff.before, diff.after)]
    before, after = (loops_line(found) if found else "" for found in sides)
    if before == after:
        return [before] if before else []
    return [f"{word}: {line or 'no loops'}" for word, line in (("before", before), ("after", after))]


def figures(summary: Summary) -> str:
    """The second line."""
    return "   ".join(f"{label} {figure}" for label, figure in figure_pairs(summary))


def _word(edit: Edit) -> str:
    return type(edit).__name__.lower()
