"""Whether a producer may be fused into a consumer, computed once for each structure of a pair."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

from hlofuse.analysis.components import depends_on
from hlofuse.analysis.in_place import in_place_pairs, never_in_place
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.summary import Summary, SummaryPair
from hlofuse.cost.tiling.constraints import Refusal, Tiling
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.graph import Instruction, InstructionSequence, Module
from hlofuse.matching.key import Keys
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, is_scatter_fusion, may_be_fused
from hlofuse.rules.instruction_fusion import FusionState
from hlofuse.rules.priority_fusion import (
    IN_PLACE_RULES,
    OF_CONSUMER,
    OF_PRODUCER,
    SCATTER_RULES,
    STRUCTURE_RULES,
    TRITON_RULES,
    PairRule,
    PriorityPair,
    PriorityState,
)
from hlofuse.rules.priority_fusion.conditions import NO_USERS, ONLY_BITCASTS
from hlofuse.rules.settings import Settings, first_verdict, pair_refusal
from hlofuse.rules.verdict import Verdict

PairId: TypeAlias = tuple[int, int, int, bool]
"""Numbers of producer and consumer, the operand's place, whether the producer stays an output."""


class StructuralIds:
    """Numbers of instructions; a fusion gets its number from what it was made of."""

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        keys = Keys()
        ids = dict[Hashable, int]()
        self._numbers = dict[Instruction, int]()
        for instruction in instructions:
            operands = tuple([o.shape.key for o in instruction.operands])
            key = (keys.instruction(instruction), instruction.payload, operands)
            self._numbers[instruction] = ids.setdefault(key, len(ids))
        self._next = len(ids)
        self._pairs = dict[PairId, int]()

    def pair(
        self,
        producer: Instruction,
        consumer: Instruction,
        extra_outputs: bool,
    ) -> PairId | None:
        """The id of the pair, to be asked before fusing; None if one of the two has no number."""
        first, second = self._numbers.get(producer), self._numbers.get(consumer)
        if first is None or second is None:
            return None
        pair = (first, second, consumer.operands.index(producer), extra_outputs)
        if pair not in self._pairs:
            self._pairs[pair] = self._next
            self._next += 1
        return pair

    def fused(self, fusion: Instruction, pair: PairId | None) -> None:
        if pair is not None:
            self._numbers[fusion] = self._pairs[pair]


_NO_USERS, _ONLY_BITCASTS = Verdict(NO_USERS), Verdict(ONLY_BITCASTS)
_Edge: TypeAlias = "Verdict | SummaryPair"
"""The answer for a producer and a consumer: the refusal, or the structure of an allowed pair."""


class _Alone:
    """The facts about an instruction that hold whatever its neighbours."""

    __slots__ = ("as_consumer", "as_producer", "never_in_place", "summary", "works_in_place")

    as_producer: Verdict | None  # None where no rule forbids it
    as_consumer: Verdict | None
    summary: Summary | None  # None until first use, like the next one
    works_in_place: bool | None
    never_in_place: bool  # Nor will it with something fused in


class Legality:
    """Verdicts of one run of the pass; None where a pair is allowed."""

    def __init__(self, module: Module, model: CombinedModel, settings: Settings) -> None:
        self.model, self._cache = model, model.cache
        self._find_pair = model.tables.pairs.find
        self.settings = settings
        self.state = PriorityState(
            model,
            settings,
            TritonSupport(model.device, model.release),
            self._tile,
            FusionState(True, model.release, settings, lambda _: False),
        )
        self.alone = dict[Instruction, _Alone]()
        self._by_structure = dict[SummaryPair, _Edge]()  # pairs that a rule from outside allows
        self.tilings = dict[PairId | None, Tiling | Refusal]()
        # Nothing becomes a Triton fusion unless a neighbour is one already. Only then do pairs have tilings.
        self._has_triton = any(is_generic_triton_fusion(x) for x in module.instructions() if x.is_fusion)
        numbered = [x for x in module.instructions() if self._has_triton and may_be_fused(x, model.release)]
        self.ids = StructuralIds(numbered)

    def verdict(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """The refusal of this pair, kept by the model until one of the two changes (`CanFuseCached`)."""
        answers = self._cache[producer].answers
        edge = answers.get(consumer)
        if edge is None:
            edge = answers[consumer] = self._legality(producer, consumer)
        return edge if isinstance(edge, Verdict) else None

    def _legality(self, producer: Instruction, consumer: Instruction) -> _Edge:
        """`PriorityFusionQueue::CanFuse`."""
        alone = self.alone
        first = alone.get(producer) or self.look_at(producer)
        if first.as_producer is not None:
            return first.as_producer
        second = alone.get(consumer) or self.look_at(consumer)
        if second.as_consumer is not None:
            return second.as_consumer
        a = first.summary
        if a is None:
            a = first.summary = self.model.summary(producer)
        b = second.summary
        if b is None:
            b = second.summary = self.model.summary(consumer)
        pair = self._find_pair(producer, a, consumer, b)
        if self._has_triton and (is_generic_triton_fusion(producer) or is_generic_triton_fusion(consumer)):
            return self._first(TRITON_RULES, producer, consumer) or pair
        found = self._by_structure.get(pair)
        if found is None:
            found = self._first(STRUCTURE_RULES, producer, consumer, pair) or pair
            self._by_structure[pair] = found
        if found is not pair:
            return found
        in_place = second.works_in_place
        if in_place is None:
            second.never_in_place = never_in_place(consumer)
            in_place = not second.never_in_place and bool(in_place_pairs(consumer, self.model.release))
            second.works_in_place = in_place
        return (self._first(IN_PLACE_RULES, producer, consumer, pair) or pair) if in_place else pair

    def look_at(self, instruction: Instruction) -> _Alone:
        alone = self.alone[instruction] = _Alone()
        alone.summary = alone.works_in_place = None
        alone.never_in_place = False
        alone.as_producer = self._first(OF_PRODUCER, instruction, instruction)
        alone.as_consumer = self._first(OF_CONSUMER, instruction, instruction)
        return alone

    def _first(
        self,
        rules: Sequence[PairRule],
        producer: Instruction,
        consumer: Instruction,
        pair: SummaryPair | None = None,
    ) -> Verdict | None:
        return first_verdict(rules, PriorityPair(producer, consumer, self.state, pair), self.settings)

    def pair(self, producer: Instruction, consumer: Instruction) -> SummaryPair:
        """The structure of the pair (`KernelModel.pair`), kept as long as its verdict."""
        edge = self._cache[producer].answers.get(consumer)
        return edge if isinstance(edge, SummaryPair) else self.model.pair(producer, consumer)

    def refusal(self, producer: Instruction) -> tuple[Verdict, Instruction | None] | None:
        """The first refusal among the users, and whose (`CanFuseWithAllNonBitcastUsers`)."""
        if not producer.users:
            return _NO_USERS, None
        answers = self._cache[producer].answers
        only_bitcasts = True
        for user in producer.users:
            if not user.is_bitcast or not is_fusible_bitcast(user, self.model.release):
                only_bitcasts = False
                if isinstance(answers.get(user), SummaryPair):
                    continue
                if (refused := self.verdict(producer, user)) is not None:
                    return refused, user
        return (_ONLY_BITCASTS, None) if only_bitcasts else None

    def all_reasons(self, producer: Instruction) -> list[str]:
        users = [u for u in producer.users if not is_fusible_bitcast(u, self.model.release)]
        if not users:
            return [(_ONLY_BITCASTS if producer.users else _NO_USERS).reason]
        verdicts = [self.verdict(producer, user) for user in users]
        return [v.reason for v in verdicts if v is not None]

    def sole_extra_output(self, producer: Instruction) -> Instruction | None:
        """The one user that can compute the producer as a further output of its Triton kernel, if there is
        just one (`FindPossibleConsumersForTritonMultiOutputFusion`)."""
        users = [u for u in producer.users if not is_fusible_bitcast(u, self.model.release)]
        possible = [u for u in users if self._extra_output(producer, u)]
        return possible[0] if len(possible) == 1 else None

    def _extra_output(self, producer: Instruction, user: Instruction) -> bool:
        if not (is_generic_triton_fusion(producer) or is_generic_triton_fusion(user)):
            return False
        # Whether there is a tiling is asked last, and here with the further output.
        if self._first((*OF_PRODUCER, *OF_CONSUMER), producer, user) is not None:
            return False
        pair = PriorityPair(producer, user, self.state)
        if pair_refusal(TRITON_RULES[:-1], pair, self.settings) is not None:
            return False
        if isinstance(self._tile(producer, user, extra_outputs=True), Refusal):
            return False
        return not any(o is not producer and depends_on(o, producer) for o in user.operands)

    def constant_refused(self, constant: Instruction, user: Instruction) -> bool:
        """`PriorityFusion::CanFuseConstant`."""
        if is_scatter_fusion(user) and self._first(SCATTER_RULES, constant, user) is not None:
            return True
        if is_generic_triton_fusion(user):
            return self.state.triton.instruction(constant) is not None
        return not may_be_fused(user, self.model.release)

    def grown(self, consumer: Instruction, *, stays: bool) -> None:
        """Something was fused into it. `stays`: as an own kernel with one result, rules say what they did."""
        alone = self.alone
        if not stays:
            alone.pop(consumer, None)
        elif (answers := alone.get(consumer)) is not None:
            answers.summary = None
            if not answers.never_in_place:
                answers.works_in_place = None

    def _tile(
        self, producer: Instruction, consumer: Instruction, *, extra_outputs: bool = False
    ) -> Tiling | Refusal:
        """`GetTiledRunTimeDataCached`; the cost becomes the pair's time."""
        pair = self.ids.pair(producer, consumer, extra_outputs)
        tiling = self.tilings.get(pair)
        if tiling is None:
            tiling = self.model.tiling.best_tiling(producer, consumer, extra_outputs=extra_outputs)
            if pair is not None:
                self.tilings[pair] = tiling
        if isinstance(tiling, Tiling):
            self.model.cache[producer].times[consumer] = tiling.estimate
        return tiling

    def tilings_of(
        self, producer: Instruction, consumers: InstructionSequence, extra_outputs: bool
    ) -> dict[Instruction, Tiling]:
        """The tilings that pairs will get as Triton fusions (`GetCurrentBlockLevelParametersMap`)."""
        found = {}
        for consumer in consumers:
            tiling = self.tilings.get(self.ids.pair(producer, consumer, extra_outputs))
            if isinstance(tiling, Tiling):
                found[consumer] = tiling
        return found
