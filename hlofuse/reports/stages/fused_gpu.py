"""XLA:GPU: priority fusion asks about finished fusions, too, so its rules are asked of the module as it is.

The questions are those of `PriorityFusionQueue::CalculateProducerPriority`
(`xla/backends/gpu/transforms/priority_fusion.cc`): may all users of the producer take it in, and does it pay?
"""

from __future__ import annotations

from hlofuse.analysis.fusible import is_fusible
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.ticks import microseconds
from hlofuse.format.units import us_text
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.fusion.priority_fusion.legality import Legality
from hlofuse.reports.stages.edges import edges
from hlofuse.reports.stages.model import Boundary
from hlofuse.rules.gpu_fusible import fusible_computations, is_fusible_bitcast
from hlofuse.rules.priority_fusion.cost import DOES_NOT_PAY
from hlofuse.rules.settings import AS_XLA
from hlofuse.rules.verdict import Verdict

HOW = "Priority fusion's rules and cost model were asked about each pair of kernels as it stands here."


def boundaries(module: Module, device: DeviceDescription) -> tuple[list[Boundary], str]:
    """Every pair of kernels with the rule that keeps it apart."""
    asked = copy_module(module)  # asking may not leave a trace in the caller's module
    question = _Question(asked, device)
    asked_about = {i for c in fusible_computations(asked) for i in c}
    found = []
    for producer, value, consumer, size in edges(asked):
        names = producer.name, consumer.name, size
        if producer not in asked_about:
            found.append(Boundary(*names, None, "the pass does not go through this computation"))
            continue
        # Of what is read as a bitcast only, XLA asks before it looks at who reads that; a kernel of several
        # results was asked about before it had them.
        unread = question.refusal(producer) if value.opcode == "bitcast" and is_fusible(producer) else None
        result = question.pair(producer, consumer) if value.opcode == "get-tuple-element" else None
        verdict = unread or result or question.answer(value, consumer)
        if verdict is None:
            words = "nothing in priority fusion keeps them apart: a later pass made it so"
            found.append(Boundary(*names, None, words))
        else:
            found.append(Boundary(*names, verdict.rule.code, verdict.reason, verdict.figures))
    return found, HOW


class _Question:
    """Asks as priority fusion does when it works out a producer's priority."""

    def __init__(self, module: Module, device: DeviceDescription) -> None:
        self._model = CombinedModel(device)
        self._launch = device.launch_ticks
        self._legality = Legality(module, self._model, AS_XLA)
        self._of_all: dict[Instruction, Verdict | None] = {}
        """What keeps a producer out of all its users together."""

    def answer(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """What keeps the two apart: a rule of theirs, of another user of the producer, or the cost."""
        verdict = self._legality.verdict(producer, consumer)
        if verdict is not None or not is_fusible(producer) or is_fusible_bitcast(producer):
            return verdict
        if producer not in self._of_all:
            self._of_all[producer] = self.refusal(producer) or self._cost(producer)
        return self._of_all[producer]

    def pair(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """What keeps these two apart, other users aside."""
        return self._legality.verdict(producer, consumer)

    def refusal(self, producer: Instruction) -> Verdict | None:
        """The rule that keeps it out of all of its users."""
        found = self._legality.refusal(producer)
        return found[0] if found is not None else None

    def _cost(self, producer: Instruction) -> Verdict | None:
        model = self._model
        users = producer.users
        fused = self._launch * len(users)
        unfused = fused + self._launch + model.run_time(producer).ticks
        for user in users:
            unfused += model.run_time(user).ticks
            fused += model.pair_time(producer, user, self._legality.pair(producer, user)).ticks
        if fused <= unfused:
            return None
        us = {"us_unfused": microseconds(unfused), "us_fused": microseconds(fused)}
        words = f"fused {us_text(us['us_fused'])}, unfused {us_text(us['us_unfused'])}"
        return Verdict(DOES_NOT_PAY, us, words)
