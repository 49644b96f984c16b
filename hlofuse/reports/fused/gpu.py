"""XLA:GPU: the rules of the passes, asked about the kernels of a fused module as they stand.

Priority fusion decides about finished fusions, too. The order is that of
`PriorityFusionQueue::CalculateProducerPriority` (`xla/backends/gpu/transforms/priority_fusion.cc`): may all
users of the producer take it in, and does it pay?

Before priority fusion, `InstructionFusion` decided about single instructions, so the fusions are made again
and its refusals read off. Where that leaves a pair open (a bitcast lies between, a kernel comes out
differently, or the rule is only that the two cannot share an array), the passes' verdict on the finished
kernels counts, `FusionMerger`'s first: it exists to merge those.
"""

from __future__ import annotations

from hlofuse.analysis.fusible import is_fusible
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.ticks import microseconds
from hlofuse.format.units import us_text
from hlofuse.ir.copy import copy_module
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.passes.fusion.fusion_merger import FusionMerger
from hlofuse.passes.fusion.gpu_instruction_fusion import GpuInstructionFusion
from hlofuse.passes.fusion.priority_fusion.legality import Legality
from hlofuse.replay import replay
from hlofuse.reports.fused.model import Boundary, edges
from hlofuse.reports.fused.recreate import recreated_boundaries
from hlofuse.rules.gpu_fusible import fusible_computations, is_fusible_bitcast
from hlofuse.rules.gpu_multi_output_fusion.siblings import CONNECTED
from hlofuse.rules.priority_fusion.cost import DOES_NOT_PAY
from hlofuse.rules.settings import AS_XLA
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Event

HOW = "Priority fusion's rules and cost model were asked about each pair of kernels as it stands here."

_ASKED = (FusionMerger.name, GpuInstructionFusion.name)
"""Whose words are taken, the best first."""
_TARGET = "gpu-legacy"


def gpu_boundaries(module: Module, device: DeviceDescription) -> tuple[list[Boundary], str]:
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


def legacy_boundaries(module: Module, device: DeviceDescription) -> tuple[list[Boundary], str]:
    """Every pair of kernels with the rule that keeps it apart; and how that was found out."""
    found, how = recreated_boundaries(module, _TARGET, device)
    said = _said_of(module, device)
    values = {(p.name, c.name): value.name for p, value, c, _ in edges(module)}
    out = []
    asked = 0
    for b in found:
        told = said.get((values[b.producer, b.consumer], b.consumer))
        if told is not None and (b.rule is None or b.rule == CONNECTED.code):
            asked += 1
            b = Boundary(b.producer, b.consumer, b.bytes_between, told.rule, told.reason or "", told.figures)
        out.append(b)
    if asked:
        how += f" For {asked:,} pairs more the passes were asked about the kernels as they stand here."
    return out, how


def _said_of(module: Module, device: DeviceDescription) -> dict[tuple[str, str], Event]:
    """The last refusal of each value and user by the pass that is asked first, in the module as it stands."""
    refused: dict[str, dict[tuple[str, str | None], Event]] = {name: {} for name in _ASKED}
    for p in replay(module, _TARGET, device=device).passes:
        for e in p.events:
            if e.event == "ineligible" and e.producer is not None and e.pass_name in refused:
                refused[e.pass_name][e.producer, e.consumer] = e
    out = {}
    for _, value, consumer, _ in edges(module):
        answers = (refused[name].get((value.name, user)) for name in _ASKED for user in (consumer.name, None))
        told = next((e for e in answers if e is not None), None)
        if told is not None:
            out[value.name, consumer.name] = told
    return out
