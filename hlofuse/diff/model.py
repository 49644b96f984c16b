"""Result of `diff` as data, the only input of its reports."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import Literal, TypeAlias

from hlofuse.account import Account, Launched
from hlofuse.account.functions import Functions, functions_of_each
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.kernels import is_kernel
from hlofuse.compilation import Counted
from hlofuse.ir import Instruction, InstructionMap, Module, Record
from hlofuse.matching.graph import Matched, Occurrence
from hlofuse.matching.pairs import Pairs
from hlofuse.matching.structure import TRIVIAL


class Kind(StrEnum):
    OPCODE = "opcode"
    TYPE = "type"
    SHAPE = "shape"
    LAYOUT = "layout"
    OPERAND = "operand"
    ORDER = "order"  # The same operands in another order
    ATTRIBUTE = "attribute"
    ANNOTATION = "annotation"
    LITERAL = "literal"
    CALLEE = "callee"
    ROOT = "root"
    CONTROL = "control"
    METADATA = "metadata"


class FusionKind(StrEnum):
    """Kind of a fusion's change, the most specific first."""

    SPLIT = "split"
    MERGED = "merged"
    REGROUPED = "regrouped"
    VANISHED = "vanished"
    NEW = "new"
    SHRUNK = "shrunk"
    GROWN = "grown"
    CHANGED = "changed"


class Detail(Record):
    """One thing that differs, old and new; None where there is none."""

    kind: Kind
    name: str  # The attribute, or which operand; empty where the kind says it all
    before: str | None
    after: str | None


class Changed(Record):
    """The same instruction with something else about it."""

    before: tuple[Occurrence, ...]
    after: tuple[Occurrence, ...]
    details: tuple[Detail, ...]
    because: tuple[Instruction, ...] = ()
    """The cause (an operand that was added, removed or changed); empty for an independent change."""


class Moved(Record):
    """The same instruction in another computation (not merely in or out of a fusion)."""

    before: tuple[Occurrence, ...]
    after: tuple[Occurrence, ...]
    because: tuple[Instruction, ...] = ()


class Added(Record):
    """Only in AFTER."""

    after: tuple[Occurrence, ...]
    because: tuple[Instruction, ...] = ()  # The added instructions it only serves
    copy_of: Instruction | None = None  # It computes once more what this one, there before, computes


class Removed(Record):
    """Only in BEFORE."""

    before: tuple[Occurrence, ...]
    because: tuple[Instruction, ...] = ()
    copy_of: Instruction | None = None


Edit = Changed | Moved | Added | Removed


class FusionChange(Record):
    """A change of some fusions, with the sources of instructions from others."""

    kind: FusionKind
    before: tuple[Instruction, ...] = ()
    after: tuple[Instruction, ...] = ()
    joined: tuple[Instruction, ...] = ()
    """Instructions of BEFORE that were outside fusions and are inside now."""
    left: tuple[Instruction, ...] = ()  # Instructions of AFTER that were inside fusions and are outside now
    added: tuple[Instruction, ...] = ()  # Instructions in these fusions of AFTER that BEFORE has nowhere
    removed: tuple[Instruction, ...] = ()  # Instructions in these fusions of BEFORE that AFTER has nowhere
    members: tuple[Instruction, ...] = ()  # The content of the fusions of AFTER; without one, of BEFORE
    details: tuple[Detail, ...] = ()  # Kind, backend_config or results that changed
    cost_before: Cost | None = None
    """Cost of `before` and joined instructions; None where other fusions took part: sums would mislead."""
    cost_after: Cost | None = None  # Cost of `after` and of instructions that left


class ModuleSide(Record):
    module: Module
    instructions: int  # Reachable from the entry, fusions' parameters included
    kernels: int
    fusions: int
    unreachable: int  # Computations without a caller, which are not compared


@dataclass(frozen=True)
class ModuleDiff:
    before: ModuleSide
    after: ModuleSide
    pairs: Pairs = field(repr=False)
    """The instructions of both sides that compute the same, changed or not."""
    edits: tuple[Edit, ...] = field(repr=False)
    """Differences in text order: BEFORE's, then additions."""
    fusions: tuple[FusionChange, ...] = field(repr=False)
    fusions_unchanged: int
    header: tuple[Detail, ...]
    """Attributes of the module."""

    @property
    def same(self) -> bool:
        """True if the modules are equal up to names, numbers, order and metadata."""
        return not (self.edits or self.fusions or self.header)

    @property
    def same_program(self) -> bool:
        """True if they compute the same in the same way, however it is fused."""
        return not (self.edits or self.header)

    @cached_property
    def causes(self) -> tuple[Edit, ...]:
        """The edits that follow from no other."""
        return tuple(e for e in self.edits if not e.because)

    @cached_property
    def duplicated(self) -> tuple[Matched, ...]:
        """Values computed in more fusions after than before."""
        return tuple(
            m
            for m in self.matches
            if len({p.fusion for p in m.after}) > len({p.fusion for p in m.before})
            and any(p.fusion for p in m.after)
        )

    @property
    def matches(self) -> tuple[Matched, ...]:
        return self.pairs.matches


def only_annotations(edits: Iterable[Edit]) -> bool:
    """True if nothing differs but notes for later passes and the runtime."""
    return all(
        isinstance(e, Changed) and all(d.kind in (Kind.ANNOTATION, Kind.METADATA) for d in e.details)
        for e in edits
    )


FlagChange: TypeAlias = tuple[str, str | None, str | None]
"""An XLA flag, and its values on both sides; None where it has its default."""


def changed_flags(before: Iterable[str] | None, after: Iterable[str] | None) -> tuple[FlagChange, ...]:
    """The flags with another value in AFTER, but those of dumps; none where one side states no flags."""
    if before is None or after is None:
        return ()
    old, new = ({n: v for n, _, v in (f.partition("=") for f in side)} for side in (before, after))
    names = (n for n in {**old, **new} if not n.startswith("--xla_dump_"))
    return tuple((n, old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n))


class Accounts(Record):
    before: Account  # The account of the final module for BEFORE
    after: Account
    compared: tuple[Account, Account]  # The accounts of the two compared modules
    devices: tuple[str, str] | None = None  # The devices of the estimated times, if any
    counted: tuple[Counted | None, Counted | None] = (None, None)
    """`xla` or `replayed`: whose final modules `before` and `after` are of; None for other modules."""
    flags: tuple[FlagChange, ...] = ()  # The flags that differ, where both sides state their flags

    @property
    def temporary_bytes(self) -> tuple[int, int] | None:
        """Peak temporary memory before and after; None where one of the two is not known."""
        before, after = self.before.totals.peak_temporary_bytes, self.after.totals.peak_temporary_bytes
        return (before, after) if before is not None and after is not None else None

    @property
    def functions(self) -> list[Functions]:
        """The functions of BEFORE and those of AFTER."""
        return functions_of_each(self.before, self.after)

    @property
    def timing(self) -> Literal["measured", "estimated"] | None:
        """The compared times: measured where both sides have them."""
        if self.before.measured is not None and self.after.measured is not None:
            return "measured"
        return "estimated" if self.devices is not None else None

    def us(self, row: Launched) -> float:
        """Microseconds of all launches of a kernel in one run."""
        return (row.measured_us if self.timing == "measured" else row.total_us) or 0.0

    def change_of(self, change: FusionChange, amount: Callable[[Launched], float]) -> float | None:
        """The difference in `amount`, which is of all launches; None where others took part."""
        if change.cost_before is None or change.cost_after is None:
            return None
        old = [*change.before, *filter(is_kernel, change.joined)]
        new = [*change.after, *filter(is_kernel, change.left)]
        sums = []
        for account, kernels in zip(self.compared, (old, new), strict=True):
            rows = (account.by_name.get(k.name) for k in kernels)
            sums.append(sum(amount(r) for r in rows if r is not None))
        return sums[1] - sums[0]


def as_compared(diff: ModuleDiff) -> Accounts:
    """The accounts of the two compared modules, without times."""
    before, after = Account(diff.before.module), Account(diff.after.module)
    return Accounts(before, after, (before, after))


class MeasuredChange(Record):
    """Kernels of BEFORE and the kernels of AFTER that compute the same; one side may be empty."""

    before: tuple[Launched, ...]
    after: tuple[Launched, ...]

    @property
    def us(self) -> tuple[float, float]:
        """Measured microseconds in one run, before and after."""
        one, other = (sum(r.measured_us or 0.0 for r in side) for side in (self.before, self.after))
        return one, other


def measured_changes(diff: ModuleDiff, accounts: Accounts) -> list[MeasuredChange]:
    """Every kernel that took time on either side: what became slower most first, then what became faster. A
    kernel goes with the one on the other side that shares most of it. Empty unless both are measured."""
    if accounts.timing != "measured":
        return []
    shared = Counter[tuple[Instruction, Instruction]]()
    for match in diff.matches:
        weight = 1 if match.before[0].instruction.opcode in TRIVIAL else 100
        pairs = product(match.before, match.after)
        shared.update({(p.kernel, q.kernel): weight for p, q in pairs})
    sides = accounts.before.rows, accounts.after.rows
    groups = {row.instruction: MeasuredChange((row,), ()) for row in sides[0]}
    groups |= {row.instruction: MeasuredChange((), (row,)) for row in sides[1]}
    most: InstructionMap = {}
    for (one, other), _ in sorted(shared.items(), key=lambda item: item[1]):
        most |= {one: other, other: one}
    for kernel, other in most.items():
        if kernel in groups and other in groups and (first := groups[kernel]) is not groups[other]:
            joined = MeasuredChange(first.before + groups[other].before, first.after + groups[other].after)
            groups |= {row.instruction: joined for row in (*joined.before, *joined.after)}

    def order(change: MeasuredChange) -> tuple[bool, float, float]:
        slower = round(change.us[1] - change.us[0], 2)
        return slower <= 0, -abs(slower), -change.us[1]

    return sorted({id(c): c for c in groups.values() if any(c.us)}.values(), key=order)


class FinalKernels(Record):
    """The final kernels of BEFORE's instructions, and a note on new ones of AFTER."""

    kernels: Mapping[Instruction, tuple[Instruction, ...]]
    """For instructions of BEFORE, fusions too: the kernels of AFTER that compute it."""
    notes: Mapping[Instruction, str]
    """For instructions of either side that changed: `split`, `new`, `removed`…"""


def final_kernels(diff: ModuleDiff) -> FinalKernels:
    """Follow every match of a diff to the kernel it is in."""
    found: dict[Instruction, dict[Instruction, None]] = {}
    telling: dict[Instruction, dict[Instruction, None]] = {}
    for match in diff.matches:
        to = {k: None for p in match.after if is_kernel(k := p.kernel)}
        for place in match.before:
            found.setdefault(place.instruction, {}).update(to)
            if place.fusion is not None:
                # A constant spread out in many kernels says nothing about where its fusion went.
                kind = found if place.instruction.opcode in TRIVIAL else telling
                kind.setdefault(place.fusion, {}).update(to)
    found |= telling
    return FinalKernels({i: tuple(ks) for i, ks in found.items()}, _notes(diff))


def _notes(diff: ModuleDiff) -> dict[Instruction, str]:
    notes: dict[Instruction, str] = {}
    for edit in diff.edits:
        if edit.because:
            continue
        if isinstance(edit, Removed):
            notes |= {p.instruction: "removed" for p in edit.before}
        elif isinstance(edit, Added):
            notes |= {p.instruction: "added" for p in edit.after}
        else:
            word = type(edit).__name__.lower()
            notes |= {p.instruction: word for p in (*edit.before, *edit.after)}
    for change in diff.fusions:
        notes |= dict.fromkeys((*change.before, *change.after), str(change.kind))
        if change.kind not in (FusionKind.NEW, FusionKind.VANISHED):
            notes = dict.fromkeys(change.joined, "joined") | notes
    return notes
