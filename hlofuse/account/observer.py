"""Watches priority fusion at work and takes down what its estimates were.

A guide that leaves every choice to the pass, or to another guide, and only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlofuse.account.figures import StepCost, kernel_time
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.ir.instruction import Instruction
from hlofuse.passes.fusion.priority_fusion.guide import Guide
from hlofuse.rules.gpu_fusible import is_fusible_bitcast


@dataclass(frozen=True, slots=True)
class _Estimates:
    """What was known when a producer went into a consumer; worked into figures when asked for."""

    producer: Estimate
    consumer: Estimate
    fused: Estimate
    consumers: int
    leaves: bool


Look: TypeAlias = Callable[[CombinedModel, Instruction, Sequence[Instruction]], None]
"""Given the model, the producer and its consumers as the graph stands then."""
Moment: TypeAlias = tuple[str, int]
"""When to look: at a `fuse` or a `priority`, and which, each counted from 0."""


class Enough(Exception):
    """Everything wanted has been seen."""


class Observer:
    """Estimates of every fusion, ties, and what `looks` find at their moments, the last of which ends it."""

    def __init__(
        self,
        guide: Guide | None = None,
        *,
        note_ties: bool = False,
        looks: Mapping[Moment, Sequence[Look]] | None = None,
    ) -> None:
        self.model: CombinedModel | None = None
        self.fusions = 0
        self.ties: dict[int, tuple[str, ...]] = {}
        """Fusion to the producers that XLA may have taken instead, with another result perhaps."""
        self._estimates: dict[int, _Estimates] = {}
        self._guide = guide
        self._note_ties = note_ties
        self._looks = dict(looks or {})
        self._priorities = 0
        self._equal: Sequence[Instruction] = ()
        self._tied: tuple[str, ...] = ()
        self._now: dict[str, _Estimates] = {}

    def cost(self, fusion: int) -> StepCost | None:
        """The figures of a fusion; None for bitcasts, which are free."""
        found = self._estimates.get(fusion)
        if found is None:
            return None
        first, second, both = (kernel_time(e) for e in (found.producer, found.consumer, found.fused))
        if first is None or second is None or both is None:
            return None
        launch = self.model.device.launch_overhead_us if self.model is not None else 1.0
        return StepCost(first, second, both, found.consumers, found.leaves, launch)

    # ------------------------------------------------------------ what the pass asks and tells

    def begin(self, model: CombinedModel) -> None:
        self.model = model
        if self._guide is not None:
            self._guide.begin(model)

    def order_updates(self, producers: list[Instruction]) -> None:
        if self._guide is not None:
            self._guide.order_updates(producers)

    def choose(self, equal: Sequence[Instruction]) -> Instruction:
        self._equal = equal
        return self._guide.choose(equal) if self._guide is not None else equal[0]

    def order_users(self, producer: Instruction) -> None:
        if self._guide is not None:
            self._guide.order_users(producer)

    def order_consumers(self, producer: Instruction, consumers: list[Instruction]) -> list[Instruction]:
        if self._guide is not None:
            consumers = self._guide.order_consumers(producer, consumers)
        self._now, self._tied = {}, ()
        if not is_fusible_bitcast(producer):
            self._take_down(producer, consumers)
            if self._note_ties and len(self._equal) > 1:
                near = _those_it_meets(producer)
                self._tied = tuple([x.name for x in self._equal if x in near])
        return consumers

    def fused(self, fusion: Instruction, producer: str, consumer: str) -> None:
        estimates = self._now.get(consumer)
        if estimates is not None:
            self._estimates[self.fusions] = estimates
        if self._tied:
            self.ties[self.fusions] = self._tied
        self.fusions += 1
        if self._guide is not None:
            self._guide.fused(fusion, producer, consumer)

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        if self._looks:
            self._see(("priority", self._priorities), producer, producer.users)
        self._priorities += 1
        if self._guide is not None:
            self._guide.priority(producer, us_fused, us_unfused)

    def refused(self, producer: Instruction, reason: str, all_reasons: Callable[[], Sequence[str]]) -> None:
        if self._guide is not None:
            self._guide.refused(producer, reason, all_reasons)

    # ------------------------------------------------------------ reading

    def _take_down(self, producer: Instruction, consumers: Sequence[Instruction]) -> None:
        model = self.model
        assert model is not None
        into = [c for c in consumers if not is_fusible_bitcast(c)]
        leaves = len(into) == len(producer.users)
        first = model.run_time(producer)
        for place, consumer in enumerate(into):
            fused = model.kept_pair_time(producer, consumer)
            if fused is None:
                continue
            self._now[consumer.name] = _Estimates(first, model.run_time(consumer), fused, len(into), leaves)
            if self._looks:
                self._see(("fuse", self.fusions + place), producer, [consumer])

    def _see(self, moment: Moment, producer: Instruction, consumers: Sequence[Instruction]) -> None:
        looks, model = self._looks.pop(moment, ()), self.model
        if not looks or model is None:
            return
        # The pass goes on with what it has kept, not with what a look makes the model keep.
        kept, model.kept = model.kept, model.kept.copy()
        try:
            for look in looks:
                look(model, producer, consumers)
        finally:
            model.kept = kept
        if not self._looks:
            raise Enough


class OtherOrder(Observer):
    """Takes `producer` where it is among the equals for a fusion (counted from 0); else as an Observer."""

    def __init__(self, fusion: int, producer: str) -> None:
        super().__init__()
        self._turned = fusion
        self._producer = producer

    def choose(self, equal: Sequence[Instruction]) -> Instruction:
        usual = super().choose(equal)
        if self.fusions != self._turned:
            return usual
        return next((x for x in equal if x.name == self._producer), usual)


def _those_it_meets(producer: Instruction) -> set[Instruction]:
    """Fusing one of these changes what there is to decide about the producer, and the other way round."""
    around = {*producer.users, *producer.operands}
    return around.union(*(user.operands for user in producer.users)) - {producer}
