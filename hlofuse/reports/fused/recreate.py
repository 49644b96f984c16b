"""Fusions are taken apart and made again; what was refused on the way stands between them.

`InstructionFusion` hardly asks about a finished fusion as a producer: it works from the last consumer back,
so that a producer is still a single instruction when it is asked about. The reasons are therefore those of
the module as it was; they are told of a kernel only where making it again gives the same kernel.
"""

from __future__ import annotations

from hlofuse.analysis.fusible import is_fusible
from hlofuse.analysis.kernels import kernels
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.unfusing import check_growth, most_instructions, unfuse
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE
from hlofuse.replay import replay
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.refusals import told_of_kernels
from hlofuse.reports.fused.model import Boundary, edges
from hlofuse.trace import Recorder

_MADE_BY_FUSION = ("kLoop", "kInput", "kOutput")
_UNTOLD = frozenset({"constant", "tuple", "bitcast", "get-tuple-element"})


def take_apart(module: Module) -> tuple[Module, dict[str, str]]:
    """A copy without the fusions that fusion passes make, copies of one operation merged again.

    Also says which name each merged operation goes by.
    """
    apart = copy_module(module)
    apart.attributes = apart.attributes.without("is_scheduled")
    most = most_instructions(apart)
    pending = True
    while pending:
        pending = False
        for computation in list(apart.computations):
            if computation.fusion is not None or computation.module is None:
                continue
            for i in list(computation):
                if i.opcode == "fusion" and i.fusion_kind in _MADE_BY_FUSION:
                    unfuse(i)
                    pending = True
            check_growth(apart, most)
    recorder = Recorder()
    HloCSE(only_fusion_computations=False).run(apart, recorder)
    HloDCE().run(apart, recorder)
    merged = {
        old: e.added[0]
        for e in recorder.events
        if len(e.added) == 1
        for old in e.removed
        if old != e.added[0]
    }
    return apart, merged


def recreated_boundaries(
    module: Module, target: str, device: DeviceDescription | None = None
) -> tuple[list[Boundary], str]:
    """Every pair of kernels, with the reason where one is known; and how that was found out."""
    apart, merged = take_apart(module)
    made = replay(apart, target, device=device)
    facts = Facts(made)
    again = _made_again(module, facts, merged)
    told = told_of_kernels(made, facts)
    found = []
    for producer, _, consumer, size in edges(module):
        ours = again.get(producer), again.get(consumer)
        refusal = told.get((ours[0], ours[1])) if ours[0] is not None and ours[1] is not None else None
        rule = figures = None
        reason = ""
        if refusal is not None:
            rule, reason, figures = refusal.rule, refusal.reason or "", refusal.figures
        elif not is_fusible(consumer):
            reason = f"{consumer.opcode} takes no producer in: the pass does not ask about it"
        elif None in ours:
            other = producer.name if ours[0] is None else consumer.name
            reason = f"{other} comes out differently when it is made again"
        else:
            reason = "no decision was taken about the two"
        found.append(Boundary(producer.name, consumer.name, size, rule, reason, figures))
    how = (
        f"The fusions were taken apart and made again as XLA would: {len(again):,} of"
        f" {len(kernels(module)):,} kernels come out the same, and of those reasons are told."
    )
    return found, how


def _made_again(module: Module, facts: Facts, merged: dict[str, str]) -> dict[Instruction, str]:
    """The kernels that were made again with the same content, and their new names."""

    def survivor(name: str) -> str:
        while name in merged:
            name = merged[name]
        return name

    ours: dict[frozenset[str], str] = {}
    for name in facts.launched_after:
        content = frozenset(m for m in facts.lineage.members(name) if m in facts.before)
        ours[_telling(content, facts)] = name
    out = {}
    for kernel in kernels(module):
        members = kernel.fused_computation if kernel.opcode == "fusion" and kernel.called else (kernel,)
        if kernel.fusion_kind == "kCustom":
            members = (kernel,)
        content = frozenset(survivor(i.name) for i in members if i.opcode != "parameter")
        again = ours.get(_telling(content, facts))
        if again is not None:
            out[kernel] = again
    return out


def _telling(names: frozenset[str], facts: Facts) -> frozenset[str]:
    """Without what is in no kernel's way: constants, and views of what is computed elsewhere."""
    return frozenset(n for n in names if n in facts.before and facts.before[n].opcode not in _UNTOLD)
