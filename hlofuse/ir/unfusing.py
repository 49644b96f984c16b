"""Taking a fusion apart: its instructions stand in its place again."""

from __future__ import annotations

from hlofuse.ir.fusing import clone_of, computation_of, module_of
from hlofuse.ir.instruction import Instruction


def unfuse(fusion: Instruction) -> None:
    """Put what is in the fusion where the fusion is, under the names it has there; the fusion goes.

    The opposite of fusing, but for what fusing forgets: copies that went into several fusions stay copies,
    and the order of users is that in which things are put back.
    """
    computation, body = computation_of(fusion), fusion.fused_computation
    module = module_of(computation)
    outside: dict[Instruction, Instruction] = {}
    for inner in body.post_order():
        if inner.opcode == "parameter":
            outside[inner] = fusion.operands[inner.parameter_number]
        else:
            clone = clone_of(inner, [outside[o] for o in inner.operands])
            outside[inner] = computation.add_instruction(clone)
            clone.name = inner.name
    root = outside[body.root]
    if body.root.opcode == "tuple":
        for user in list(fusion.users):
            if user.opcode == "get-tuple-element":
                user.replace_all_uses_with(root.operands[user.tuple_index])
                if not user.is_root and not user.users:
                    user.drop_all_control_dependencies()
                    computation.remove_instruction(user)
    fusion.replace_all_uses_with(root)
    fusion.drop_all_control_dependencies()
    if not fusion.is_root:
        computation.remove_instruction(fusion)
    if body.root.opcode == "tuple" and not root.users and not root.is_root:
        computation.remove_instruction(root)
    if not body.callers:
        module.remove_computation(body)
