"""A diff put in the order a person asks: what is the result, what became of fusion, then the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import kernels
from hlofuse.differ.matching import TRIVIAL
from hlofuse.differ.model import (
    Added,
    Changed,
    Detail,
    Edit,
    FusionChange,
    FusionKind,
    Kind,
    Matched,
    ModuleDiff,
    Moved,
    Place,
    Removed,
    only_annotations,
)
from hlofuse.differ.report.phrases import ARROW, change_of, count_change_of, time_change_of
from hlofuse.differ.times import Estimate, Times
from hlofuse.differ.vocabulary import must_run_once
from hlofuse.ir import Instruction, Module
from hlofuse.present.units import plural


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """Changes of fusions that are alike in everything but names."""

    changes: tuple[FusionChange, ...]

    @property
    def first(self) -> FusionChange:
        return self.changes[0]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Instructions that were removed together, added together, or replaced by others."""

    removed: tuple[Instruction, ...] = ()
    added: tuple[Instruction, ...] = ()
    copy: bool = False
    """It computes once more what is computed anyway."""
    unused: bool = False
    """Nothing uses its result."""

    @property
    def note(self) -> str:
        """What else is to be said of it."""
        if self.copy:
            return "a second copy of what is computed anyway"
        return (
            "nothing used the result"
            if self.unused and self.removed
            else ("nothing uses the result" if self.unused else "")
        )

    @property
    def kind(self) -> str:
        if self.removed and self.added:
            return "replaced"
        return "removed" if self.removed else "added"


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Instructions that changed in the same way."""

    details: tuple[Detail, ...]
    changes: tuple[Changed, ...]


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """Instructions that went from one computation to another."""

    source: str
    destination: str
    members: tuple[Instruction, ...]
    """By BEFORE's names."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What a line of the user's program costs."""

    source: str
    kernels_before: int
    kernels_after: int
    bytes_before: int
    bytes_after: int
    us: tuple[float, float] | None = None
    """Estimated time; None where no device is given, or a kernel has no figure."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report shows."""

    diff: ModuleDiff
    fusions: tuple[FusionGroup, ...]
    clusters: tuple[tuple[Cluster, ...], ...]
    """Each group: clusters alike in everything but names."""
    changes: tuple[ChangeGroup, ...]
    moved: tuple[MovedGroup, ...]
    following: int
    """Changes that follow from those told."""
    sources: tuple[SourceLine, ...]
    duplicated: tuple[Matched, ...]
    duplicated_trivial: int
    """Constants, broadcasts and the like among the duplicated."""
    times: Times | None = None


def summarize(diff: ModuleDiff, times: Times | None = None) -> Summary:
    """Group a diff for a report; `times` adds estimates of time."""
    causes = diff.causes
    duplicated = [m for m in diff.duplicated if m.before[0].instruction.opcode not in TRIVIAL]
    return Summary(
        diff,
        tuple(_fusion_groups(diff)),
        tuple(_clusters(diff)),
        tuple(_change_groups(e for e in causes if isinstance(e, Changed))),
        tuple(_moved_groups(e for e in causes if isinstance(e, Moved))),
        sum(isinstance(e, Changed) and bool(e.because) for e in diff.edits),
        tuple(_by_source(diff, times)),
        tuple(sorted(duplicated, key=lambda m: -len(m.after))),
        len(diff.duplicated) - len(duplicated),
        times,
    )


# ---------------------------------------------------------------- the result in two lines


def verdict(diff: ModuleDiff) -> str:
    """The first line: the same or not, and in what."""
    ours, theirs = diff.before.module.name, diff.after.module.name
    name = ours if ours == theirs else f"{ours} and {theirs}"
    if diff.same:
        return f"{name}: the same, fusions included"
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


def figures(summary: Summary) -> str:
    """The second line."""
    return "   ".join(f"{label} {figure}" for label, figure in figure_pairs(summary))


def _word(edit: Edit) -> str:
    return type(edit).__name__.lower()


# ---------------------------------------------------------------- groups

_TO = "->"  # between the two sides of a key


def _fusion_groups(diff: ModuleDiff) -> Iterator[FusionGroup]:
    groups: dict[object, list[FusionChange]] = {}
    for change in diff.fusions:
        groups.setdefault(_pattern(change), []).append(change)
    for changes in groups.values():
        yield FusionGroup(tuple(changes))


def _pattern(change: FusionChange) -> object:
    """What two changes have in common that are told once."""

    def ops(instructions: Iterable[Instruction]) -> tuple[str, ...]:
        return tuple(sorted(i.opcode for i in instructions if i.opcode != "parameter"))

    return (
        change.kind,
        *[(f.fusion_kind, ops(f.fused_computation)) for f in change.before],
        _TO,
        *[(f.fusion_kind, ops(f.fused_computation)) for f in change.after],
        ops(change.joined),
        ops(change.left),
        tuple((d.kind, d.name if d.kind is not Kind.ROOT else "") for d in change.details),
        tuple(_config(d) for d in change.details if d.name == "backend_config"),
    )


def _config(d: Detail) -> tuple[str | None, str | None]:
    return d.before, d.after


def _clusters(diff: ModuleDiff) -> Iterator[tuple[Cluster, ...]]:
    """Removed and added instructions, each with those that only served it; replacements as one."""
    served: dict[Instruction, list[Instruction]] = {}
    heads: list[Added | Removed] = []
    for edit in diff.edits:
        if isinstance(edit, Added | Removed):
            instruction = _places(edit)[0].instruction
            if edit.because:
                served.setdefault(edit.because[0], []).append(instruction)
            else:
                heads.append(edit)

    def cluster(head: Instruction) -> tuple[Instruction, ...]:
        out = [head]
        for i in out:  # grows while it is walked
            out += served.get(i, ())
        return tuple(out)

    replaced = _replacements(diff, {_places(h)[0].instruction for h in heads})
    taken = set(replaced.values())
    groups: dict[object, list[Cluster]] = {}
    for head in heads:
        first = _places(head)[0].instruction
        if isinstance(head, Removed):
            new = replaced.get(first)
            found = Cluster(cluster(first), cluster(new) if new else (), *_notes(head))
        elif first in taken:
            continue
        else:
            found = Cluster((), cluster(first), *_notes(head))
        key = (
            found.note,
            *sorted(i.opcode for i in found.removed),
            _TO,
            *sorted(i.opcode for i in found.added),
        )
        groups.setdefault(key, []).append(found)
    order = ("replaced", "removed", "added")
    for clusters in sorted(groups.values(), key=lambda g: order.index(g[0].kind)):
        yield tuple(clusters)


def _notes(head: Added | Removed) -> tuple[bool, bool]:
    instruction = _places(head)[0].instruction
    unused = not instruction.users and not instruction.is_root and instruction.opcode != "parameter"
    return head.copy_of is not None, unused and not must_run_once(instruction)


def _replacements(diff: ModuleDiff, heads: set[Instruction]) -> dict[Instruction, Instruction]:
    """Removed to added, where a user has the one in place of the other."""
    out: dict[Instruction, Instruction] = {}
    for edit in diff.edits:
        if isinstance(edit, Changed) and edit.because:
            reasons = [r for r in edit.because if r in heads]
            removed = [r for r in reasons if not diff.after_of(r) and _in(diff.before.module, r)]
            added = [r for r in reasons if r not in removed]
            if len(removed) == len(added) == 1 and removed[0] not in out and added[0] not in out.values():
                out[removed[0]] = added[0]
    return out


def _in(module: Module, instruction: Instruction) -> bool:
    return instruction.computation is not None and instruction.computation.module is module


def _places(edit: Added | Removed) -> tuple[Place, ...]:
    return edit.after if isinstance(edit, Added) else edit.before


def _change_groups(changes: Iterable[Changed]) -> Iterator[ChangeGroup]:
    groups: dict[object, list[Changed]] = {}
    for change in changes:
        key = tuple(
            (
                d.kind,
                d.name,
                "" if d.kind in (Kind.OPERAND, Kind.ORDER) else d.before,
                "" if d.kind in (Kind.OPERAND, Kind.ORDER) else d.after,
            )
            for d in change.details
        )
        groups.setdefault(key, []).append(change)
    kinds = list(Kind)
    # Operations first, notes for later passes last.
    last = {Kind.ANNOTATION: 1, Kind.METADATA: 2}
    for found in sorted(
        groups.values(),
        key=lambda g: (min(last.get(d.kind, 0) for d in g[0].details), kinds.index(g[0].details[0].kind)),
    ):
        yield ChangeGroup(found[0].details, tuple(found))


def _moved_groups(edits: Iterable[Moved]) -> Iterator[MovedGroup]:
    groups: dict[tuple[str, str], list[Instruction]] = {}
    for edit in edits:
        ours, theirs = edit.before[0], edit.after[0]
        # The computation a fusion is in says where, not the fusion's own.
        places = [(p.fusion or p.instruction).computation for p in (ours, theirs)]
        names = [c.name if c is not None else "?" for c in places]
        groups.setdefault((names[0], names[1]), []).append(ours.instruction)
    for (source, destination), members in groups.items():
        yield MovedGroup(source, destination, tuple(members))


# ---------------------------------------------------------------- by source line


def _by_source(diff: ModuleDiff, times: Times | None) -> Iterator[SourceLine]:
    ours = _kernels_by_source(diff.before.module, times.before if times is not None else None)
    theirs = _kernels_by_source(diff.after.module, times.after if times is not None else None)
    if set(ours) <= {""} or set(theirs) <= {""}:
        return
    rows = []
    for source in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(source, _Costs()), theirs.get(source, _Costs())
        timed = times is not None and one.us is not None and other.us is not None
        rows.append(
            SourceLine(
                source or NO_LINE,
                one.kernels,
                other.kernels,
                one.bytes,
                other.bytes,
                (one.us or 0.0, other.us or 0.0) if timed else None,
            )
        )
    changed = [
        r
        for r in rows
        if ((r.kernels_before, r.bytes_before) != (r.kernels_after, r.bytes_after) or _slower_or_faster(r))
    ]
    yield from sorted(changed, key=lambda r: (-abs(r.bytes_after - r.bytes_before), r.source))


def _slower_or_faster(r: SourceLine) -> bool:
    return r.us is not None and abs(r.us[1] - r.us[0]) > 0.05 * max(r.us)


NO_LINE = "no source line"


@dataclass(slots=True)
class _Costs:
    kernels: int = 0
    bytes: int = 0
    us: float | None = 0.0


def _kernels_by_source(module: Module, time: Estimate | None) -> dict[str, _Costs]:
    """What the kernels cost, under the line they came from."""
    costs = CostAnalysis()
    out: dict[str, _Costs] = {}
    for kernel in kernels(module):
        place = module.source_of(kernel)
        if place is None and kernel.opcode == "fusion" and kernel.called:
            inside = Counter(str(s) for i in kernel.fused_computation if (s := module.source_of(i)))
            text = inside.most_common(1)[0][0] if inside else ""
        else:
            text = str(place) if place else ""
        line = out.setdefault(text, _Costs())
        line.kernels += 1
        line.bytes += costs.instruction(kernel).bytes_accessed
        us = time(kernel) if time is not None else None
        line.us = line.us + us if line.us is not None and us is not None else None
    return out
