"""Passes that remove annotations, which compute nothing: placements, shardings, barriers."""

import re
from collections import Counter
from collections.abc import Callable
from math import prod

from hlofuse.analysis.custom_calls import (
    PLACEMENTS,
    SHARDY,
    custom_call_target,
    hands_on,
    has_side_effect,
    is_divided,
)
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.removing import move_control_dependencies, replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass, any_change
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import inline
from hlofuse.passes.common.shapes import with_layout
from hlofuse.trace import Recorder


class StripMemoryPlacementAnnotations(Pass):
    name = "strip-memory-placement-annotations"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return remove_annotations(module, lambda i: custom_call_target(i) in PLACEMENTS)


_MOVES = {"pinned_host": "MoveToHost", "unpinned_host": "MoveToHost", "device": "MoveToDevice"}


class ConvertMemoryPlacementToInternalAnnotations(Pass):
    """`annotate_device_placement` becomes a move to the memory that it names
    (`xla/hlo/transforms/convert_memory_placement_to_internal_annotations.cc`)."""

    name = "convert-memory-placement-to-internal-annotations"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for i in [i for c in module.non_fusion_computations() for i in c.post_order()]:
            if custom_call_target(i) != "annotate_device_placement":
                continue
            attributes = i.attributes.get("frontend_attributes") or {}
            target = _MOVES.get(attributes.get("_xla_buffer_placement", ""))
            if target is not None:
                source = i.operands[0]
                replace_instruction(
                    i,
                    make.add(i, "custom-call", source.shape, [source], custom_call_target=f'"{target}"'),
                    lambda x: False,
                )
                changed = True
        return changed


class ShardyXLA(Pass):
    """`shardy-xla`, of which this is repeated: a program that is partitioned by hand becomes that of one
    device, and Shardy's calls that change no shape are removed."""

    name = "shardy-xla"

    def run(self, module: Module, recorder: Recorder) -> bool:
        by_hand = ManualPartition(module)
        if by_hand.is_complete:
            by_hand.apply()
        elif is_divided(module):
            shardings = (x for x in module.instructions() if x.attributes.raw("sharding") is not None)
            recorder.unimplemented(Counter(x.opcode for x in shardings))
        return remove_annotations(module, _is_shardy) or by_hand.is_complete


_LATER = frozenset({"FuncResultSharding", "PropagationBarrier", "ShardingGroup"})
"""Annotations for `sharding-remover`."""


def _is_shardy(instruction: Instruction) -> bool:
    target = custom_call_target(instruction)
    return target.startswith(SHARDY) and target.removeprefix(SHARDY) not in _LATER


def remove_annotations(module: Module, chosen: Callable[[Instruction], bool] = hands_on) -> bool:
    """Have who reads an annotation read its operand; True if there was one."""
    changed = False
    for i in list(module.instructions()):
        if chosen(i) and hands_on(i):
            i.replace_all_uses_with(i.operands[0])
            i.drop_all_control_dependencies()
            computation_of(i).remove_instruction(i)
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
                if x.opcode == "custom-call":
                    if changes_shape(x):
                        recorder.skipped(x, "a program partitioned by hand, before the partitioner ran")
                    else:
                        changed |= _remove(x, str(x.attributes.get("custom_call_target")))
        return changed


def changes_shape(x: Instruction) -> bool:
    """True if `x` goes from an array to one device's part of it or back: only the partitioner can say how."""
    if x.opcode != "custom-call" or x.attributes.get("custom_call_target") not in _LEFT:
        return False
    return x.shape.dimensions != x.operands[0].shape.dimensions


def _remove(call: Instruction, target: str) -> bool:
    if target == _GROUP:
        computation_of(call).remove_instruction(call)
        return False
    if target not in _LEFT and target not in _COPIED:
        return False
    operand = call.operands[0]
    call.replace_all_uses_with(operand)
    if target in _COPIED:  # clean-ups leave such a call and take its copy
        replace_instruction(call, make.unary(call, "copy", operand, call.shape), has_side_effect)
    return True


_REASON = "What the barrier kept in order has been scheduled"


class OptimizationBarrierExpander(Pass):
    """`cse_barrier_expander`: the operand takes the place of each barrier
    (`xla/hlo/transforms/expanders/optimization_barrier_expander.cc`)."""

    name = "cse_barrier_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for barrier in [i for i in computation if i.opcode == "opt-barrier"]:
                operand = barrier.operands[0]
                move_control_dependencies(barrier, operand)
                barrier.replace_all_uses_with(operand)
                barrier.drop_all_control_dependencies()
                computation.remove_instruction(barrier)
                recorder.rewrite(computation.name, [barrier.name], [operand], rule="", reason=_REASON)
                changed = True
        return changed


class AllReduceSimplifier(Pass):
    """`all-reduce-simplifier` in a module compiled for one device; what all replicas share is not traced
    (`xla/hlo/transforms/collectives/all_reduce_simplifier.cc`)."""

    name = "all-reduce-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = (x for c in module.computations for x in c.post_order() if _is_of_one(x))
        return any_change(replace_instruction(x, x.operands[0], has_side_effect) for x in found)


def _is_of_one(x: Instruction) -> bool:
    if x.opcode in ("all-gather", "reduce-scatter"):
        return x.shape.key == x.operands[0].shape.key
    if x.opcode != "all-reduce" or not x.shape.is_array or x.attributes.raw("channel_id") is not None:
        return False
    groups = x.attributes.raw("replica_groups") or "{}"
    return "," not in groups and "=" not in groups and "[" not in groups


_Sharding = tuple[tuple[str, ...], ...]
"""The axes of the mesh that divide each dimension; a part of an axis is `axis:size`."""
_CROSSINGS = (f"{SHARDY}GlobalToLocalShape", f"{SHARDY}LocalToGlobalShape")
_SHARDING = re.compile(r"<(?:@[^,<>]+|mesh<[^<>]*>), \[([^\]]*)\]")
_AXIS = re.compile(r'"([^"]+)"(?::\(\d+\)(\d+))?')
_SIZE = re.compile(r'"([^"]+)"=(\d+)')
_PER_DEVICE = with_trait("collective") | {"call", "conditional", "partition-id", "replica-id", "while"}


class ManualPartition:
    """The shardings of an entry computation; `is_complete` is False where only the partitioner knows them."""

    def __init__(self, module: Module) -> None:
        self._module = module
        meshes = (module.attributes.raw("frontend_attributes") or "").partition("xla.sdy.meshes=")[2]
        self._sizes = {name: int(size) for name, size in _SIZE.findall(meshes)}
        self._shardings: dict[Instruction, list[_Sharding] | None] = {}
        """Of each result outside of manual computations; None inside."""
        self.is_complete = self._find_crossings() and all(map(self._visit, module.entry.post_order()))

    def _find_crossings(self) -> bool:
        crossings = [x for x in self._module.instructions() if custom_call_target(x) in _CROSSINGS]
        return bool(crossings) and all(x.computation is self._module.entry for x in crossings)

    def _visit(self, x: Instruction) -> bool:
        """Note the shardings of `x`; False where only the partitioner knows what becomes of it."""
        given = [self._shardings[o] for o in x.operands]
        inside = bool(given) and all(s is None for s in given)
        outer = [s for shardings in given for s in shardings or ()]
        target = custom_call_target(x)
        found: list[_Sharding] | None = outer
        if x.opcode == "parameter":
            settled = x.shape.is_array
            found = _shardings(x, "sharding")
        elif x.opcode == "get-tuple-element":
            settled = True
            found = None if inside else [outer[x.tuple_index]]
        elif target in _CROSSINGS:
            enters = target == _CROSSINGS[0]
            settled = outer == _shardings(x, "in_shardings") if enters else inside
            settled &= set(re.findall(r'"([^"]+)"', _attribute(x, "manual_axes"))) == self._sizes.keys()
            found = None if enters else _shardings(x, "out_shardings")
        elif x.opcode == "call" and inside:
            settled, found = True, None
        elif x.opcode == "tuple":
            settled = None not in given
        elif hands_on(x):
            settled = not inside and (_shardings(x, "sharding") or outer) == outer
        else:  # every device computes the whole if each has all that is read
            divided = x.opcode in _PER_DEVICE or has_side_effect(x) or None in given or any(map(any, outer))
            settled = x.shape.is_array and not divided
            found = [((),) * x.shape.rank]
        self._shardings[x] = found
        return settled and (found is None or self._part(x.shape, found) is not None)

    def _part(self, shape: Shape, shardings: list[_Sharding]) -> Shape | None:
        """The shape on one device; None where an array is not divided evenly."""
        if shape.is_tuple:
            parts = [self._part(s, [g]) for s, g in zip(shape.tuple_shapes, shardings, strict=False)]
            complete = [p for p in parts if p is not None]
            return Shape.tuple_of(complete) if len(complete) == len(shape.tuple_shapes) else None
        if len(shardings) != 1 or len(shardings[0]) != shape.rank:
            return None
        counts = [prod(map(self._count, axes)) for axes in shardings[0]]
        if any(n == 0 or d % n for d, n in zip(shape.dimensions, counts, strict=True)):
            return None
        sizes = [d // n for d, n in zip(shape.dimensions, counts, strict=True)]
        return with_layout(shape.element_type, sizes, shape.minor_to_major)

    def _count(self, axis: str) -> int:
        name, _, part = axis.partition(":")
        return int(part) if part else self._sizes.get(name, 0)

    def apply(self) -> None:
        """Have the module compute one device's part."""
        entry = self._module.entry
        for x in entry.post_order():
            shardings = self._shardings[x]
            if shardings is not None and (part := self._part(x.shape, shardings)) is not None:
                x.shape = part
            if x.opcode == "call":
                inline(x)
        for x in entry.post_order():
            if custom_call_target(x) in _CROSSINGS:
                elements = [u for u in x.users if u.opcode == "get-tuple-element"] if x.shape.is_tuple else []
                for element in elements:
                    element.replace_all_uses_with(x.operands[element.tuple_index])
                    entry.remove_instruction(element)
                if not x.shape.is_tuple:
                    x.replace_all_uses_with(x.operands[0])
                if not x.users:
                    entry.remove_instruction(x)
        parameters = ", ".join(str(p.shape) for p in entry.parameters)
        layout = f"{{({parameters})->{entry.root.shape}}}"
        self._module.attributes = self._module.attributes.updated(entry_computation_layout=layout)


def _attribute(x: Instruction, name: str) -> str:
    text: str = (x.attributes.get("frontend_attributes") or {}).get(f"xla.sdy.{name}", "")
    return text


def _shardings(x: Instruction, name: str) -> list[_Sharding]:
    return [
        tuple(
            tuple(f"{axis}:{part}" if part else axis for axis, part in _AXIS.findall(dimension))
            for dimension in re.findall(r"\{([^}]*)\}", dimensions)
        )
        for dimensions in _SHARDING.findall(_attribute(x, name))
    ]
