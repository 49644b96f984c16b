"""The users of a matrix product in single precision that was one in less in the program.

FloatNormalization (`xla/hlo/transforms/simplifiers/float_normalization.cc`) put a convert back behind it, and
the program read that through a convert to f32. The users of the latter were given to the product, behind the
two, and both went (`simplify_fp_conversions.cc`), the program's first: the last took the place of each.
"""

from __future__ import annotations

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_widening

_PRODUCTS = frozenset({"custom-call", "dot"})


def is_read_through_pair(producer: Instruction, wide: frozenset[Instruction]) -> bool:
    """Is it such a product, the users of which are not in `wide`, which read it narrow, nor other products?"""
    if not _is_widened_product(producer):
        return False
    return not any(u in wide or is_narrow(u) or u.opcode in _PRODUCTS for u in producer.users)


def with_pair_gone(
    product: Instruction, users: list[Instruction], wide: frozenset[Instruction]
) -> list[Instruction]:
    """The users of such a product itself, which came behind the program's convert and the convert back."""
    if product.opcode == "bitcast" or not is_read_through_pair(product, wide):
        return users
    return [u for u in without([None, None, *users], [None, None]) if u is not None]


def _is_widened_product(x: Instruction) -> bool:
    while x.opcode in {"bitcast", "get-tuple-element"}:
        x = x.operands[0]
    if x.opcode not in _PRODUCTS or len(x.operands) < 2 or is_library_convolution(x):
        return False  # convolutions were widened long before, in front of layout normalization
    # A narrow operand that the program converted to, or that a loop is given, has no convert of its own left.
    return any(is_widening(_moved(o)) for o in x.operands[:2])


def _moved(x: Instruction) -> Instruction:
    """What bitcasts and transposes of `x` are of."""
    while x.opcode in {"bitcast", "transpose"}:
        x = x.operands[0]
    return x
