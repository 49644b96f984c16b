"""Where random bits are generated: by a function without op_name, one for each shape.

JAX lowers `threefry2x32_p` to a function with the shapes of its operands (`threefry2x32_lowering` of
`jax/_src/prng.py`). Neither the call nor what it holds bears a place in the source.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction

NAME = "threefry2x32"
_PARITY = 0x1BD11BDA
"""What the third word of the key is xored with, once a call (`threefry2x32`)."""


def is_third_word(x: Instruction) -> bool:
    """Is it the word of the key that each call makes of the other two?"""
    return x.opcode == "xor" and any(_number(o) == _PARITY for o in x.operands)


def shape_generated(word: Instruction) -> str:
    """Of the bits. The words of a key are scalars until they are added."""
    near = [word, *word.users, *(v for u in word.users for v in u.users)]
    return str(max((x.shape for x in near if not x.shape.is_tuple), key=lambda s: s.element_count))


def _number(x: Instruction) -> object:
    if x.opcode == "broadcast":
        x = x.operands[0]
    return x.literal.scalar if x.opcode == "constant" and not x.shape.dimensions else None
