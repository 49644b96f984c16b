"""Inlining the computation of a fusion or call: the opposite of fusing and outlining."""

from collections.abc import Callable

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.fusing import clone_of, computation_of, module_of
from hlofuse.ir.graph import Instruction, Module


def instruction_limit(module: Module) -> int:
    """The limit of instructions after inlining: bodies with many callers multiply."""
    return 20 * sum(len(c) for c in module.computations) + 100_000


def check_growth(module: Module, most: int) -> None:
    """Raise `HlofuseError` for a module with more than `most` instructions."""
    if sum(len(c) for c in module.computations) > most:
        raise HlofuseError(
            f"{module.name} has computations called so often that, each call put in place, it would have"
            f" more than {most:,} instructions"
        )


def unfuse(caller: Instruction) -> None:
    """Replace a fusion or a call by its instructions, which keep their names.

    Inlining does not undo all of fusing: an instruction copied into several fusions stays copied, and use
    lists follow the order of inlining.
    """
    body = caller.called_computations[0]
    computation = computation_of(caller)
    module = module_of(computation)
    only_caller = sum(body.callers.values()) == 1
    outer: dict[Instruction, Instruction] = {}
    for inner in body.post_order():
        if inner.opcode == "parameter":
            outer[inner] = caller.operands[inner.parameter_number]
            module.note_replacement(inner, outer[inner])
            continue
        clone = clone_of(inner, [outer[o] for o in inner.operands])
        outer[inner] = computation.add_instruction(clone)
        if only_caller:
            clone.name = inner.name  # which is about to go
    root = outer[body.root]
    if body.root.opcode == "tuple":
        for user in list(caller.users):
            if user.opcode == "get-tuple-element":
                user.replace_all_uses_with(root.operands[user.tuple_index])
                if not user.is_root and not user.users:
                    user.drop_all_control_dependencies()
                    computation.remove_instruction(user)
    caller.replace_all_uses_with(root)
    caller.drop_all_control_dependencies()
    computation.remove_instruction(caller)
    if body.root.opcode == "tuple" and not root.users and not root.is_root:
        computation.remove_instruction(root)
    if not body.callers:
        module.remove_computation(body)


def inline_calls(module: Module, chosen: Callable[[Instruction], bool]) -> bool:
    """Inline all `chosen` calls, nested ones included; True if there was one.

    Raises `HlofuseError` for excessive growth.
    """
    most = instruction_limit(module)
    changed, pending = False, True
    while pending:
        pending = False
        for computation in list(module.computations):
            for i in list(computation) if computation.module is not None else ():
                if i.computation is computation and chosen(i):
                    unfuse(i)
                    changed = pending = True
            check_growth(module, most)
    return changed
