"""The users of a matrix product in single precision that was one in less in the program.

FloatNormalization (`xla/hlo/transforms/simplifiers/float_normalization.cc`) put a convert back behind it, and
the program read that through a convert to f32. The users of the latter were given to the product, behind the
two, and both went (`simplify_fp_conversions.cc`), the program's first: the last took the place of each.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.floats.inserted_converts import (
    before_layout,
    is_narrow,
    is_widening,
    reads_widened,
)

_PRODUCTS = frozenset({"custom-call", "dot"})


def places_of_widened(order: Iterable[Instruction]) -> frozenset[int]:
    """The places in the source of such products; the derivatives of one have its place, and are as narrow."""
    return frozenset(stack_frame(x) for x in order if _is_product(x) and reads_widened(x)) - {0}


def is_read_through_pair(producer: Instruction, wide: frozenset[Instruction], places: frozenset[int]) -> bool:
    """Is it such a product, the users of which are not in `wide`, which read it narrow, nor other products?

    `places` are those of such products. A bitcast without a name LayoutNormalization made for each that reads
    the product in another layout (`xla/service/layout_normalization.cc`): CSE made one of those.
    """
    if producer.opcode == "bitcast" and not producer.op_name:
        return False
    product = producer
    while product.opcode in {"bitcast", "get-tuple-element"}:
        product = product.operands[0]
    if not _is_product(product) or not (reads_widened(product) or stack_frame(product) in places):
        return False
    return not any(u in wide or is_narrow(u) or u.opcode in _PRODUCTS for u in producer.users)


def with_pair_gone(
    product: Instruction, users: list[Instruction], wide: frozenset[Instruction], places: frozenset[int]
) -> list[Instruction]:
    """The users of such a product itself, which came behind the program's convert and the convert back."""
    if product.opcode == "bitcast" or not is_read_through_pair(product, wide, places):
        return users
    return [u for u in without([None, None, *users], [None, None]) if u is not None]


def with_pair_of_sum_gone(
    total: Instruction, users: list[Instruction], wide: frozenset[Instruction]
) -> list[Instruction]:
    """The users of the `total` that such a product became: they were given it behind the convert back.

    `HandleDotStrengthReduction` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) added up before
    anything was widened, so that there is no other convert of it.
    """
    if total.opcode != "reduce" or is_of_program(total) or operation(total) not in {"", "dot_general"}:
        return users
    product = total
    while product.opcode in {"bitcast", "reduce"}:
        product = product.operands[0]  # it may be added up in several steps
    if product.opcode == "convert" and _is_half_as_wide(product.operands[0]):
        product = product.operands[0]  # multiplied as it was, where the device can
    elif not any(is_widening(_spread(o)) for o in product.operands):
        return users
    if product.opcode != "multiply":
        return users
    return users if any(u in wide or _is_half_as_wide(u) for u in users) else last_in_front(users)


def _is_half_as_wide(x: Instruction) -> bool:
    """Is it narrower than what sums are made in? f16 is, which nothing has to be widened from."""
    return is_narrow(x) or (x.shape.is_array and x.shape.element_type == "f16")


def _spread(x: Instruction) -> Instruction:
    """What a factor was broadcast of."""
    x = before_layout(x)
    return before_layout(x.operands[0]) if x.opcode == "broadcast" else x


def _is_product(x: Instruction) -> bool:
    # Convolutions were widened long before, in front of layout normalization.
    return x.opcode in _PRODUCTS and len(x.operands) > 1 and not is_library_convolution(x)
