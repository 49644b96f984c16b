"""The best fusion plan that a search finds under XLA's own rules and costs, and how it differs from XLA's.

XLA's queue takes the producer that saves most, into all its users or none, and takes nothing back. Here the
passes are replayed with other decisions (`hlofuse.rules.settings`) and judged by what runs after all passes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic

from hlofuse.account import PRIORITY_FUSION, Account, KernelTimes
from hlofuse.account.account import scaled_time
from hlofuse.account.measured import NO_MEASURED_TIME
from hlofuse.compilation import Checkpoint, Compilation, CompilationInput, ReplayConfig, compile
from hlofuse.cost.combined import model_of
from hlofuse.cost.gpu.shared_tables import SharedTables
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.rules.priority_fusion.conditions import BITCAST_FIRST, DOES_NOT_PAY, PAYS
from hlofuse.rules.settings import PAIRS, PLANNED, FusionPlan, Intervention
from hlofuse.trace import Event

_NEVER = float("inf")
OBJECTIVES: dict[str, Callable[[Account, Account], float]] = {
    "time": lambda _, account: account.totals.us or 0.0,
    "measured-time": lambda xla, account: _NEVER if (us := scaled_time(xla, account)) is None else us,
    "kernels": lambda _, account: account.totals.kernels,
    "bytes": lambda _, account: account.totals.cost.bytes_accessed,
}
"""To be made small, by what runs with XLA's own plan and with another; infinite for an unknown time."""
_ORDERS = ("first", "last")


@dataclass(frozen=True, slots=True)
class Decision:
    """The last decision of a replay about a producer, or about two kernels that could have
    several results."""

    producer: str
    consumers: tuple[str, ...] = ()
    rule: str = ""
    us_saved: float | None = None  # as the queue saw it
    fused: bool = False


class Decisions:
    """The decisions of a replay, under the names of `Intervention`."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._origins: dict[str, str] = {}
        self._kernels: dict[str, set[str]] = {}
        self.producers: dict[str, Decision] = {}
        self.pairs: dict[frozenset[str], Decision] = {}
        for event in events:
            producer, consumer = self.origin(event.producer or ""), self.origin(event.consumer or "")
            fused, rule, figures = event.event == "fuse", event.rule or "", event.figures
            if event.pass_name == PRIORITY_FUSION and producer:
                before = self.producers.get(producer, Decision(producer))
                if before.fused and not fused:
                    continue  # it lives on for bitcasts
                users: tuple[str, ...] = (consumer,)
                us = figures.get("us_saved") if fused else None
                if event.us_fused is not None and event.us_unfused is not None:
                    us, users = event.us_unfused - event.us_fused, tuple(map(self.origin, event.consumers))
                    rule = PAYS.code if us >= 0 else DOES_NOT_PAY.code
                elif before.fused:
                    users = (*before.consumers, consumer)
                elif rule == PLANNED.code:
                    users = before.consumers
                self.producers[producer] = Decision(producer, users, rule, us, fused)
            elif event.pass_name == "multi_output_fusion" and (fused or rule == "GM033"):
                us = figures.get("us_unfused", 0.0) - figures.get("us_fused", 0.0)
                self.pairs[frozenset((producer, consumer))] = Decision(producer, (consumer,), rule, us, fused)
            if fused and event.fusion:
                self._origins[event.fusion] = consumer

    def origin(self, name: str) -> str:
        """The name before anything was fused into it."""
        return self._origins.get(name, name)

    def kernels_of(self, name: str) -> set[str]:
        """The kernels that an instruction is in after fusion; itself if it was fused into nothing."""
        if name not in self._kernels:
            self._kernels[name] = {name}
            about = [p for p in self.pairs.values() if p.producer == name]
            about += [self.producers[name]] if name in self.producers else []
            into = [c for d in about if d.fused for c in d.consumers]
            self._kernels[name] = set[str]().union(*map(self.kernels_of, into)) or {name}
        return self._kernels[name]


@dataclass(frozen=True)
class Outcome:
    plan: FusionPlan
    replay: Compilation
    account: Account
    value: float

    @cached_property
    def decisions(self) -> Decisions:
        """The decisions of XLA or of the plan."""
        return Decisions(self.replay.events)

    @cached_property
    def times(self) -> dict[str, float]:
        """Microseconds of the kernels, by what they grew from."""
        names, found = self.replay.names_at_fusion, dict[str, float]()
        for row in self.account.rows:
            name = self.decisions.origin(names.get(row.instruction.name, row.instruction.name))
            found[name] = found.get(name, 0.0) + (row.total_us or 0.0)
        return found

    def near(self, step: Intervention) -> set[str]:
        """The kernels that an intervention changes for the most part."""
        about = self.decisions.producers.get(step.producer, Decision(step.producer))
        around = filter(None, (step.producer, step.consumer, *about.consumers))
        return {step.producer}.union(*map(self.decisions.kernels_of, around))


@dataclass(frozen=True, slots=True)
class Change:
    """An intervention, what XLA decided in its place, and how much worse the plan is without it."""

    intervention: Intervention
    xla: Decision | None
    gain: float


@dataclass(frozen=True)
class PlanResult:
    """XLA's own plan and the best that was found: without any of its `changes` it is worse."""

    default: Outcome
    best: Outcome
    changes: tuple[Change, ...]
    plans: int

    @property
    def module(self) -> Module:
        """The module after fusion by the best plan."""
        return self.best.replay.after


def search_fusion_plan(
    input: CompilationInput | Module,
    config: ReplayConfig,
    *,
    objective: str = "time",
    seconds: float = 10.0,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
    attach: Callable[[Compilation], object] | None = None,
) -> PlanResult:
    """The best plan that a local search finds within some seconds; never worse than XLA's.

    `objective` is of `OBJECTIVES`. `progress` is called with the number of plans and the best value, `attach`
    joins XLA's own plan to a profile. HlofuseError for a target without priority fusion, and for
    `measured-time` where nothing was measured.
    """
    run, rng = _Plans(input, config, objective, seconds, progress, attach), random.Random(seed)
    best = run.minimal(_climb(run, run.default))
    while not run.over and (plan := _shaken(run, best, rng)) is not None:
        other = run.outcome(plan)
        if other.value < best.value * 1.02:
            other = _climb(run, other)
        if other.value < best.value - run.least:
            best = run.minimal(other)
    return run.result(best)


def _climb(run: _Plans, current: Outcome) -> Outcome:
    """The plan that no single intervention makes better, unless the time is over before."""
    start = None
    while current is not start and not run.over:
        start, gains = current, dict[Intervention, float]()
        steps = left = candidates(current.decisions)
        while left and not run.over:
            estimated, left = run.tried(current, left)
            gains |= estimated
            promising = [s for s in estimated if gains[s] > run.least]
            promising.sort(key=lambda s: -gains[s])
            before = current
            while promising and current is before and not run.over:
                current = run.better(current, promising)
                promising = promising[: len(promising) // 2]
        for step in sorted(steps, key=lambda s: -gains.get(s, 0.0)):
            current = current if run.over else run.better(current, [step])
    return current


def _shaken(run: _Plans, best: Outcome, rng: random.Random) -> FusionPlan | None:
    """A new plan with two or three more interventions about the same kernels; None if there seems none."""
    options = candidates(best.decisions)
    for _ in range(200 if options else 0):
        near = best.near(first := rng.choice(options))
        around = [s for s in options if not near.isdisjoint(best.near(s))]
        plan = with_steps(best.plan, [first, *rng.choices(around, k=rng.randint(1, 2))])
        if plan not in run.seen:
            return plan
    return None


def candidates(decisions: Decisions) -> list[Intervention]:
    """Alternative decisions: other fusions before other orders, the closest first."""
    found: list[tuple[bool, float, Intervention]] = []
    for d in decisions.producers.values():
        if d.rule == BITCAST_FIRST.code:
            continue
        for k in ("apart", *_ORDERS) if d.fused else _ORDERS:
            if d.fused or d.us_saved is not None or d.rule == PLANNED.code:
                found.append((d.fused and k in _ORDERS, abs(d.us_saved or 0.0), Intervention(k, d.producer)))
    for d in decisions.pairs.values():
        kind = "split" if d.fused else "join"
        found.append((False, abs(d.us_saved or 0.0), Intervention(kind, d.producer, *d.consumers)))
    return [step for *_, step in sorted(found)]


def with_steps(plan: FusionPlan, steps: Iterable[Intervention]) -> FusionPlan:
    """The plan with more interventions, each in the place of what it contradicts."""
    found: dict[object, Intervention] = {}
    for step in (*plan, *steps):
        pair = frozenset((step.producer, step.consumer)) if step.kind in PAIRS else step.producer
        found.pop(pair, None)
        found[pair] = step
    # Only what goes first does so in an order.
    return tuple(sorted(found.values(), key=lambda s: (1, "") if s.kind == "first" else (0, str(s))))


@dataclass
class _Plans:
    """Replays of one module with different plans, and what they have in common."""

    input: CompilationInput | Module
    config: ReplayConfig
    objective: str
    seconds: float
    progress: Callable[[int, float], None] | None = None
    attach: Callable[[Compilation], object] | None = None
    seen: set[FusionPlan] = field(default_factory=set)
    gains: dict[Intervention, float] = field(default_factory=dict)
    best: float = _NEVER

    def __post_init__(self) -> None:
        before = next((p for p in self.config.passes if p.startswith(PRIORITY_FUSION)), None)
        if before is None or self.config.device is None:
            raise HlofuseError(
                f"--space fusion needs priority fusion, which target {self.config.target} does not have"
            )
        self._device, self._checkpoint = self.config.device, Checkpoint(before)
        start = self.input if isinstance(self.input, CompilationInput) else CompilationInput(self.input)
        self._start = replace(start, record=None)  # a log names the fusions of XLA's own plan only
        self._cache, self._begun = SharedTables(), monotonic()
        self.default = self.outcome(())
        if self.default.value == _NEVER:
            raise HlofuseError(NO_MEASURED_TIME)
        self.least = 1e-4 * self.default.value  # what is less is no gain

    @property
    def over(self) -> bool:
        return monotonic() >= self._begun + self.seconds

    def outcome(self, plan: FusionPlan) -> Outcome:
        config = self.config
        if plan:
            changes = (*config.changes, *map(str, plan))
            settings = replace(config.settings, plan=plan)
            config = replace(config, settings=settings, changes=changes, xla=config.xla or config)
        try:
            done = compile(self._start, config, cache=self._cache, checkpoint=self._checkpoint)
        except OverflowError:  # so much is computed again and again that XLA's count of it is infinite
            if not plan:
                raise
            self.seen.add(plan)
            return replace(self.default, plan=plan, value=_NEVER)
        if not plan and self.attach is not None:
            self.attach(done)
        model = model_of(self._device, config.release, self._cache)
        account = KernelTimes(self._device, config.release, model).account(done.replayed_final)
        value = OBJECTIVES[self.objective](self.default.account if plan else account, account)
        self.best = min(self.best, value)
        self.seen.add(plan)
        if self.progress is not None:
            self.progress(len(self.seen), self.best)
        return Outcome(plan, done, account, value)

    def better(self, current: Outcome, steps: Iterable[Intervention]) -> Outcome:
        """The outcome with these steps as well if it is new and better, else `current`."""
        plan = with_steps(current.plan, steps)
        other = current if plan in self.seen else self.outcome(plan)
        return other if other.value < current.value - self.least else current

    def tried(
        self, current: Outcome, steps: Sequence[Intervention]
    ) -> tuple[dict[Intervention, float], list[Intervention]]:
        """The estimated gains of some of the steps, and the other steps.

        They are tried in one replay. No kernel is near two of them, so each gain belongs to one.
        """
        owner, gains, left = dict[str, Intervention](), dict[Intervention, float](), list[Intervention]()
        for step in steps:
            if with_steps(current.plan, [step]) in self.seen:
                continue
            near, order = current.near(step), step.kind in _ORDERS
            if not owner.keys().isdisjoint(near) or order != (steps[0].kind in _ORDERS):
                left.append(step)
                continue
            gains[step] = 0.0
            owner |= dict.fromkeys(near, step)
        if len(gains) > 1:
            other = self.outcome(with_steps(current.plan, gains))
            for name in (current.times.keys() | other.times.keys()) & owner.keys():
                gains[owner[name]] += current.times.get(name, 0.0) - other.times.get(name, 0.0)
        return gains, left

    def minimal(self, outcome: Outcome) -> Outcome:
        """The same, or a better one, without what gains nothing; `gains` has what the rest does."""
        at = needed = 0
        while needed < len(plan := outcome.plan):
            step = plan[at % len(plan)]
            other = self.outcome(tuple(s for s in plan if s != step))
            self.gains[step] = min(other.value, self.default.value) - outcome.value
            idle = other.value <= outcome.value + self.least / 10
            outcome, at, needed = (other, at, 0) if idle else (outcome, at + 1, needed + 1)
        return outcome

    def result(self, best: Outcome) -> PlanResult:
        """The best plan against XLA's, with what each intervention gains."""
        best = self.minimal(best) if best.value < self.default.value - self.least else self.default
        xla, changes = self.default.decisions, list[Change]()
        for step in best.plan:
            pair = xla.pairs.get(frozenset((step.producer, step.consumer)))
            changes.append(Change(step, pair or xla.producers.get(step.producer), self.gains[step]))
        changes.sort(key=lambda c: -c.gain)
        return PlanResult(self.default, best, tuple(changes), len(self.seen))
