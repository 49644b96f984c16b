"""What was copied to another layout, as layout normalization leaves it."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, operation


def was_copy(x: Instruction) -> bool:
    """A transpose that is a copy to another layout, normalized: it bears the name of what was copied."""
    return (
        x.opcode == "transpose"
        and name_before_renaming(x).root == "transpose"
        and bool(x.op_name)
        and operation(x) != "transpose"
    )


def was_bitcast_copied(x: Instruction) -> bool:
    """Is it a bitcast that was copied to another layout? What reads it besides was made anew.

    MoveCopyToUsers (`xla/backends/gpu/transforms/move_copy_to_users.cc`) puts that in front of the copy, or
    it reads the copy and layout normalization makes it read the value. One that is younger than the copy was
    an operation that a gemm took in.
    """
    if x.opcode != "bitcast":
        return False
    is_of_gemm = x.operands[0].opcode in {"custom-call", "get-tuple-element"}
    return any(u.op_name == x.op_name and was_copy(u) and (u.id > x.id or is_of_gemm) for u in x.users)
