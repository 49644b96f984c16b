"""Takes bitcasts out of fusions of products (`xla/backends/gpu/transforms/hoist_fused_bitcasts.cc`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import derived, numbers
from hlofuse.passes.common.rewriting import visit_module
from hlofuse.passes.gpu.gemm.bitcast_shapes import (
    bitcast_of_broadcast,
    bitcast_of_transpose,
    broadcast_of_bitcast,
    transpose_of_bitcast,
)
from hlofuse.trace import Recorder

_VIEWS = ("bitcast", "reshape")


class HoistFusedBitcasts(Pass):
    """`hoist-fused-bitcasts`: into those who call; a bitcast at the root is put there to be taken along."""

    name = "hoist-fused-bitcasts"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["fusion"], _hoist, recorder)


def _hoist(fusion: Instruction) -> bool:
    if "__cudnn$fusion" in (fusion.attributes.raw("backend_config") or ""):
        return False
    body = fusion.fused_computation
    dot = next((i for i in body if i.opcode == "dot"), None)
    if dot is None:
        return False
    callers = list(body.callers)
    changed = _insert_root_bitcast(dot, callers)
    for i in reversed(body.post_order()):
        if i.opcode in _VIEWS and i.computation is body:
            changed |= _hoist_upwards(i, callers)
    return changed


def _insert_root_bitcast(dot: Instruction, callers: list[Instruction]) -> bool:
    """`MaybeInsertRootBitcast`: one that cancels those on the way up to the dot."""
    body = dot.computation
    assert body is not None
    shape = _root_shape_without_bitcasts(dot)
    root = body.root
    if shape is None or root.shape.key == shape.key:
        return False
    body.root = derived(root, "bitcast", shape, [root])
    for caller in callers:
        back = derived(caller, "bitcast", caller.shape, [caller])
        caller.replace_all_uses_with(back)
        caller.shape = shape
    return True


def _root_shape_without_bitcasts(dot: Instruction) -> Shape | None:
    """`ComputeRootShapeAfterHoistingBitcasts`."""
    if dot.is_root:
        return dot.shape
    shapes: dict[Instruction, Shape] = {}

    def spread(users: list[Instruction], shape: Shape) -> bool:
        for user in users:
            new = shape.with_element_type(user.operands[0].shape.element_type)
            if shapes.setdefault(user, new).key != new.key:
                return False
        return True

    if not spread(dot.users, dot.shape):
        return None
    for i in _reached(dot, lambda x: x.users):
        operand = shapes.get(i)
        if operand is None:
            continue
        found = None
        if i.opcode == "broadcast":
            found = broadcast_of_bitcast(i, operand)
            result = found[0] if found is not None else i.shape
        elif i.opcode == "transpose":
            found = transpose_of_bitcast(i, operand)
            result = found[0] if found is not None else i.shape
        elif i.opcode in _VIEWS or is_elementwise(i):
            result = operand
        else:
            return None
        if i.is_root:
            return result.with_element_type(i.shape.element_type)
        if not spread(i.users, result):
            return None
    return None


def _hoist_upwards(bitcast: Instruction, callers: list[Instruction]) -> bool:
    """`HoistBitcastUpwardsToCallers`."""
    plan = _plan(bitcast)
    if plan is None:
        return False
    for i, shape, dimensions in plan:
        if i.opcode == "parameter":
            number = i.parameter_number
            for caller in callers:
                caller.replace_operand(number, derived(caller, "bitcast", shape, [caller.operands[number]]))
        elif dimensions is not None:
            i.attributes = i.attributes.updated(dimensions=numbers(dimensions))
        i.shape = shape
        if "sharding" in i.attributes:
            i.attributes = i.attributes.without("sharding")
    body: Computation | None = bitcast.computation
    assert body is not None
    bitcast.replace_all_uses_with(bitcast.operands[0])
    body.remove_instruction(bitcast)
    return True


def _reached(
    start: Instruction, beyond: Callable[[Instruction], Sequence[Instruction]]
) -> dict[Instruction, None]:
    """All behind `start`, nearest first, each once."""
    found: dict[Instruction, None] = {}
    queue = deque(beyond(start))
    while queue:
        node = queue.popleft()
        if node not in found:
            found[node] = None
            queue.extend(beyond(node))
    return found


_Step = tuple[Instruction, Shape, tuple[int, ...] | None]


def _plan(bitcast: Instruction) -> list[_Step] | None:
    """The new shapes of all that the bitcast reads, users before operands
    (`PlanHoistBitcastUpwardsToCallers`); None if something else reads any of it."""
    body = bitcast.computation
    assert body is not None
    producers = _reached(bitcast, lambda x: x.operands)
    if any(u is not bitcast and u not in producers for p in producers for u in p.users):
        return None
    if bitcast.shape.element_type != bitcast.operands[0].shape.element_type:
        return None
    shapes: dict[Instruction, Shape] = {}

    def spread(operands: list[Instruction], shape: Shape) -> bool:
        for operand in operands:
            new = shape.with_element_type(operand.shape.element_type)
            if shapes.setdefault(operand, new).key != new.key:
                return False
        return True

    if not spread(bitcast.operands, bitcast.shape):
        return None
    plan: list[_Step] = []
    for i in reversed(body.post_order()):
        shape = shapes.get(i)
        if shape is None or shape.key == i.shape.key:
            continue
        dimensions = None
        if i.opcode in ("parameter", "constant", *_VIEWS):
            pass
        elif i.opcode in ("broadcast", "transpose"):
            exchange = bitcast_of_broadcast if i.opcode == "broadcast" else bitcast_of_transpose
            found = exchange(i, shape)
            if found is None or not spread(i.operands, replace(found[0])):
                return None
            dimensions = found[1]
        elif not is_elementwise(i) or not spread(i.operands, shape):
            return None
        plan.append((i, shape, dimensions))
    return plan
