"""Divided by a constant that became products with its reciprocal, of which CSE made one for all.

What had a constant subtracted became the sum with that negated in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.custom_calls import is_library_matmul
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_of_called
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.constants import in_single_precision, number_of
from hlofuse.pipelines.users.common.fusions import is_gemm
from hlofuse.pipelines.users.common.holes import last_in_front, without

_ALPHA = re.compile(r'"alpha_real":([\d.eE+-]+)')

Divided: TypeAlias = "dict[Hashable, list[Instruction]]"
"""The products and sums that were divisions and differences: by size and the constant that they have."""


def divided_by_constants(order: Iterable[Instruction]) -> Divided:
    """Those in `order`, the post-order of a computation."""
    found: Divided = {}
    taken: set[Hashable] = set()
    for x in order:
        factor = _factor(x)
        if factor is not None:
            shape = x.shape if x.shape.is_array else x.shape.tuple_shapes[0]
            found.setdefault(_key(shape, factor), []).append(x)
        if _was_difference(x) and (added := number_of(x.operands[1])) is not None:
            found.setdefault(("add", _key(x.shape, added)), []).append(x)
        for product in _taken_along(x):
            factor, place = _factor(product), (product.op_name, stack_frame(product))
            if factor is not None and place not in taken:
                taken.add(place)  # what feeds several dots is in the fusion of each
                found.setdefault(_key(product.shape, factor), []).append(x)
    return found


def _was_difference(x: Instruction) -> bool:
    """Is it of an expansion, where equal constants are one? The framework spreads one for each `sub`."""
    made_of = operation(x)
    return x.opcode == "add" == name_before_renaming(x).root and made_of not in {"", "add", "add_any", "sub"}


def _taken_along(x: Instruction) -> Iterator[Instruction]:
    """The products that a Triton gemm took along."""
    if is_gemm(x):
        yield from (y for y in x.fused_computation if y.opcode == "multiply")


def _factor(x: Instruction) -> float | None:
    """What `x` multiplies by in place of a division."""
    if x.opcode == "multiply" and operation(x) == "div":
        return number_of(x.operands[1])
    if x.opcode == "multiply" and (factor := _merged_factor(x)) is not None:
        return factor
    if x.opcode != "custom-call":
        return None
    # GemmRewriter has the library multiply (`xla/backends/gpu/transforms/gemm_rewriter.cc`).
    alpha = _ALPHA.search(x.attributes.raw("backend_config") or "")
    return in_single_precision(float(alpha[1])) if alpha and alpha[1] != "1" else None


def _merged_factor(product: Instruction) -> float | None:
    """The constant in a product with a scalar, with which a scalar that was there had been multiplied.

    AlgebraicSimplifier multiplies what is broadcast: `(x * reciprocal) * scalar` has one factor then
    (`HandleMultiply`).
    """
    for o in product.operands:
        factor = o.operands[0] if o.opcode == "broadcast" else o
        if factor.opcode != "multiply" or factor.shape.rank or is_of_program(factor):
            continue
        scalar = factor.operands[1].literal.scalar if factor.operands[1].opcode == "constant" else None
        if scalar is not None and factor.shape.element_type == "f32":
            return in_single_precision(float(scalar))
    return None


def with_divisions_gone(
    number: Instruction, users: list[Instruction], order: dict[Instruction, int], divided: Divided
) -> list[Instruction]:
    """The users of a broadcast `number`, given that what it divided is multiplied by its reciprocal now.

    The divisions, or the differences, went one by one, in post-order (`order`), the last user always taking
    the place (`HandleDivide` and `HandleSubtract`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    if not divided or number.op_name or any(u.id < number.id for u in users):
        return users
    value = number_of(number)
    if value is None:
        return users
    gone = divided.get(("add", _key(number.shape, -value)), [])
    if reciprocal := in_single_precision(1 / value):
        gone = [*gone, *divided.get(_key(number.shape, reciprocal), [])]
    gone = sorted(gone, key=order.__getitem__)
    return without(sorted([*users, *gone], key=order.__getitem__), gone) if gone else users


def _key(shape: Shape, value: float) -> Hashable:
    """The same for what ReshapeMover has given fewer dimensions."""
    return shape.element_count, shape.dimensions[-1:], value


def with_last_for_first_product(
    reciprocal: Instruction, users: list[Instruction], *, ids_known: bool
) -> list[Instruction]:
    """The users of the reciprocal that was kept: the last in front if its own product is not among them.

    Simplification makes the product right behind the reciprocal (`HandleDivide`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and CSE keeps the first reciprocal. If the
    oldest user was made with another one, ReshapeMover or the like has taken the kept one's own product
    elsewhere since, and the last user took its place. `users` stand by age. If ids are a guess, there may be
    others between a reciprocal and its own product, and only the number of the first of all tells.
    """
    if not is_broadcast_of_constant(reciprocal) or not all(map(_is_product_made_by_pass, users)):
        return users
    if not is_made_by_pass(reciprocal) and not _is_younger_than_inlined(reciprocal, users):
        return users
    behind = users[0].id - reciprocal.id
    # The first reciprocal of all, numbered 0, came with the first product.
    first = name_before_renaming(reciprocal).number == 0 < min(name_before_renaming(u).number for u in users)
    is_taken = (ids_known and behind > 1) or (behind > 0 and first)
    return last_in_front(users) if is_taken else users


def with_last_in_place_of_moved_products(
    reciprocal: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction] | None:
    """The users of the reciprocal that was kept, by age, given that others were moved with what they divided.

    A dot was reshaped, and ReshapeMover moved the sum with its bias a round before what divided that: CSE had
    made the reciprocals one by then. Each of those moved left a reshape in its place, and of these CSE made
    one again, which went last. They were made ahead of what stands behind them in post-order (`order`).
    None if there are none.
    """
    if not is_broadcast_of_constant(reciprocal) or not all(map(_is_product_made_by_pass, users)):
        return None
    alike = (b for b in reciprocal.operands[0].users if b.opcode == "broadcast" and b is not reciprocal)
    moved = [u for b in alike if _size(b) == _size(reciprocal) for u in b.users]
    if not moved or not all(map(_has_divided_what_was_moved, moved)):
        return None
    moved.sort(key=order.__getitem__)
    listed = list(users)
    for x in moved:
        behind = (k for k, u in enumerate(listed) if order[u] > order[x])
        listed.insert(next(behind, len(listed)), x)
    return without(listed, [*moved[1:], moved[0]])


def _has_divided_what_was_moved(x: Instruction) -> bool:
    """Was what it divided moved first, or taken along by the library that computes the product?"""
    if not was_division(x):
        return False
    divided = x.operands[0]
    if divided.opcode != "get-tuple-element":
        return divided.opcode in ELEMENTWISE_OPCODES and is_of_program(divided) and is_made_by_pass(divided)
    (product,) = divided.operands
    return is_library_matmul(product) and "BIAS" in (product.attributes.raw("backend_config") or "")


def _size(x: Instruction) -> tuple[int, str]:
    return x.shape.element_count, x.shape.element_type


def _is_product_made_by_pass(x: Instruction) -> bool:
    return x.opcode == "multiply" == name_before_renaming(x).root and (is_made_by_pass(x) or was_division(x))


def _is_younger_than_inlined(x: Instruction, users: list[Instruction]) -> bool:
    """In a function, where what passes make is not told by the root: is it younger than all that is computed
    with it?"""
    others = [o for u in users for o in u.operands if o is not x]
    return is_of_called(x) and all(is_of_program(o) and o.id < x.id for o in others)
