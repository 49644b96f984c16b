"""Plain data of an explanation, created once and printed by the renderers, and as JSON (docs/json.md)."""

from msgspec import to_builtins

from hlofuse.account import KernelTime, StepCost, Totals
from hlofuse.analysis.kernels import Loop
from hlofuse.compilation import Counted
from hlofuse.format import fields
from hlofuse.format.paths import layer_of
from hlofuse.ir import Json, Record, Strings
from hlofuse.passes.fusion.priority_fusion.observers import Disagreement
from hlofuse.reports.common.costs import kernel_json, limit_of, step_json
from hlofuse.reports.common.model import (
    CreatedBy,
    FinalKernel,
    Place,
    Refusal,
    created_by_json,
    launch_json,
    place_json,
    refusal_json,
    totals_json,
    us_at_stake,
)
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Event


class FusedStep(Record):
    event: Event
    producer: Place
    cost: StepCost | None = None
    """The cost of the decision; None where it needs no estimate (bitcasts, other targets)."""
    tied_with: Strings = ()
    """Producers of equal priority: without XLA's ids it is not known which it took first."""
    consumers: int = 1
    """Kernels the producer went into by this decision, where the figures speak of all of them."""

    @property
    def us_saved(self) -> float | None:
        """Microseconds saved by the model; None without an estimate, and for bitcasts, which are free."""
        if self.cost is not None:
            return self.cost.us_saved
        fused, unfused = (self.event.figures.get(key) for key in ("us_fused", "us_unfused"))
        if fused is None or unfused is None:
            return None
        return (float(unfused) - float(fused)) / self.consumers


class FusedGroup(Record):
    """All that one pass put into one fusion."""

    fusion: Place  # Under its final name
    computation: str
    steps: tuple[FusedStep, ...]
    bytes_saved: int
    """Bytes the operations inside move when each runs alone, less what the fusion moves. An operation copied
    into several fusions counts in equal parts, and what an earlier pass has put into the same kernel counts
    there, so that the groups add up."""
    holds: Strings  # The instructions of the input that are inside, in the order they came
    equivalents: Strings = ()
    """Other fusions that take in the same operations in the same way (layers of a model)."""
    kernel: KernelTime | None = None
    us_saved: float | None = None  # Microseconds saved by its steps, by the estimates at those moments


class Rewrite(Record):
    """Instructions replaced or removed by a pass (wrapping, CSE, DCE)."""

    event: Event
    source: str | None = None


class PassStory(Record):
    name: str
    changed: bool
    fused: tuple[FusedGroup, ...]  # Greatest saving first
    refused: tuple[Refusal, ...]  # Final verdicts, greatest value first
    rewrites: tuple[Rewrite, ...]
    decisions: int  # The number of decisions in the trace


class BlockingRule(Record):
    """A rule and the pairs of kernels it keeps apart."""

    rule: Rule
    refusals: tuple[Refusal, ...]  # One for each pair, greatest value first

    @property
    def edges(self) -> int:
        """Pairs of kernels kept apart."""
        return len(self.refusals)

    @property
    def bytes_between(self) -> int:
        """Bytes that pass through memory cause it; a value read by two kernels counts twice."""
        return sum(r.bytes_between for r in self.refusals)

    @property
    def us_at_stake(self) -> float | None:
        """Time that allowing it would save; None if nothing is estimated."""
        return us_at_stake(self.refusals)


class RecordCheck(Record):
    """XLA's record, followed where priorities are equal, against what the replay says."""

    file: str
    records: int
    agreed: int
    disagreements: tuple[Disagreement, ...]


class HotKernel(Record):
    """A kernel of the result, or several that are alike, by what they take."""

    place: Place
    kernel: KernelTime | None  # Time of the slowest; None without an estimate
    us: float  # Microseconds of all launches, loop iterations included; 0 without an estimate
    bytes_accessed: int = 0  # Bytes of all launches, loop iterations included
    is_floor: bool = False  # `us` is a lower bound
    count: int = 1
    iterations: int = 1  # Trip count of its loops, as far as known
    measured_us: float | None = None
    """Microseconds of all in one run of the program, from a profile; None without one."""
    is_collective: bool = False
    per_iteration: bool = False  # In a loop of unknown length: one iteration counts
    in_branch: bool = False  # Runs in a branch of a conditional only
    estimate: str = ""
    """On a CPU the kind of code, with the error of its estimate; else `loop for scatter`, a loop of XLA's."""
    has_time: bool = True  # False if others have a time and this one has none
    open_end: str = ""  # The reason why it may take far longer than the lower bound `us`
    is_open: bool = False  # True if `us`, of its bytes, says nothing of its time

    @property
    def bound_by(self) -> str:
        """`memory-bound`, `compute-bound`, `launch-bound`, with `, not coalesced`; `lower bound` for a floor.
        `matmul table`, `collective table`: the time is by rates that XLA measured. `49× its estimate`, from 4
        times on, where the measured time says that it is none of these."""
        k = self.kernel
        if self.estimate:
            is_estimate = self.us and not self.is_floor and self.measured_us is None
            return self.estimate if is_estimate else self.estimate.partition(" ±")[0]
        if self.is_open and self.measured_us is None:
            return self.open_end
        if k is None and (self.is_floor or not self.us):
            return "lower bound" if self.is_floor else ""
        if self.us and (self.measured_us or 0.0) >= 4 * self.us:
            return f"{(self.measured_us or 0.0) / self.us:.0f}× its estimate"
        if k is None:
            return "collective table" if self.is_collective else "matmul table"
        return limit_of(k, self.us / self.count / self.iterations)


class SelectedKernel(Record):
    """A kernel that was asked for by a name."""

    kernel: FinalKernel
    time: KernelTime | None  # None where XLA has no estimate
    operations: Strings
    """The operations of the input in it that have the name; empty where the kernel itself has it."""
    created_by: tuple[CreatedBy, ...]  # The passes before fusion that created it


class Selection(Record):
    """The selected part of an explanation."""

    name: str  # As it was given
    kernels: tuple[SelectedKernel, ...]


class Explanation(Record):
    module: str
    filename: str | None
    target: str
    device: str | None
    title: str
    release: str
    """The XLA that was repeated."""
    what_if: Strings
    """Overrides that make this a what-if run; empty when it is XLA's own result."""
    before: Totals
    after: Totals
    passes: tuple[PassStory, ...]
    blocking_rules: tuple[BlockingRule, ...]
    """Greatest first."""
    rules: dict[str, Rule]
    """Every rule quoted, by code."""
    record: RecordCheck | None = None
    """XLA's own record of priority fusion against the replay, where there was one to follow."""
    hot_kernels: tuple[HotKernel, ...] = ()
    kernels: tuple[FinalKernel, ...] = ()
    """The slowest kernels, first; empty where no time is estimated."""
    loops: tuple[Loop, ...] = ()
    """Outermost loops that launch kernels."""
    ties: int = 0
    """Decisions that hang on the order of equal priorities, which only XLA's ids tell."""
    selected: Selection | None = None
    """The selection of passes, rules and kernels; None for everything."""
    earlier: tuple[PassStory, ...] = ()
    """Rewrites of passes before fusion that have a rule."""
    later: tuple[PassStory, ...] = ()
    """The same of passes after fusion."""
    counted: Counted = "replayed"
    """The source of the final module that `after` and `kernels` are of."""


def explanation_json(e: Explanation) -> Json:
    """The explanation as JSON values, complete: limits are for people."""
    return {
        "schema": "hlofuse.explain/3",
        **fields(e, "module file=filename target device release what_if ties"),
        **fields(e, "record", to_builtins),
        "totals": totals_json(e.after, e.counted),
        **fields(e, "kernels", launch_json),
        **fields(e, "before after", totals_json),
        **fields(e, "passes before_fusion=earlier after_fusion=later", _pass),
        "dearest": [
            {
                "first": place_json(k.place),
                "layer": layer_of(k.place.op_name),
                **fields(k, "us~ measured_us~ floor=is_floor count turns=iterations"),
                "kernel": kernel_json(k.kernel),
            }
            for k in e.hot_kernels
            if k.us
        ],
        **fields(e, "loops", to_builtins),
        **fields(e, "obstacles=blocking_rules", _blocking_rule),
        **fields(e, "selected", _selection),
        "rules": {code: fields(r, "code title message advice why flag") for code, r in e.rules.items()},
    }


def _selection(s: Selection) -> Json:
    return {
        "name": s.name,
        "kernels": [
            {
                **fields(k, "name=kernel.place.label input_name=kernel.input_name operations"),
                "kernel": kernel_json(k.time),
                **fields(k, "made_by=created_by", created_by_json),
            }
            for k in s.kernels
        ],
    }


def _pass(p: PassStory) -> Json:
    return {
        **fields(p, "name changed decisions"),
        **fields(p, "fused", _group),
        "rewritten": [
            {**fields(r.event, "step from=removed to=added rule reason"), "source": r.source}
            for r in p.rewrites
        ],
        **fields(p, "refused", refusal_json),
    }


def _group(g: FusedGroup) -> Json:
    return {
        "fusion": place_json(g.fusion),
        **fields(g, "computation bytes_saved us_saved~"),
        "kernel": kernel_json(g.kernel),
        "holds": list(g.holds),
        "steps": [
            {
                "step": s.event.step,
                "producer": place_json(s.producer),
                **fields(s.event, "consumer fusion created duplicated kind rule reason figures"),
                "cost": step_json(s.cost),
                **fields(s, "us_saved~ tied_with"),
            }
            for s in g.steps
        ],
    }


def _blocking_rule(o: BlockingRule) -> Json:
    return {
        **fields(o, "rule=rule.code title=rule.title advice=rule.advice edges bytes_between us_at_stake~"),
        "pairs": [[r.producer.name, r.consumer] for r in o.refusals],
    }
