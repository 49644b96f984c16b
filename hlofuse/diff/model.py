"""Result of `diff` as data, the only input of its reports."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from hlofuse.analysis.cost import Cost
from hlofuse.ir import Instruction, Module
from hlofuse.matching.graph import Matched, Occurrence
from hlofuse.matching.pairs import Pairs


class Kind(StrEnum):
    """The differing part of an instruction."""

    OPCODE = "opcode"
    TYPE = "type"
    SHAPE = "shape"
    LAYOUT = "layout"
    OPERAND = "operand"
    ORDER = "order"
    """The same operands in another order."""
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


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that differs, old and new; None where there is none."""

    kind: Kind
    name: str
    """The attribute, or which operand; empty where the kind says it all."""
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Changed:
    """The same instruction with something else about it."""

    before: tuple[Occurrence, ...]
    after: tuple[Occurrence, ...]
    details: tuple[Detail, ...]
    because: tuple[Instruction, ...] = ()
    """The cause (an operand that was added, removed or changed); empty for an independent change."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The same instruction in another computation (not merely in or out of a fusion)."""

    before: tuple[Occurrence, ...]
    after: tuple[Occurrence, ...]
    because: tuple[Instruction, ...] = ()


@dataclass(frozen=True, slots=True)
class Added:
    """Only in AFTER."""

    after: tuple[Occurrence, ...]
    because: tuple[Instruction, ...] = ()
    """The added instructions it only serves."""
    copy_of: Instruction | None = None
    """It computes once more what this one, there before, computes."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Only in BEFORE."""

    before: tuple[Occurrence, ...]
    because: tuple[Instruction, ...] = ()
    copy_of: Instruction | None = None


Edit = Changed | Moved | Added | Removed


@dataclass(frozen=True, slots=True)
class FusionChange:
    """A change of some fusions, with the sources of instructions from others."""

    kind: FusionKind
    before: tuple[Instruction, ...] = ()
    after: tuple[Instruction, ...] = ()
    joined: tuple[Instruction, ...] = field(default=(), repr=False)
    """Instructions of BEFORE that were outside fusions and are inside now."""
    left: tuple[Instruction, ...] = field(default=(), repr=False)
    """Instructions of AFTER that were inside fusions and are outside now."""
    added: tuple[Instruction, ...] = field(default=(), repr=False)
    """Instructions in these fusions of AFTER that BEFORE has nowhere."""
    removed: tuple[Instruction, ...] = field(default=(), repr=False)
    """Instructions in these fusions of BEFORE that AFTER has nowhere."""
    members: tuple[Instruction, ...] = field(default=(), repr=False)
    """The content of the fusions of AFTER; without one, of BEFORE."""
    details: tuple[Detail, ...] = ()
    """Kind, backend_config or results that changed."""
    cost_before: Cost | None = None
    """Cost of `before` and of joined instructions; None where other fusions took part, so sums
    would mislead."""
    cost_after: Cost | None = None
    """Cost of `after` and of instructions that left."""


@dataclass(frozen=True, slots=True)
class ModuleSide:
    module: Module
    instructions: int
    """Reachable from the entry, fusions' parameters included."""
    kernels: int
    fusions: int
    unreachable: int
    """Computations without a caller, which are not compared."""


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
