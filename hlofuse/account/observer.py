"""Observers of priority fusion: the estimates and ties of each fusion, and the graph at chosen moments."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hlofuse.compilation import PassObserver
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.ir import Instruction, Instructions, InstructionSequence, Predicate, Strings
from hlofuse.rules.gpu_fusible import is_fusible_bitcast
from .figures import StepCost, kernel_time

Look: TypeAlias = Callable[[CombinedModel, Instruction, InstructionSequence], None]
"""A function of the model, the producer and its consumers in the current graph."""
_Estimates: TypeAlias = tuple[tuple[Estimate, Estimate, Estimate], int, bool]
"""Estimates of both and of the fusion; the number of consumers, and whether the producer leaves."""
Moment: TypeAlias = tuple[str, int]  # A `fuse` or a `priority` event by number, each counted from 0


class Enough(Exception):
    """Raised once all moments were observed."""


class _Observer(PassObserver):
    def __init__(self) -> None:
        self.model: CombinedModel | None = None
        self.fusions = 0

    def begin(self, model: CombinedModel) -> None:
        self.model = model

    def _timed(self, producer: Instruction, consumers: InstructionSequence) -> Instructions:
        """The consumers with an estimate; bitcasts are free and have none."""
        if self.model is None:
            return []
        release = self.model.release
        return [c for c in consumers if not any(is_fusible_bitcast(i, release) for i in (producer, c))]


class CostObserver(_Observer):
    """Records the estimates and the ties of every fusion."""

    def __init__(self, *, with_ties: bool) -> None:
        super().__init__()
        self.ties = dict[int, Strings]()
        """Fusion number, from 0, to producers of equal priority that XLA may have fused first."""
        self._estimates = dict[int, _Estimates]()
        self._with_ties = with_ties
        self._tied: Strings = ()
        self._now = dict[str, _Estimates]()

    def cost(self, fusion: int) -> StepCost | None:
        found = self._estimates.get(fusion)
        if found is None:
            return None
        estimates, consumers, leaves = found
        first, second, both = map(kernel_time, estimates)
        if first is None or second is None or both is None:
            return None
        launch = self.model.device.launch_overhead_us if self.model is not None else 1.0
        return StepCost(first, second, both, consumers, leaves, launch)

    def fusing(self, producer: Instruction, consumers: InstructionSequence, is_tied: Predicate) -> None:
        self._now = {}
        self._tied = ()
        model = self.model
        if model is None or is_fusible_bitcast(producer, model.release):
            return
        into = self._timed(producer, consumers)
        leaves = len(into) == producer.user_count
        first = model.run_time(producer)
        for consumer in into:
            fused = model.cached_pair_time(producer, consumer)
            if fused is not None:
                estimates = first, model.run_time(consumer), fused
                self._now[consumer.name] = estimates, len(into), leaves
        if self._with_ties:
            near = [x for x in _interacting(producer) if is_tied(x)]
            near.sort(key=lambda x: -x.id)
            self._tied = tuple([x.name for x in near])

    def fused(self, fusion: Instruction, producer: str, consumer: str) -> None:
        estimates = self._now.get(consumer)
        if estimates is not None:
            self._estimates[self.fusions] = estimates
        if self._tied:
            self.ties[self.fusions] = self._tied
        self.fusions += 1


class MomentObserver(_Observer):
    """Calls functions with the graph at their moments; raises `Enough` after the last."""

    def __init__(self, looks: Mapping[Moment, Sequence[Look]]) -> None:
        super().__init__()
        self._looks = dict(looks)
        self._priorities = 0

    def fusing(self, producer: Instruction, consumers: InstructionSequence, is_tied: Predicate) -> None:
        model = self.model
        for place, consumer in enumerate(self._timed(producer, consumers)):
            if model is not None and model.cached_pair_time(producer, consumer) is not None:
                self._see(("fuse", self.fusions + place), producer, [consumer])

    def fused(self, fusion: Instruction, producer: str, consumer: str) -> None:
        self.fusions += 1

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        self._see(("priority", self._priorities), producer, producer.users)
        self._priorities += 1

    def _see(self, moment: Moment, producer: Instruction, consumers: InstructionSequence) -> None:
        looks = self._looks.pop(moment, ())
        model = self.model
        if not looks or model is None:
            return
        # The pass goes on with the estimates it has, not with those that a look computes.
        own, model.cache = model.cache, model.cache.copy()
        try:
            for look in looks:
                look(model, producer, consumers)
        finally:
            model.cache = own
        if not self._looks:
            raise Enough


def _interacting(producer: Instruction) -> set[Instruction]:
    """The instructions whose fusion affects decisions about the producer, and vice versa."""
    around = {*producer.users, *producer.operands}
    return around.union(*(user.operands for user in producer.users)) - {producer}
