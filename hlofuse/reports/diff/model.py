"""A diff put in the order a person asks: what is the result, what became of fusion, then the rest."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from hlofuse.account import Account
from hlofuse.analysis.kernels import kernel_source
from hlofuse.diff.compare import moved_lines
from hlofuse.diff.model import (
    Accounts,
    Added,
    Changed,
    Detail,
    FusionChange,
    Kind,
    MeasuredChange,
    ModuleDiff,
    Moved,
    Removed,
    as_compared,
    measured_changes,
)
from hlofuse.format.paths import source_text
from hlofuse.ir import Instruction, Instructions, InstructionSequence, Record, Strings, grouped
from hlofuse.matching.graph import Matched, Occurrence, must_run_once
from hlofuse.matching.structure import TRIVIAL
from hlofuse.trace.provenance import is_in


class Cluster(Record):
    """Instructions that were removed together, added together, or replaced by others."""

    removed: tuple[Instruction, ...] = ()
    added: tuple[Instruction, ...] = ()
    copy: bool = False  # It computes once more what is computed anyway
    unused: bool = False

    @property
    def note(self) -> str:
        if self.copy:
            return "a duplicate"
        return "unused" if self.unused else ""

    @property
    def sides(self) -> list[tuple[Instruction, ...]]:
        return [side for side in (self.removed, self.added) if side]

    @property
    def kind(self) -> str:
        if self.removed and self.added:
            return "replaced"
        return "removed" if self.removed else "added"


def clusters(diff: ModuleDiff) -> Iterator[tuple[Cluster, ...]]:
    """Removed and added instructions, each with those that only served it; replacements as one."""
    served: dict[Instruction, Instructions] = {}
    heads = []
    for edit in diff.edits:
        if isinstance(edit, Added | Removed):
            instruction = _places(edit)[0].instruction
            if edit.because:
                served.setdefault(edit.because[0], []).append(instruction)
            else:
                heads.append(edit)

    def cluster(head: Instruction) -> tuple[Instruction, ...]:
        out = [head]
        covered = set()  # what two fusions of one computation hold serves itself
        for i in out:  # grows while it is walked
            if i not in covered:
                covered.add(i)
                out += served.get(i, ())
        return tuple(out)

    first_places = {_places(h)[0].instruction for h in heads}
    replaced: dict[Instruction, Instruction] = {}  # a user has the one in place of the other
    for edit in diff.edits:
        if isinstance(edit, Changed) and edit.because:
            reasons = [r for r in edit.because if r in first_places]
            removed = [r for r in reasons if not diff.pairs.after_of(r) and is_in(r, diff.before.module)]
            added = [r for r in reasons if r not in removed]
            is_one = len(removed) == len(added) == 1 and removed[0] not in replaced
            if is_one and added[0] not in replaced.values():
                replaced[removed[0]] = added[0]
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
        sides = (found.removed, found.added)
        key = (found.note, *[tuple(sorted(i.opcode for i in side)) for side in sides])
        groups.setdefault(key, []).append(found)
    order = ("replaced", "removed", "added")
    for clusters in sorted(groups.values(), key=lambda g: order.index(g[0].kind)):
        yield tuple(clusters)


def _notes(head: Added | Removed) -> tuple[bool, bool]:
    instruction = _places(head)[0].instruction
    unused = not instruction.users and not instruction.is_root and not instruction.is_parameter
    return head.copy_of is not None, unused and not must_run_once(instruction)


def _places(edit: Added | Removed) -> tuple[Occurrence, ...]:
    return edit.after if isinstance(edit, Added) else edit.before


NO_LINE = "no source line"


class Summary(Record):
    diff: ModuleDiff
    fusions: tuple[tuple[FusionChange, ...], ...]
    """Each group: changes alike in everything but names, in the order of the first of each."""
    clusters: tuple[tuple[Cluster, ...], ...]  # Each group: clusters alike in everything but names
    changes: tuple[tuple[Changed, ...], ...]  # Each group: instructions that changed in the same way
    moved: Mapping[tuple[str, str], InstructionSequence]
    """By computation before and after, the instructions that went from the one to the other, as BEFORE's."""
    following: int  # Changes that follow from those reported
    sources: "tuple[SourceLine, ...]"
    moved_lines: Mapping[str, str]  # Lines of BEFORE that have another number in AFTER
    duplicated: tuple[Matched, ...]
    duplicated_trivial: int  # Constants, broadcasts and similar among the duplicated
    accounts: Accounts
    measured: tuple[MeasuredChange, ...] = ()
    """Measured time kernel by kernel, worst first; empty without it on both sides."""


def summarize(diff: ModuleDiff, accounts: Accounts | None = None) -> Summary:
    """Group a diff for a report; without `accounts` the modules count as they are, without times."""
    accounts = accounts or as_compared(diff)
    causes, moved = diff.causes, moved_lines(diff)
    duplicated = [m for m in diff.duplicated if m.before[0].instruction.opcode not in TRIVIAL]
    return Summary(
        diff,
        tuple(map(tuple, grouped((_pattern(change), change) for change in diff.fusions).values())),
        tuple(clusters(diff)),
        tuple(map(tuple, _change_groups(e for e in causes if isinstance(e, Changed)))),
        grouped((_ends(e), e.before[0].instruction) for e in causes if isinstance(e, Moved)),
        sum(isinstance(e, Changed) and bool(e.because) for e in diff.edits),
        tuple(by_source(accounts, moved)),
        moved,
        tuple(sorted(duplicated, key=lambda m: -len(m.after))),
        len(diff.duplicated) - len(duplicated),
        accounts,
        tuple(measured_changes(diff, accounts)),
    )


class SourceLine(Record):
    """The cost of a line of the user's program."""

    source: str  # As it is numbered in AFTER
    source_before: str  # As it is numbered in BEFORE; another where an edit moved the line
    removed: bool  # The number is that of another line in AFTER, which has nothing of this one
    kernels_before: int
    kernels_after: int
    bytes_before: int
    bytes_after: int
    us: tuple[float, float] | None = None  # µs of all launches, measured or estimated; None without times


def by_source(accounts: Accounts, moved: Mapping[str, str]) -> Iterator[SourceLine]:
    """Launches of each source line on either side, if both have lines. `moved`: lines of BEFORE in AFTER."""
    actual, expected = (_kernels_by_source(a, accounts) for a in (accounts.before, accounts.after))
    if set(actual) <= {""} or set(expected) <= {""}:
        return
    timed, numbers_of_others = accounts.timing is not None, set(moved.values())
    rows = []
    for old, one in actual.items():
        removed = old not in moved and old in numbers_of_others
        new = moved.get(old, old)
        rows.append(_row(old, new, one, None if removed else expected.pop(new, None), timed, removed))
    rows += [_row(new, new, None, other, timed) for new, other in expected.items()]
    changed = [
        r
        for r in rows
        if (r.kernels_before, r.bytes_before) != (r.kernels_after, r.bytes_after)
        or (r.us is not None and abs(r.us[1] - r.us[0]) > 0.05 * max(r.us))
    ]
    yield from sorted(changed, key=lambda r: (-abs(r.bytes_after - r.bytes_before), r.source))


def _row(
    old: str,
    new: str,
    one: "_Costs | None",
    other: "_Costs | None",
    timed: bool,
    removed: bool = False,
) -> SourceLine:
    one, other = one or _Costs(), other or _Costs()
    us = (one.us, other.us) if timed else None
    return SourceLine(
        new or NO_LINE, old or NO_LINE, removed, one.kernels, other.kernels, one.bytes, other.bytes, us
    )


class _Costs(Struct):
    kernels: int = 0
    bytes: int = 0
    us: float = 0.0


def _kernels_by_source(account: Account, accounts: Accounts) -> dict[str, _Costs]:
    module = account.module
    out: dict[str, _Costs] = {}
    for row in account.rows:
        line = out.setdefault(source_text(kernel_source(row.instruction, module)), _Costs())
        line.kernels += 1
        line.bytes += row.cost.bytes_accessed * row.runs
        line.us += accounts.us(row)
    return out


def _pattern(change: FusionChange) -> object:
    """A key equal for changes that are reported once."""

    def ops(instructions: Iterable[Instruction]) -> Strings:
        return tuple(sorted(i.opcode for i in instructions if not i.is_parameter))

    def kernels(fusions: Iterable[Instruction]) -> tuple[object, ...]:
        return tuple((f.fusion_kind, ops(f.fused_computation)) for f in fusions)

    return (
        change.kind,
        kernels(change.before),
        kernels(change.after),
        ops(change.joined),
        ops(change.left),
        tuple((d.kind, d.name if d.kind is not Kind.ROOT else "") for d in change.details),
        tuple((d.before, d.after) for d in change.details if d.name == "backend_config"),
    )


def _change_groups(changes: Iterable[Changed]) -> list[list[Changed]]:
    """Instructions that changed in the same way; which operands took part does not count."""

    def common(d: Detail) -> tuple[object, ...]:
        values = () if d.kind in (Kind.OPERAND, Kind.ORDER) else (d.before, d.after)
        return d.kind, d.name, *values

    kinds = list(Kind)
    # Operations first, notes for later passes last.
    last = {Kind.ANNOTATION: 1, Kind.METADATA: 2}

    def place(group: list[Changed]) -> tuple[int, int]:
        details = group[0].details
        return min(last.get(d.kind, 0) for d in details), kinds.index(details[0].kind)

    found = grouped((tuple(map(common, change.details)), change) for change in changes)
    return sorted(found.values(), key=place)


def _ends(edit: Moved) -> tuple[str, str]:
    # The computation a fusion is in says where, not the fusion's own.
    places = [(p.fusion or p.instruction).computation for p in (edit.before[0], edit.after[0])]
    before, after = (c.name if c is not None else "?" for c in places)
    return before, after
