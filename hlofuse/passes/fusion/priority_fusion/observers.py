"""Observers of the pass, and tie breakers for ties that rules and costs leave open."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from hlofuse.ir import Instruction, Instructions, InstructionSequence, Predicate, Record
from hlofuse.rules.verdict import Verdict
from hlofuse.trace.priority_record import FusionStep, IneligibleStep, PriorityRecord, PriorityStep

if TYPE_CHECKING:
    from hlofuse.cost.combined import CombinedModel
    from .legality import Legality


class Observer:
    """Sees every decision of the pass and changes none. Each method does nothing unless overridden."""

    def begin(self, model: "CombinedModel") -> None:
        """The pass starts. Its estimates are in `model`, to be read only."""

    def fusing(
        self,
        producer: Instruction,
        consumers: InstructionSequence,
        is_tied: Predicate,
    ) -> None:
        """The producer is about to be fused; `is_tied` finds others of its priority."""

    def fused(self, fusion: Instruction, producer: str, consumer: str) -> None:
        """`fusion` now holds the producer; the names are those from before."""

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        """A priority was computed."""

    def refused(self, producer: Instruction, verdict: Verdict, legality: "Legality") -> None:
        """The producer was refused; `legality` knows what else speaks against its users."""


class TieBreaker(Observer):
    """Chooses where rules and costs allow several orders; by default as ids and use-lists say."""

    def order_updates(self, producers: Instructions) -> None:
        """Put the producers in the order in which priorities are computed: equal pairs share a tiling."""

    def choose(self, tied: InstructionSequence) -> Instruction:
        """The next of several producers with the same, greatest priority."""
        return tied[0]

    def order_users(self, producer: Instruction) -> None:
        """Put the users of a producer in order before its priority is computed."""

    def order_consumers(self, producer: Instruction, consumers: Instructions) -> Instructions:
        return consumers


_RELATIVE_TOLERANCE = 1e-3
_Placed: TypeAlias = "tuple[int, PriorityStep | IneligibleStep]"


class Disagreement(Record):
    """A decision in XLA's fusion log and the replay's; None where one side has none."""

    kind: str  # choice, fusion, priority or refusal
    step: int  # Fusions made before
    producer: str
    xla: str | None
    ours: str | None


class RecordedOrder(TieBreaker):
    """Breaks ties as a record does, and notes where the pass disagrees with it."""

    def __init__(self, record: PriorityRecord) -> None:
        self.agreed = 0  # Records that came out equal
        self.total = len(record.steps)
        self.disagreements = list[Disagreement]()
        self._fusions = deque(record.fusions())
        self._fusion_count = 0
        self._named = dict[str, Instruction]()
        self._about = dict[str, deque[_Placed]]()
        for place, step in enumerate(record.steps):
            if not isinstance(step, FusionStep):
                self._about.setdefault(step.producer, deque()).append((place, step))

    def finish(self) -> None:
        """Note what the record has beyond what the pass did."""
        for fusion in self._fusions:
            self._note("fusion", fusion.producer, f"into {fusion.consumer}", None)
        for steps in self._about.values():
            for _, step in steps:
                kind = "priority" if isinstance(step, PriorityStep) else "refusal"
                self._note(kind, step.producer, _text(step), None)

    def order_updates(self, producers: Instructions) -> None:
        about = self._about
        producers.sort(key=lambda p: about[p.name][0][0] if about.get(p.name) else 0)

    def choose(self, tied: InstructionSequence) -> Instruction:
        wanted = self._fusions[0].producer if self._fusions else None
        for producer in tied:
            if producer.name == wanted:
                return producer
        return tied[0]

    def order_users(self, producer: Instruction) -> None:
        steps = self._about.get(producer.name)
        step = steps[0][1] if steps else None
        if isinstance(step, PriorityStep):
            _reorder(producer.users, step.consumers)

    def order_consumers(self, producer: Instruction, consumers: Instructions) -> Instructions:
        order = list[str]()
        for step in self._fusions:
            if step.producer != producer.name or step.consumer in order:
                break
            order.append(step.consumer)
        _reorder(consumers, order)
        return consumers

    def fused(self, fusion: Instruction, producer: str, consumer: str) -> None:
        actual = f"into {consumer}"
        if not self._fusions:
            self._note("fusion", producer, None, actual)
            return
        step = self._fusions.popleft()
        if (step.producer, step.consumer) == (producer, consumer):
            self.agreed += 1
        else:
            self._note("choice", producer, f"{step.producer} into {step.consumer}", f"{producer} {actual}")
        # After another choice than XLA's, the name may be that of another fusion.
        other = self._named.get(step.fusion, fusion)
        if other is fusion or other.computation is None:
            fusion.name = step.fusion
            if fusion.computation is not None and fusion.computation.module is not None:
                fusion.computation.module.instruction_names.reserve([step.fusion])
        self._named[fusion.name] = fusion
        self._fusion_count += 1

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        actual = f"{us_fused:g} fused, {us_unfused:g} unfused"
        step = self._next(producer)
        if not isinstance(step, PriorityStep):
            self._note("priority", producer.name, None if step is None else _text(step), actual)
        elif not _near(step.us_fused, us_fused) or not _near(step.us_unfused, us_unfused):
            self._note("priority", producer.name, _text(step), actual)
        elif sorted(step.consumers) != sorted(u.name for u in producer.users):
            actual = ", ".join(u.name for u in producer.users)
            self._note("priority", producer.name, ", ".join(step.consumers), actual)
        else:
            self.agreed += 1

    def refused(self, producer: Instruction, verdict: Verdict, legality: "Legality") -> None:
        step, reason = self._next(producer), verdict.reason
        # Which of several refusing users is named depends on an order that no record shows.
        if isinstance(step, IneligibleStep) and (
            step.reason == reason or step.reason in legality.all_reasons(producer)
        ):
            self.agreed += 1
        else:
            self._note("refusal", producer.name, None if step is None else _text(step), reason)

    def _next(self, producer: Instruction) -> PriorityStep | IneligibleStep | None:
        steps = self._about.get(producer.name)
        return steps.popleft()[1] if steps else None

    def _note(
        self,
        kind: str,
        producer: str,
        xla: str | None,
        actual: str | None,
    ) -> None:
        self.disagreements.append(Disagreement(kind, self._fusion_count, producer, xla, actual))


def _near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= _RELATIVE_TOLERANCE * max(abs(a), abs(b))


def _text(step: PriorityStep | IneligibleStep) -> str:
    if isinstance(step, IneligibleStep):
        return step.reason
    return f"{step.us_fused:g} fused, {step.us_unfused:g} unfused"


def _reorder(users: Instructions, names: Sequence[str]) -> None:
    place = {name: k for k, name in enumerate(names)}
    # Bitcasts among the users are not recorded when the others are fused.
    ordered = iter(sorted((u for u in users if u.name in place), key=lambda u: place[u.name]))
    users[:] = [next(ordered) if u.name in place else u for u in users]
