"""Peculiarities of XLA's model that a pair's figures rest on."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir.graph import Instruction

_WARP = 32
_ALIGNED, _UNALIGNED = 6, 400  # operations for each element, see cost/gpu/op_costs.py


def remarks(producer: Instruction, consumer: Instruction) -> tuple[str, ...]:
    """What is not to be guessed from shapes; names are those inside the two."""
    found = []
    for instruction in (*_inside(producer), *_inside(consumer)):
        if instruction.opcode == "concatenate":
            dimension = instruction.dimensions[0]
            size = instruction.operands[0].shape.dimensions[dimension]
            if dimension > 0 and size % _WARP:
                found.append(
                    f"{instruction.name} counts {_UNALIGNED} operations an element, not {_ALIGNED}: it joins"
                    f" along dimension {dimension}, and the {size} of its first operand is no multiple of"
                    f" {_WARP}. Pad the parts to one, or join along dimension 0."
                )
    return tuple(dict.fromkeys(found))


def _inside(instruction: Instruction) -> Iterator[Instruction]:
    if instruction.opcode == "fusion":
        yield from instruction.fused_computation.instructions
    else:
        yield instruction
