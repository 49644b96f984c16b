"""Passes that move constants into loops and what never changes out of them."""

from hlofuse.analysis.custom_calls import PLACEMENTS, custom_call_target
from hlofuse.ir import Computation, Instruction, Module, Shape, callees, reach
from hlofuse.ir.grouping import post_order
from hlofuse.ir.opcodes import values
from hlofuse.ir.removing import has_side_effect, remove_with_unused_operands
from hlofuse.passes.base import Pass, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, copied, inline, set_called
from hlofuse.passes.common.make import elements
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.rules.rewrites import INVARIANT
from hlofuse.trace import Recorder
from .parts import body_of, carried_unchanged, condition_of, elements_read, loops_of, new_loop
from .trip_count import trip_count


# Constants that a loop carries are made in the loop (`xla/service/while_loop_constant_sinking.cc`).
class WhileLoopConstantSinking(Pass):
    name = "while-loop-constant-sinking"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        pending = [module.entry]
        visited = set()
        while pending:
            computation = pending.pop()
            if computation in visited:
                continue
            visited.add(computation)
            for i in list(computation):
                if i.is_while:
                    changed |= self._sink(i)
                pending += i.called_computations
        if changed:
            reached = set(reach([module.entry], callees))
            module.remove_computation(*(c for c in module.computations if c not in reached))
        return changed

    def _sink(self, loop: Instruction) -> bool:
        init = loop.operand
        body, condition = body_of(loop), condition_of(loop)
        if init.opcode != "tuple" or body.root.opcode != "tuple":
            return False
        carried = [g.tuple_index for g in carried_unchanged(body)]
        wanted = [k for k in carried if init.operands[k].is_constant]
        into_body = [k for k in wanted if body.root.operands[k].user_count > 1]
        tested = {r.tuple_index for r in elements_read(condition.parameter) if r.users}
        into_condition = [k for k in wanted if k in tested]
        if into_body:
            body = clone_computation(body, "sunk")
        if into_condition:
            condition = clone_computation(condition, "sunk")
        if not into_body and not into_condition:
            return False
        set_called(loop, [("body", body), ("condition", condition)])
        for k in into_body:
            element = body.root.operands[k]
            constant = copied(init.operands[k], element, ".sunk")
            for user in list(element.users):
                for number, operand in enumerate(user.operands):
                    if operand is element and not (user is body.root and number == k):
                        user.replace_operand(number, constant)
        for k in into_condition:
            for element in elements_read(condition.parameter):
                if element.tuple_index == k and element.users:
                    element.replace_all_uses_with(copied(init.operands[k], element, ".sunk"))
                    condition.remove_instruction(element)
        return True


# Values alike in every iteration move out of the loop (`xla/service/while_loop_invariant_code_motion.cc`).


_BARRIERS = PLACEMENTS | {"SPMDFullToShardShape", "SPMDShardShapeToFull"}
_NOT_ALONE = values("constant reshape bitcast broadcast iota reverse slice transpose tuple")


class WhileLoopInvariantCodeMotion(Pass):
    name = "while-loop-invariant-code-motion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for loop in loops_of(module.computation_post_order()):
            changed |= bool(hoist_invariants(loop, recorder))
        if changed:
            HloDCE().run(module, recorder)
            TupleSimplifier().run(module, recorder)
        return changed


def _repeats(loop: Instruction) -> bool:
    body, trips = body_of(loop), trip_count(loop)
    is_single = trips is not None and trips <= 1
    return (
        loop.is_tuple
        and body.root.opcode == "tuple"
        and not is_single
        and "_xla_disable_loop_instr_hoisting" not in loop.frontend_attributes
        and not any(i.opcode == "domain" or custom_call_target(i) in _BARRIERS for i in body)
    )


def hoist_invariants(loop: Instruction, recorder: Recorder) -> list[Instruction]:
    """Compute before the loop what no iteration changes: the instructions of its body that move."""
    body = body_of(loop)
    if not _repeats(loop):
        return []
    waiting = {g for g in carried_unchanged(body) if g.is_array}
    if not waiting:
        return []
    hoisted = dict[Instruction, Instruction]()
    moved = []
    for i in body.post_order():
        if has_side_effect(i) or i.opcode in ("after-all", "parameter") or i.control_predecessors:
            continue
        if i.control_successors or not all(o in hoisted or o in waiting or o.is_constant for o in i.operands):
            continue
        if i.opcode in _NOT_ALONE or custom_call_target(i) == "Sharding":
            if not i.is_constant:
                waiting.add(i)
            continue
        _copy_out(i, loop, hoisted, waiting)
        moved.append(i)
        reason = f"{i.name} computes the same in each iteration of {loop.name}"
        recorder.created_instructions(i.name, [hoisted[i]], INVARIANT, reason)
    if moved:
        _carry(loop, moved, [hoisted[i] for i in moved])
    return moved


def _copy_out(
    x: Instruction, loop: Instruction, hoisted: dict[Instruction, Instruction], waiting: set[Instruction]
) -> None:
    """Copy `x` and its operands to the loop's computation (`CreateLoopInvariantCopy`)."""
    parameter = body_of(loop).parameter
    present = {parameter, *hoisted}
    for current in post_order([x], lambda y: [o for o in y.operands if o not in present]):
        operands = [loop.operand if o is parameter else hoisted[o] for o in current.operands]
        clone = current.clone(operands)
        clone.attributes = clone.attributes.without("control-predecessors")
        hoisted[current] = loop.parent.add_instruction(clone)
        waiting.discard(current)


def _carry(loop: Instruction, moved: list[Instruction], values: list[Instruction]) -> None:
    """The loop carries the values (`MakeInstructionsLiveIn`)."""
    init, old_size = loop.operand, loop.tuple_size
    shapes = [*loop.shape.tuple_shapes, *(v.shape for v in values)]
    condition, _ = _widened(condition_of(loop), shapes)
    body, copies = _widened(body_of(loop), shapes)
    wide_init = make.tuple_of(init, [*elements(init, range(old_size)), *values])
    new = new_loop(loop, wide_init, condition, body)
    new.attributes = new.attributes.without("backend_config", "frontend_attributes")
    substituted(loop, make.tuple_of(new, elements(new, range(old_size))))
    carried = elements(body.parameter, range(old_size, len(shapes)))
    for i, element in zip(moved, carried, strict=True):
        copies[i].replace_all_uses_with(element)
        remove_with_unused_operands(copies[i])


def _widened(narrow: Computation, shapes: list[Shape]) -> tuple[Computation, dict[Instruction, Instruction]]:
    """A part with a wider parameter, and who became whom (`WidenWhileCondition`, `WidenWhileBody`)."""
    own = narrow.parameter
    old_size = own.tuple_size
    wide = narrow.parent.add_computation(Computation(f"wide.{narrow.name}"))
    parameter = wide.append_parameter(f"wide.{own.name}", Shape.tuple_of(shapes))
    prefix = make.tuple_of(parameter, elements(parameter, range(old_size)))
    call = make.add(prefix, "call", narrow.root.shape, [prefix], called=narrow)
    wide.root = call
    if call.is_tuple:
        through = elements(parameter, range(old_size, len(shapes)))
        wide.root = make.tuple_of(call, [*elements(call, range(old_size)), *through])
    return wide, inline(call)
