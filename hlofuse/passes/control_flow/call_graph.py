"""Passes on the graph of calls."""

from collections.abc import Hashable

from hlofuse.analysis.custom_calls import is_inlined
from hlofuse.ir import Computation, Instruction, Module, numbered, replace, set_attribute, with_trait
from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.fusing import check_growth, instruction_limit
from hlofuse.matching.key import Keys
from hlofuse.passes.base import Pass
from hlofuse.passes.common.calls import clone_computation, hand_on_metadata, inline, set_called
from hlofuse.passes.dce import HloDCE
from hlofuse.trace import Recorder


class FlattenCallGraph(Pass):
    """`flatten-call-graph`; HlofuseError where calls multiply beyond reason (`flatten_call_graph.cc`)."""

    name = "flatten-call-graph"

    def run(self, module: Module, recorder: Recorder) -> bool:
        most = instruction_limit(module)
        size = module.instruction_count
        changed = False
        for computation in module.computation_post_order():
            for k, caller in enumerate(_by_id(computation)):
                if k == 0 and caller.called_computations.count(computation) <= 1:
                    continue
                changed = True
                fresh = _replace(caller, computation)
                while fresh:
                    body = fresh.pop()
                    size += len(body)
                    if size > most:
                        check_growth(module, most)
                    for inner in body:
                        fresh += _replace(inner, None)
        return changed


def _by_id(computation: Computation) -> list[Instruction]:
    """Callers by unique id, of which the order of computations and of instructions in them is left."""
    module, callers = computation.module, computation.callers
    assert module is not None
    if len(callers) < 2:
        return list(callers)
    place: dict[Computation | None, int] = numbered(module.computations)
    return sorted(callers, key=lambda i: (place.get(i.computation, -1), i.id))


def _replace(caller: Instruction, which: Computation | None) -> list[Computation]:
    """Copies take the place of what `caller` calls, of `which` or of everything; the copies."""
    if not caller.called:
        return []
    called = []
    fresh = []
    for name, callee in caller.called:
        if which is None or callee is which:
            callee = clone_computation(callee)
            fresh.append(callee)
        called.append((name, callee))
    set_called(caller, called)
    return fresh


class CallInliner(Pass):
    """Callees instead of calls, or HlofuseError for too many (`xla/service/call_inliner.cc`)."""

    name = "call-inliner"
    single_call_site: bool = False

    def run(self, module: Module, recorder: Recorder) -> bool:
        most = instruction_limit(module)
        changed = False
        sites = {c: len(c.callers) for c in module.computations}
        size = module.instruction_count
        for computation in module.printed_order():
            before = len(computation)
            for i in computation.post_order() if computation.module is not None else ():
                if not is_inlined(i):
                    continue
                if self.single_call_site and sites.get(i.called_computations[0], 1) != 1:
                    continue
                inline(i)
                changed = True
            size += len(computation) - before
            if size > most:
                check_growth(module, most)
        if changed:
            HloDCE().run(module, recorder)
        return changed


_MOST_INSTRUCTIONS = 128
_MOST_CONSTANT_BYTES = 1024
_COLLECTIVES = with_trait("collective") | with_trait("collective-start")


class HloComputationDeduplicator(Pass):
    """`computation-deduplicator`, for computations that are small and none of a collective's: calls of equal
    computations call one (`xla/hlo/transforms/simplifiers/hlo_computation_deduplicator.cc`)."""

    name = "computation-deduplicator"
    mark_fusions: bool = False
    """Fusions of equal computations stay, and their metadata names the first of them."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        instead = self._duplicates(module)
        if self.mark_fusions:
            # `HloModule::MarkFusionDuplications`.
            for fusion in module.instructions():
                first = instead.get(fusion.fused_computation) if fusion.is_fusion else None
                representative = first.fusion if first is not None else None
                if representative is not None:
                    for x in (representative, fusion):
                        given = x.attributes.get("metadata") or OpMetadata()
                        metadata = replace(given, deduplicated_name=representative.name)
                        set_attribute(x, "metadata", metadata)
            return bool(instead)
        for copy, found in instead.items():
            for caller in list(copy.callers):
                set_called(caller, [(name, found if c is copy else c) for name, c in caller.called])
            if not copy.callers:
                module.remove_computation(copy)
        return bool(instead)

    def _duplicates(self, module: Module) -> dict[Computation, Computation]:
        keys = Keys()
        first = dict[Hashable, Computation]()
        instead = {}
        for computation in module.computation_post_order():
            if computation.is_entry or len(computation) > _MOST_INSTRUCTIONS:
                continue
            # What a fusion calls is its own: others may not call it.
            excluded = _COLLECTIVES if self.mark_fusions else {*_COLLECTIVES, "fusion"}
            if any(caller.opcode in excluded for caller in computation.callers):
                continue
            constants = sum(i.byte_size for i in computation if i.is_constant)
            if constants > _MOST_CONSTANT_BYTES:
                continue
            shapes = tuple(p.shape.key for p in computation.parameters)
            key = (keys.computation(computation), shapes, len(computation))
            found = first.setdefault(key, computation)
            if found is not computation:
                instead[computation] = found
        return instead


class PropagateCallMetadata(Pass):
    """Callers first: a call's origin is handed on (`xla/hlo/transforms/propagate_call_metadata.cc`)."""

    name = "propagate-call-metadata"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in reversed(module.non_fusion_computations()):
            if all(x.opcode != "call" for x in computation):
                continue
            for call in computation.post_order():
                if call.opcode != "call":
                    continue
                for callee in call.called_computations:
                    for x in callee.post_order():
                        changed |= hand_on_metadata(call, x, module)
        return changed
