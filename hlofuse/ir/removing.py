"""Removing unused instructions (`HloComputation::RemoveInstructionAndUnusedOperands`)."""

from collections import deque

from hlofuse.ir.opcodes import values
from .attributes.attributes import Attributes, written
from .graph import Computation, Instruction
from .opcodes import with_trait

# Instructions that do more than compute their result (`HloInstruction::HasSideEffect`).

_ALWAYS = with_trait("side-effect")
_CONSTRAINED = values("all-to-all all-gather all-reduce reduce-scatter")
_COLLECTIVE = _CONSTRAINED | {"collective-permute"}


def has_side_effect(instruction: Instruction) -> bool:
    return _has_own_side_effect(instruction) or any(
        has_side_effect(inner) for _, callee in instruction.called for inner in callee
    )


def _has_own_side_effect(instruction: Instruction) -> bool:
    """True if the instruction has one without what it calls (`HasSideEffectNoRecurse`)."""
    opcode = instruction.opcode
    if opcode in _ALWAYS:
        return True
    if opcode in _COLLECTIVE:
        # A channel id counts without SPMD partitioning (`ChannelIdSensitive`), where front ends give none.
        return opcode in _CONSTRAINED and instruction.raw("constrain_layout") == "true"
    return opcode == "custom-call" and instruction.raw("custom_call_has_side_effect") == "true"


def is_dead(instruction: Instruction) -> bool:
    """True if it has no users and is not the root (`IsDead`)."""
    return not instruction.users and not instruction.is_root


def is_safely_removable(instruction: Instruction, *, ignore_control_dependencies: bool = False) -> bool:
    """True if no instruction waits for it and no caller would have to follow (`IsSafelyRemovable`)."""
    if not ignore_control_dependencies and instruction.has_control_dependencies:
        return False
    return not instruction.is_parameter or instruction.fusion_around is not None


def remove_with_unused_operands(
    instruction: Instruction, *, ignore_control_dependencies: bool = False
) -> list[str]:
    """Remove a dead instruction and operands that die with it; returns the removed names. A fusion's
    parameter is removed together with the fusion's operand, which may die in turn. With
    `ignore_control_dependencies`, predecessors of a removed instruction then precede its successors."""
    computation = instruction.computation
    if computation is None or not is_dead(instruction):
        raise ValueError(f"{instruction.name} is still in use")
    if instruction._control is None and not instruction.is_parameter:
        for operand in instruction.operands:
            if operand.user_count < 2:
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
        if not is_dead(dead) or not is_safely_removable(
            dead, ignore_control_dependencies=ignore_control_dependencies
        ):
            continue
        if dead is not instruction and has_side_effect(dead):
            continue
        if dead._control is not None:
            bridge_control_dependencies(dead)
        removed.append(dead.name)
        queue.extend(dead.operands)
        if dead.is_parameter:
            parameters[dead] = None
        else:
            computation.remove_instruction(dead)
    # From the last one down: removing one renumbers later ones.
    for parameter in sorted(parameters, key=lambda p: -p.parameter_number):
        removed += _remove_fused_parameter(computation, parameter.parameter_number)
    return removed


def bridge_control_dependencies(instruction: Instruction) -> None:
    """Drop its control dependencies, keep those through it (`SafelyDropAllControlDependencies`)."""
    for predecessor in instruction.control_predecessors:
        for successor in instruction.control_successors:
            predecessor.add_control_dependency_to(successor)
    instruction.drop_all_control_dependencies()


def remove_parameter(body: Computation, number: int) -> None:
    """Drop an unused parameter and renumber, rename and re-id the later ones (`RemoveParameter`)."""
    body.remove_instruction(body.parameters[number])
    body.drop_parameter(number)


def _remove_fused_parameter(body: Computation, number: int) -> list[str]:
    fusion = body.fusion
    assert fusion is not None
    remove_parameter(body, number)
    operand = fusion.operands[number]
    fusion.remove_operand(number)
    if is_dead(operand) and is_safely_removable(operand) and not has_side_effect(operand):
        return remove_with_unused_operands(operand)
    return []


# Putting one instruction in the place of another (`HloComputation::ReplaceInstruction`).

# Attributes after an instruction's own, in XLA's order (`PrintExtraAttributes`, then the metadata).
_COMMON = ("sharding", "frontend_attributes", "control-predecessors", "metadata")


def set_attribute(instruction: Instruction, name: str, value: object) -> None:
    """Write one attribute where XLA prints it: own attributes first, then the common ones."""
    raw, text = instruction.attributes.raw_items, written(value)
    if name in raw or name not in _COMMON:
        instruction.attributes = instruction.attributes.updated(**{name: text})
        return
    later = (*_COMMON[_COMMON.index(name) + 1 :], "backend_config")
    out = dict[str, str]()
    for key, given in raw.items():
        if key in later and name not in out:
            out[name] = text
        out[key] = given
    out.setdefault(name, text)
    instruction.attributes = Attributes(raw=out)


def move_control_dependencies(old: Instruction, new: Instruction) -> None:
    """Move control dependencies to `new` (`CopyAllControlDepsFrom`), or to the end if that is `old`."""
    predecessors, successors = old.control_predecessors, old.control_successors
    if old._control is not None:
        old.drop_all_control_dependencies()
    for predecessor in predecessors:
        predecessor.add_control_dependency_to(new)
    for successor in successors:
        new.add_control_dependency_to(successor)


def replace_instruction(
    old: Instruction,
    new: Instruction,
    *,
    relay_control_dependencies: bool = False,
    preserve_sharding: bool = False,
) -> bool:
    """Give `old`'s uses, root role, metadata and sharding to `new`; remove `old` and operands that die with
    it.

    False where XLA refuses: `old` has control dependencies that are not to be relayed, or with
    `preserve_sharding` the two have different shardings."""
    old_raw, new_raw = old.attributes.raw_items, new.attributes.raw_items
    old_sharding, new_sharding = old_raw.get("sharding"), new_raw.get("sharding")
    if preserve_sharding and old_sharding and new_sharding and old_sharding != new_sharding:
        return False
    if relay_control_dependencies:
        move_control_dependencies(old, new)
    elif old.has_control_dependencies:
        return False
    metadata = old_raw.get("metadata")
    if metadata and metadata != new_raw.get("metadata") and old.op_name and not new.op_name:
        set_attribute(new, "metadata", metadata)
    if old_sharding and new_sharding is None:
        set_attribute(new, "sharding", old_sharding)
    computation = old.computation
    assert computation is not None
    old.replace_all_uses_with(new)
    same = old.opcode == new.opcode and old_raw.get("custom_call_target") == new_raw.get("custom_call_target")
    if same and computation.module is not None:
        # XLA gives the old name on without making it unique again: the old one is about to go.
        new.name = old.name
    remove_with_unused_operands(old, ignore_control_dependencies=relay_control_dependencies)
    return True
