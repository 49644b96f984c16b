"""Sigmoids of which the program itself takes the difference from one, as the derivative does.

`(1 - s) * a + s * b`, the update of a gated recurrent unit, has a difference of its own, and so has the
derivative `s * (1 - s)`. HloCSE (`xla/service/hlo_cse.cc`) makes them one.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.constants import is_broadcast_of_constant
from hlofuse.pipelines.users.common.holes import without


def with_last_in_place_of_difference(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a value, or of the one, given that the difference of the derivative went.

    That came right ahead of the product it was made for. `order` is the post-order.
    """
    of_one = is_broadcast_of_constant(producer)
    sigmoids = [u.operands[1] for u in users if u.opcode == "subtract"] if of_one else [producer]
    products = sorted((p for s in sigmoids for p in _derivatives(s)), key=order.__getitem__)
    listed = [(u, False) for u in users]
    gone = [(p, True) for p in products]
    for difference in gone:
        ahead = (k for k, (u, _) in enumerate(listed, 1) if order[u] < order[difference[0]])
        listed.insert(max(ahead, default=0), difference)
    return [u for u, _ in without(listed, gone)]


def _derivatives(sigmoid: Instruction) -> list[Instruction]:
    """The products with one minus `sigmoid` where that is written elsewhere."""
    return [u for u in sigmoid.users if u.opcode == "multiply" and _has_twin(sigmoid, u)]


def _has_twin(sigmoid: Instruction, product: Instruction) -> bool:
    place = stack_frame(product)
    return any(_is_difference(o, sigmoid) and stack_frame(o) != place for o in product.operands)


def _is_difference(x: Instruction, sigmoid: Instruction) -> bool:
    if x.opcode != "subtract" or x.operands[1] is not sigmoid or operation(x) != "sub":
        return False
    return is_of_program(x) and is_broadcast_of_constant(x.operands[0])
