"""XLA:GPU before priority fusion: its fusions are made again, and where that tells nothing asked as they are.

`InstructionFusion` decides about single instructions, so its reasons are had by making the fusions again.
What that does not tell (a bitcast lies between the two kernels, one comes out differently, or all that was
said is that the two cannot share an array, since one needs the other) is what the passes say of the finished
kernels, `FusionMerger` first: merging those is what it is for.
"""

from __future__ import annotations

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Module
from hlofuse.passes.fusion.fusion_merger import FusionMerger
from hlofuse.passes.fusion.gpu_instruction_fusion import GpuInstructionFusion
from hlofuse.replay import replay
from hlofuse.reports.stages import refused_edges as made_again
from hlofuse.reports.stages.edges import edges
from hlofuse.reports.stages.model import Boundary
from hlofuse.rules.gpu_multi_output_fusion.siblings import CONNECTED
from hlofuse.trace import Event

_ASKED = (FusionMerger.name, GpuInstructionFusion.name)
"""Whose words are taken, the best first."""
_TARGET = "gpu-legacy"


def boundaries(module: Module, device: DeviceDescription) -> tuple[list[Boundary], str]:
    """Every pair of kernels with the rule that keeps it apart; and how that was found out."""
    found, how = made_again.boundaries(module, _TARGET, device)
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
