"""Rules without which priority fusion would do something else."""

from dataclasses import replace
from typing import TypeAlias

from hlofuse.analysis.in_place import in_place_pairs, never_in_place
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.summary import SummaryPair
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.ir.graph import Instruction
from hlofuse.passes.fusion.priority_fusion.legality import Legality
from hlofuse.passes.fusion.priority_fusion.observers import Observer
from hlofuse.rules.gpu_fusible import is_fusible_bitcast
from hlofuse.rules.priority_fusion import STRUCTURE_RULES, TRITON_RULES, PriorityPair
from hlofuse.rules.settings import first_verdict
from hlofuse.rules.verdict import Verdict

_Fused: TypeAlias = "SummaryPair | bool"
"""An allowed pair; False where it is refused, True where that depends on the moment or on tile sizes."""


class DecisiveRules(Observer):
    """Finds them while the pass runs.

    Where another rule refuses a producer as well, or fusing it would not pay, the pass goes on the same way
    without the first rule. So it ends with the same module without any single rule that is not in `codes`.
    """

    def __init__(self) -> None:
        self.codes: set[str] = set()

    def refused(self, producer: Instruction, verdict: Verdict, legality: Legality) -> None:
        code = verdict.rule.code
        if code not in self.codes and not verdict.rule.fixed and self._may_pay(code, producer, legality):
            self.codes.add(code)

    def prevented(self, verdict: Verdict) -> None:
        self.codes.add(verdict.rule.code)

    def _may_pay(self, code: str, producer: Instruction, legality: Legality) -> bool:
        """False if the producer would not be fused without that rule either.

        The pass keeps what it has once found out of a pair. True where it could come out otherwise later.
        """
        model = legality.model
        fused, unfused = 0, model.device.launch_ticks + model.run_time(producer).ticks
        for user in producer.users:
            if user.opcode == "bitcast" and is_fusible_bitcast(user, model.release):
                pair: _Fused = model.pair(producer, user)
            else:
                pair = self._pair_without(code, producer, user, legality)
            if isinstance(pair, bool):
                return pair
            ticks = model.ticks_of(producer, user, pair)
            if ticks is None:
                return True
            fused += ticks
            unfused += model.run_time(user).ticks
        return unfused >= INFINITE or unfused >= fused

    def _pair_without(
        self, code: str, producer: Instruction, consumer: Instruction, legality: Legality
    ) -> _Fused:
        model = legality.model
        edge = model.cache[producer].answers.get(consumer)
        if isinstance(edge, SummaryPair):
            return edge
        if edge is None or edge.rule.code == code:
            edge = (legality.alone.get(producer) or legality.look_at(producer)).as_producer
            edge = edge or (legality.alone.get(consumer) or legality.look_at(consumer)).as_consumer
        if edge is not None:
            return bool(edge.rule.code == code)
        pair = model.pair(producer, consumer)
        settings = replace(legality.settings, disabled=legality.settings.disabled | {code})
        candidate = PriorityPair(producer, consumer, replace(legality.state, settings=settings), pair)
        if legality.tiles and (is_generic_triton_fusion(producer) or is_generic_triton_fusion(consumer)):
            return first_verdict(TRITON_RULES[:-1], candidate, settings) is None
        if first_verdict(STRUCTURE_RULES, candidate, settings) is not None:
            return False
        return pair if never_in_place(consumer) or not in_place_pairs(consumer, model.release) else True
