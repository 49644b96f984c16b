"""Passes that move constants into loops and what never changes out of them."""

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir import Computation, Instruction, Module, Shape, callees, computation_of, reach
from hlofuse.ir.removing import remove_with_unused_operands
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, copied, drop, replace_parameter, set_called
from hlofuse.passes.common.make import elements
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.rules.rewrites import INVARIANT
from hlofuse.trace import Recorder
from .parts import all_loops, body_of, carried_unchanged, condition_of, new_loop, replace_loop
from .trip_count import trip_count

# Constants that a loop carries are made in the loop (`xla/service/while_loop_constant_sinking.cc`).


class WhileLoopConstantSinking(Pass):
    name = "while-loop-constant-sinking"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        pending: list[Computation] = [module.entry]
        visited: set[Computation] = set()
        while pending:
            computation = pending.pop()
            if computation in visited:
                continue
            visited.add(computation)
            for i in list(computation):
                if i.opcode == "while":
                    changed |= self._sink(i)
                pending += i.called_computations
        if changed:
            _remove_unused_computations(module)
        return changed

    def _sink(self, loop: Instruction) -> bool:
        init = loop.operands[0]
        body, condition = body_of(loop), condition_of(loop)
        if init.opcode != "tuple" or body.root.opcode != "tuple":
            return False
        carried = [g.tuple_index for g in carried_unchanged(body)]
        wanted = [k for k in carried if init.operands[k].opcode == "constant"]
        into_body = [k for k in wanted if len(body.root.operands[k].users) > 1]
        readers = [u for u in condition.parameters[0].users if u.opcode == "get-tuple-element" and u.users]
        into_condition = [k for k in wanted if any(r.tuple_index == k for r in readers)]
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
            for element in list(condition.parameters[0].users):
                if element.opcode == "get-tuple-element" and element.tuple_index == k and element.users:
                    element.replace_all_uses_with(copied(init.operands[k], element, ".sunk"))
                    condition.remove_instruction(element)
        return True


def _remove_unused_computations(module: Module) -> None:
    """Remove computations not called from the entry (`HloModule::RemoveUnusedComputations`), nothing else."""
    reached = set(reach([module.entry], callees))
    for computation in list(module.computations):
        if computation not in reached:
            module.remove_computation(computation)


# Values that every iteration of a loop recomputes alike move out of it
# (`xla/service/while_loop_invariant_code_motion.cc`).


_NOT_ALONE = frozenset("constant reshape bitcast broadcast iota reverse slice transpose tuple".split())


class WhileLoopInvariantCodeMotion(Pass):
    name = "while-loop-invariant-code-motion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for loop in all_loops(module):
            changed |= bool(hoist_invariants(loop, recorder))
        if changed:
            HloDCE().run(module, recorder)
            TupleSimplifier().run(module, recorder)
        return changed


def _repeats(loop: Instruction) -> bool:
    """True for a loop over a tuple that instructions may leave."""
    body, trips = body_of(loop), trip_count(loop)
    is_single = trips is not None and trips <= 1
    return (
        loop.shape.is_tuple
        and body.root.opcode == "tuple"
        and not is_single
        and not any(map(_is_barrier, body))
    )


def hoist_invariants(loop: Instruction, recorder: Recorder) -> list[Instruction]:
    """Compute before the loop what no iteration changes: the instructions of its body that move."""
    body = body_of(loop)
    if not _repeats(loop):
        return []
    waiting = {g for g in carried_unchanged(body) if g.shape.is_array}
    if not waiting:
        return []
    hoisted: dict[Instruction, Instruction] = {}
    moved: list[Instruction] = []
    for i in body.post_order():
        if has_side_effect(i) or i.opcode in ("after-all", "parameter") or i.control_predecessors:
            continue
        if i.control_successors or not all(
            o in hoisted or o in waiting or o.opcode == "constant" for o in i.operands
        ):
            continue
        if i.opcode in _NOT_ALONE or i.attributes.get("custom_call_target") == "Sharding":
            if i.opcode != "constant":
                waiting.add(i)
            continue
        _copy_out(i, loop, hoisted, waiting)
        moved.append(i)
    _move(loop, {i: hoisted[i] for i in moved}, recorder)
    return moved


def _move(loop: Instruction, values: dict[Instruction, Instruction], recorder: Recorder) -> bool:
    """Have the loop carry what computes the same outside; True if there is anything."""
    for i, value in values.items():
        reason = f"{i.name} computes the same in each iteration of {loop.name}"
        recorder.created_instructions(i.name, [value], rule=INVARIANT.code, reason=reason)
    if values:
        _carry(loop, list(values), list(values.values()))
    return bool(values)


def _is_barrier(i: Instruction) -> bool:
    target = str(i.attributes.get("custom_call_target"))
    is_shard = target in ("SPMDFullToShardShape", "SPMDShardShapeToFull")
    return i.opcode == "domain" or is_shard or target.startswith("annotate_device")


def _copy_out(
    x: Instruction, loop: Instruction, hoisted: dict[Instruction, Instruction], waiting: set[Instruction]
) -> None:
    """Copy `x` and its operands to the loop's computation (`CreateLoopInvariantCopy`)."""
    parameter = body_of(loop).parameters[0]
    stack = [x]
    while stack:
        current = stack[-1]
        missing = [o for o in current.operands if o is not parameter and o not in hoisted]
        if missing:
            stack.append(missing[0])
            continue
        stack.pop()
        if current in hoisted:
            continue
        operands = [loop.operands[0] if o is parameter else hoisted[o] for o in current.operands]
        clone = current.clone(operands)
        clone.attributes = clone.attributes.without("control-predecessors")
        hoisted[current] = computation_of(loop).add_instruction(clone)
        waiting.discard(current)


def _carry(loop: Instruction, moved: list[Instruction], values: list[Instruction]) -> None:
    """The loop carries the values (`MakeInstructionsLiveIn`)."""
    old_size = len(loop.shape.tuple_shapes)
    init = loop.operands[0]
    wide_init = make.tuple_of(init, [*elements(init, range(old_size)), *values])
    place = {i: k for k, i in enumerate(body_of(loop))}
    body = clone_computation(body_of(loop), "wide")
    condition = clone_computation(condition_of(loop), "wide")
    copies = list(body)
    moved_copies = [copies[place[i]] for i in moved]
    _widen(condition, wide_init.shape, old_size)
    parameter = _widen(body, wide_init.shape, old_size)
    root = body.root
    through = elements(parameter, range(old_size, old_size + len(values)))
    body.root = make.tuple_of(root, [*elements(root, range(old_size)), *through])
    for k, moved_copy in enumerate(moved_copies):
        moved_copy.replace_all_uses_with(make.get_tuple_element(parameter, parameter, old_size + k))
        remove_with_unused_operands(moved_copy, has_side_effect)
    new = new_loop(loop, wide_init, condition, body)
    new.attributes = new.attributes.without("backend_config", "frontend_attributes")
    replace_loop(loop, make.tuple_of(new, elements(new, range(old_size))))


def _widen(computation: Computation, shape: Shape, old_size: int) -> Instruction:
    old, new = replace_parameter(computation, shape)
    old.replace_all_uses_with(make.tuple_of(new, elements(new, range(old_size))))
    drop(old)
    return new
