"""Passes that remove annotations, which compute nothing: placements, shardings, barriers."""

from collections import Counter
from dataclasses import field

from hlofuse.analysis.async_ops import replica_groups
from hlofuse.analysis.custom_calls import (
    PLACEMENTS,
    SHARDY,
    custom_call_target,
    hands_on,
    is_divided,
    partitions_of,
)
from hlofuse.analysis.memory_scheduler import breadth_first
from hlofuse.ir import Computation, Instruction, Module, Predicate, values
from hlofuse.ir.removing import move_control_dependencies, replace_instruction
from hlofuse.passes.base import Pass, any_change, find_each
from hlofuse.passes.common import make
from hlofuse.trace import Recorder
from .partition import Partition, inline_calls


class StripMemoryPlacementAnnotations(Pass):
    name = "strip-memory-placement-annotations"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return remove_annotations(module, lambda i: custom_call_target(i) in PLACEMENTS)


_MOVES = {"pinned_host": "MoveToHost", "unpinned_host": "MoveToHost", "device": "MoveToDevice"}


class ConvertMemoryPlacementToInternalAnnotations(Pass):
    """Moves to named memory (`xla/hlo/transforms/convert_memory_placement_to_internal_annotations.cc`)."""

    name = "convert-memory-placement-to-internal-annotations"

    def run(self, module: Module, recorder: Recorder) -> bool:
        every = find_each(module, custom_call_target, Computation.post_order)
        return any_change(_move(x) for x in every if custom_call_target(x) == "annotate_device_placement")


def _move(annotation: Instruction) -> bool:
    target = _MOVES.get(annotation.frontend_attributes.get("_xla_buffer_placement", ""))
    source = annotation.operand
    return target is not None and replace_instruction(
        annotation,
        make.add(annotation, "custom-call", source.shape, [source], custom_call_target=f'"{target}"'),
    )


class ShardyXLA(Pass, kw_only=True):
    """`shardy-xla` and the partitioner after it, of which this is repeated: a program whose devices exchange
    only what is written and sums becomes that of one device; Shardy's calls that change no shape go."""

    name = "shardy-xla"
    first: Pass | None = field(default=None, compare=False, repr=False)
    """The pipeline that runs before it on a program for several devices."""
    folds_sums: bool = field(default=False, compare=False, repr=False)
    """True where `all-reduce-folder` runs after it."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if partitions_of(module) > 1:
            inline_calls(module)
            if self.first is not None:
                self.first.run(module, recorder)
                recorder.begin_pass(self.name)
        partition = Partition(module)
        if partition.is_complete:
            partition.apply(folds_sums=self.folds_sums)
        elif is_divided(module):
            recorder.unimplemented(Counter(partition.open))
        return remove_annotations(module, _is_shardy) or partition.is_complete


_LATER = values("FuncResultSharding PropagationBarrier ShardingGroup")  # Annotations for `sharding-remover`


def _is_shardy(instruction: Instruction) -> bool:
    target = custom_call_target(instruction)
    return target.startswith(SHARDY) and target.removeprefix(SHARDY) not in _LATER


def remove_annotations(module: Module, chosen: Predicate = hands_on) -> bool:
    """Have who reads an annotation read its operand; True if there was one."""
    changed = False
    for i in list(module.instructions()):
        if chosen(i) and hands_on(i):
            i.replace_all_uses_with(i.operand)
            i.drop_all_control_dependencies()
            i.parent.remove_instruction(i)
            changed = True
    return changed


_GROUP = "xla.sdy.ShardingGroup"
_LEFT = {"SPMDShardToFullShape", "SPMDFullToShardShape"}
_COPIED = set(
    "Sharding ShardBarrierFrom ShardBarrierTo xla.sdy.FuncResultSharding xla.sdy.PropagationBarrier".split()
)


class ShardingRemover(Pass):
    """On one device nothing is sharded: what says how goes (`xla/service/sharding_remover.cc`)."""

    name = "sharding-remover"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computations:
            for x in reversed(computation.post_order()):
                if changes_shape(x):
                    recorder.skipped(x, "a program partitioned by hand, before the partitioner ran")
                else:
                    changed |= _remove(x, custom_call_target(x))
        return changed


def changes_shape(x: Instruction) -> bool:
    """True if `x` goes from an array to one device's part of it or back: only the partitioner can say how."""
    return custom_call_target(x) in _LEFT and x.sizes != x.operand.sizes


def _remove(call: Instruction, target: str) -> bool:
    if target == _GROUP:
        call.parent.remove_instruction(call)
        return False
    if target not in _LEFT and target not in _COPIED:
        return False
    operand = call.operand
    call.replace_all_uses_with(operand)
    if target in _COPIED:  # clean-ups leave such a call and take its copy
        replace_instruction(call, make.unary(call, "copy", operand, call.shape))
    return True


_REASON = "What the barrier kept in order has been scheduled"


class OptimizationBarrierExpander(Pass):
    """`cse_barrier_expander`: each barrier gives way to its operand (`optimization_barrier_expander.cc`)."""

    name = "cse_barrier_expander"
    is_scheduled: bool = False  # XLA:CPU has put the instructions in order before

    def run(self, module: Module, recorder: Recorder) -> bool:
        barriers = find_each(module, lambda i: i.opcode == "opt-barrier")
        if self.is_scheduled:
            module.schedules |= {x.parent: breadth_first(x.parent) for x in barriers}
        for barrier in barriers:
            operand, computation = barrier.operand, barrier.parent
            move_control_dependencies(barrier, operand)
            barrier.replace_all_uses_with(operand)
            computation.remove_instruction(barrier)
            recorder.rewrite(computation.name, [barrier.name], [operand], _REASON)
        return bool(barriers)


class AllReduceSimplifier(Pass):
    """`all-reduce-simplifier` in a module compiled for one device; what all replicas share is not traced
    (`xla/hlo/transforms/collectives/all_reduce_simplifier.cc`)."""

    name = "all-reduce-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = (x for c in module.computations for x in c.post_order() if _is_of_one(x))
        return any_change(replace_instruction(x, x.operand) for x in found)


def _is_of_one(x: Instruction) -> bool:
    if x.opcode in ("all-gather", "reduce-scatter"):
        return x.shape.key == x.operand.shape.key
    if x.opcode != "all-reduce" or not x.is_array:
        return False
    module = x.parent.parent
    replicas = int(module.attributes.raw("replica_count") or 1)
    crosses = x.raw("channel_id") is not None and x.raw("use_global_device_ids") != "true"
    sizes = {len(group) for group in replica_groups(x.raw("replica_groups") or "{}")} or {replicas}
    return sizes == {1} and (not crosses or partitions_of(module) == 1)
