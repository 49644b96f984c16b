"""What a matrix product read before GemmFusion took a copy of it along, where others read it too.

GemmFusion (`xla/backends/gpu/transforms/gemm_fusion.cc`) clones what a dot reads into the fusion, which reads
what that had read. In the program the walk came along the original with the dot.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.analysis.constants import is_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.fusions import LAYOUT_ONLY


def operands_before_gemms(computation: Computation) -> dict[Instruction, list[Instruction]]:
    """By gemm of which there are originals: those, the last of each chain, and then its operands."""
    found: dict[Instruction, list[Instruction]] = {}
    for x in computation:
        if x.opcode == "fusion" and x.fusion_kind == "kCustom":
            originals = _originals(x)
            if originals:
                read = zip(x.operands, x.fused_computation.parameters, strict=True)
                found[x] = [*originals, *(o for o, inner in read if not _is_read_sliced(inner))]
    return found


def originals_of(fusion: Instruction) -> dict[Instruction, Instruction]:
    """What is outside of a `fusion`, and still there, by what is a copy of it within."""
    outside: dict[Instruction, Instruction] = {}
    for x in fusion.fused_computation.post_order():
        original = _original(x, fusion, outside)
        if original is not None:
            outside[x] = original
    return outside


def _originals(fusion: Instruction) -> list[Instruction]:
    dot = next((x for x in fusion.fused_computation if x.opcode == "dot"), None)
    if dot is None:
        return []
    outside = originals_of(fusion)
    read = [x for operand in _before_swap(dot) for x in _last_of(operand, fusion, outside)]
    return [] if set(read) <= set(fusion.operands) else read


def _is_read_sliced(x: Instruction) -> bool:
    """Did it take a slice of it along? That of a merged product did not read the others that were merged."""
    return bool(x.users) and all(u.opcode == "slice" for u in x.users)


def _before_swap(dot: Instruction) -> list[Instruction]:
    """The operands in the order that they had in the program.

    GemmFusionSwapOperands (`xla/backends/gpu/transforms/gemm_fusion_swap_operands.cc`) leaves the result
    where it was in memory, so that the layout is another one than the first.
    """
    return dot.operands if dot.shape.is_row_major else dot.operands[::-1]


def _last_of(
    operand: Instruction, fusion: Instruction, outside: dict[Instruction, Instruction]
) -> list[Instruction]:
    """What `operand` is computed of: the last of which there are originals, and what is read from outside."""
    pending = [operand]
    found: list[Instruction] = []
    while pending:
        x = pending.pop()
        while x.opcode in LAYOUT_ONLY:
            x = x.operands[0]
        if x.opcode == "parameter":
            found.append(fusion.operands[x.parameter_number])
        elif x in outside and x.op_name:  # or it was put in, for something else
            found.append(outside[x])
        else:
            pending += reversed(x.operands)
    return found


def _cut(x: Instruction) -> Hashable:
    """Which part it is of what it reads."""
    return repr(x.attributes["slice"]) if x.opcode == "slice" else None


def _original(
    x: Instruction, fusion: Instruction, outside: dict[Instruction, Instruction]
) -> Instruction | None:
    """The operation outside that computes the same from the same.

    Of numbers it may be others: HoistFusedBitcasts gave the fusion bitcasts of them, which were folded.
    """
    if x.opcode == "parameter":
        return without_bitcasts(fusion.operands[x.parameter_number])
    if x.opcode in LAYOUT_ONLY:
        return outside.get(x.operands[0])
    operands = [outside[o] for o in x.operands if o in outside and not is_constant(outside[o])]
    if not operands or any(o not in outside and not is_constant(o) for o in x.operands):
        return None
    producer = min(operands, key=lambda o: len(o.users))
    for user in producer.users:
        for y in user.users if user.opcode == "bitcast" else (user,):
            is_like = (y.opcode, y.op_name, _cut(y)) == (x.opcode, x.op_name, _cut(x))
            if is_like and set(operands) <= set(map(without_bitcasts, y.operands)):
                return y
    return None
