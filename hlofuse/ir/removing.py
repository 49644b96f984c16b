"""Taking out what nobody uses (`HloComputation::RemoveInstructionAndUnusedOperands`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hlofuse.ir.graph import Computation, Instruction


def is_dead(instruction: Instruction) -> bool:
    """Neither used nor a result (`IsDead`)."""
    return not instruction.users and not instruction.is_root


def is_safely_removable(instruction: Instruction) -> bool:
    """Nothing waits for it, and no caller would have to follow (`IsSafelyRemovable`)."""
    if instruction.control_predecessors or instruction.control_successors:
        return False
    if instruction.opcode != "parameter":
        return True
    return instruction.computation is not None and instruction.computation.fusion is not None


def remove_with_unused_operands(
    instruction: Instruction, has_side_effect: Callable[[Instruction], bool]
) -> list[str]:
    """Remove a dead instruction and whatever only it kept alive; the names of all that went.

    A parameter of a fusion goes together with the fusion's operand, which may die of it in turn.
    """
    computation = instruction.computation
    if computation is None or not is_dead(instruction):
        raise ValueError(f"{instruction.name} is still in use")
    if instruction._control is None and instruction.opcode != "parameter":
        for operand in instruction.operands:
            if len(operand.users) < 2:
                break
        else:  # as nearly always: everything it reads is used by others
            computation.remove_instruction(instruction)
            return [instruction.name]
    removed: list[str] = []
    parameters: dict[Instruction, None] = {}
    queue = deque([instruction])
    while queue:
        dead = queue.popleft()
        if dead.computation is not computation or dead in parameters:
            continue
        if not is_dead(dead) or not is_safely_removable(dead):
            continue
        if dead is not instruction and has_side_effect(dead):
            continue
        removed.append(dead.name)
        queue.extend(dead.operands)
        if dead.opcode == "parameter":
            parameters[dead] = None
        else:
            computation.remove_instruction(dead)
    # From the last one down: removing one renumbers those behind it.
    for parameter in sorted(parameters, key=lambda p: -p.parameter_number):
        removed += _remove_fused_parameter(computation, parameter.parameter_number, has_side_effect)
    return removed


def remove_parameter(body: Computation, number: int) -> None:
    """Drop an unused parameter; every later one gets a new number, name and id (`RemoveParameter`).

    XLA makes the later ones anew; here they stay the same objects, which nobody can tell.
    """
    body.remove_instruction(body.parameters[number])
    body.drop_parameter(number)


def _remove_fused_parameter(
    body: Computation, number: int, has_side_effect: Callable[[Instruction], bool]
) -> list[str]:
    fusion = body.fusion
    assert fusion is not None
    remove_parameter(body, number)
    operand = fusion.operands[number]
    fusion.remove_operand(number)
    if is_dead(operand) and is_safely_removable(operand) and not has_side_effect(operand):
        return remove_with_unused_operands(operand, has_side_effect)
    return []
