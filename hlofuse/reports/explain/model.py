"""What an explanation consists of: plain data, made once and drawn by the renderers beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hlofuse.account import KernelTime, StepCost
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.loops import Loop
from hlofuse.passes.fusion.priority_fusion.recorded_order import Disagreement
from hlofuse.trace import Figures


@dataclass(frozen=True, slots=True)
class Totals:
    """A module as a whole."""

    kernels: int
    cost: Cost
    us: float | None = None
    """Estimated time of all kernels, launches included; None for targets without a model of it."""
    untimed: int = 0
    """Kernels left out of `us`: library calls and the like."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """The part of a catalogue entry that a report quotes."""

    code: str
    title: str
    advice: str = ""
    message: str = ""
    """XLA's words."""
    why: str = ""
    """Why XLA asks it."""


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction as a reader finds it again: name, shape and the line of the user's program."""

    name: str
    opcode: str = ""
    shape: str = ""
    source: str | None = None
    """`file:line function`, where the dump says."""
    op_name: str | None = None
    """The framework's name of the operation."""
    called_from: str | None = None
    """The user's own line where `source` is in an installed package."""


@dataclass(frozen=True, slots=True)
class FusedStep:
    """One fuse decision."""

    step: int
    producer: Place
    consumer: str
    fusion: str
    """The fusion that holds both, under its name at that step."""
    created: bool
    duplicated: bool
    """The producer also stays, or goes elsewhere as well."""
    kind: str
    rule: str | None
    reason: str | None
    figures: Figures = field(default_factory=dict)
    cost: StepCost | None = None
    """What the decision rested on; None where it rested on no estimate (bitcasts, other targets)."""
    tied_with: tuple[str, ...] = ()
    """Producers of equal priority: without XLA's ids it is not known which it took first."""
    consumers: int = 1
    """Kernels the producer went into by this decision, where the figures speak of all of them."""

    @property
    def us_saved(self) -> float | None:
        """What it saved by the model; None where nothing is estimated, and for bitcasts, which are free."""
        if self.cost is not None:
            return self.cost.us_saved
        fused, unfused = self.figures.get("us_fused"), self.figures.get("us_unfused")
        if fused is None or unfused is None:
            return None
        return (float(unfused) - float(fused)) / self.consumers


@dataclass(frozen=True, slots=True)
class FusedGroup:
    """All that one pass put into one fusion."""

    fusion: Place
    """Under its final name."""
    computation: str
    steps: tuple[FusedStep, ...]
    bytes_saved: int
    """Bytes the operations inside move when each runs alone, less what the fusion moves.

    An operation copied into several fusions counts in equal parts, and what an earlier pass has put into
    the same kernel counts there, so that the groups add up.
    """
    holds: tuple[str, ...]
    """The instructions of the input that are inside, in the order they came."""
    alike: tuple[str, ...] = ()
    """Other fusions that take in the same operations in the same way (layers of a model)."""
    kernel: KernelTime | None = None
    """What the kernel takes in the end."""
    us_saved: float | None = None
    """What its steps saved, by the estimates of their moments."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pair that was considered and stays apart; repeats are one."""

    producer: Place
    consumer: str | None
    """Under its final name; None where no consumer was asked about."""
    consumer_then: str | None
    """Under its name when it was last refused: the name `why` finds it by, too."""
    rule: str | None
    reason: str | None
    """XLA's words."""
    figures: Figures
    steps: tuple[int, ...]
    """Every step at which it was refused, for this or another reason; the last one settled it."""
    between_kernels: bool
    """Both run as kernels in the end: a launch and a trip through memory that fusing would save."""
    bytes_between: int
    """Size of the value that passes between the two, in bytes."""
    said_of: str | None = None
    """The user that was asked about, where that is another: priority fusion takes all users or none."""
    kernel: str | None = None
    """What computes the producer's value in the end, views passed over; None where nothing does."""
    us_at_stake: float | None = None
    """What fusing the producer into its users would save if the rule allowed it; None if not estimated."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Instructions replaced or removed by a pass (wrapping, CSE, DCE)."""

    step: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    rule: str | None
    reason: str | None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class PassStory:
    """What one pass did."""

    name: str
    changed: bool
    fused: tuple[FusedGroup, ...]
    """Greatest saving first."""
    refused: tuple[Refusal, ...]
    """Final verdicts, greatest value first."""
    rewrites: tuple[Rewrite, ...]
    decisions: int
    """How often the pass decided, repeats counted."""

    @property
    def fuse_count(self) -> int:
        """Fuse decisions."""
        return sum(len(g.steps) * (1 + len(g.alike)) for g in self.fused)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A rule and the pairs of kernels it keeps apart."""

    rule: RuleText
    refusals: tuple[Refusal, ...]
    """One for each pair, greatest value first."""

    @property
    def edges(self) -> int:
        """Pairs of kernels kept apart."""
        return len(self.refusals)

    @property
    def bytes_between(self) -> int:
        """Bytes that pass through memory because of it; a value read by two kernels counts twice."""
        return sum(r.bytes_between for r in self.refusals)

    @property
    def us_at_stake(self) -> float | None:
        """Time that allowing it would save; None if nothing is estimated."""
        return us_at_stake(self.refusals)


def us_at_stake(refusals: Iterable[Refusal]) -> float | None:
    """Time that allowing them would save, each producer counted once; None if nothing is estimated.

    XLA would take in what pays and leave the rest apart. Where nothing pays it is what all would cost,
    less than 0.
    """
    known = {r.producer.name: r.us_at_stake for r in refusals if r.us_at_stake is not None}
    pays = [us for us in known.values() if us > 0]
    return sum(pays or known.values()) if known else None


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """XLA's record, followed where priorities are equal, against what the replay says."""

    file: str
    records: int
    agreed: int
    disagreements: tuple[Disagreement, ...]


@dataclass(frozen=True, slots=True)
class DearKernel:
    """A kernel of the result, or several of the same line and shape, by what they take."""

    place: Place
    kernel: KernelTime
    """Of the dearest."""
    us: float
    """Of all, launches included, as often as their loop runs."""
    count: int = 1
    turns: int = 1
    """How often its loops run it, as far as the dump says."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer for one module."""

    module: str
    filename: str | None
    target: str
    device: str | None
    title: str
    release: str
    """The XLA that was repeated."""
    what_if: tuple[str, ...]
    """Overrides that make this a what-if run; empty when it is XLA's own result."""
    before: Totals
    after: Totals
    passes: tuple[PassStory, ...]
    obstacles: tuple[Obstacle, ...]
    """Greatest first."""
    rules: dict[str, RuleText]
    """Every rule quoted, by code."""
    record: RecordCheck | None = None
    """XLA's own record of priority fusion against ours, where there was one to follow."""
    dearest: tuple[DearKernel, ...] = ()
    """What takes longest in the end, first; empty where no time is estimated."""
    loops: tuple[Loop, ...] = ()
    """Outermost loops that launch kernels."""
    ties: int = 0
    """Decisions that hang on the order of equal priorities, which only XLA's ids tell."""
