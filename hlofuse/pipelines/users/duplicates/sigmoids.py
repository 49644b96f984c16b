"""Sigmoids of which the program itself takes the difference from one, as the derivative does.

`(1 - s) * a + s * b`, the update of a gated recurrent unit, has a difference of its own, and so has the
derivative `s * (1 - s)`. HloCSE (`xla/service/hlo_cse.cc`) makes them one.

A hyperbolic tangent of which the derivative is derived forward has two as well: the forward derivative is
`(x + x * t) * (1 - t)`, and the one that is derived keeps another `1 - t` for its way back.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.derivatives import is_derived_twice, is_on_first_way_back
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert


def with_last_in_place_of_difference(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a value, or of the one, given that the difference of the derivative went.

    That came right ahead of the product it was made for. `order` is the post-order.
    """
    of_one = is_broadcast_of_constant(producer)
    sigmoids = [u.operands[1] for u in users if u.opcode == "subtract"] if of_one else [producer]
    products = sorted((p for s in sigmoids for p in _derivatives(s)), key=order.__getitem__)
    products += _first_ways_back(producer, order)
    listed = [(u, False) for u in users]
    gone = [(p, True) for p in products]
    for difference in gone:
        ahead = (k for k, (u, _) in enumerate(listed, 1) if order[u] < order[difference[0]])
        listed.insert(max(ahead, default=0), difference)
    return [u for u, _ in without(listed, gone)]


def with_ways_back_behind(difference: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of one minus such a tangent, with those behind that read another one.

    Where all that is derived once more, the way back of the forward derivative reads the difference it has;
    what comes last there is the way back of the tangent itself, which had a third one.
    """
    if not is_derived_twice(difference):
        return users
    if not any(_is_difference(difference, o) for o in _tangents(difference)):
        return users
    path = (difference.op_name or "").rpartition("/")[0]
    program, _, derived = path.partition("/")
    back = [u for u in users if (u.op_name or "").startswith(f"{program}/transpose({derived})/")]
    own = {u for u in users if (u.op_name or "").startswith(f"{path}/")}.union(back[:-1])
    return sorted(users, key=lambda u: u not in own)


def _tangents(difference: Instruction) -> list[Instruction]:
    return [o for o in difference.operands if _is_tangent(o)]


def _is_tangent(x: Instruction) -> bool:
    return (x.operands[0] if is_inserted_convert(x) else x).opcode == "tanh"


def _first_ways_back(tangent: Instruction, order: dict[Instruction, int]) -> list[Instruction]:
    """What reads one minus the `tangent` first of all that had its own: nothing if that is no such value."""
    if not _is_tangent(tangent):
        return []
    differences = [u for u in tangent.users if _is_difference(u, tangent) and is_derived_twice(u)]
    back = [u for d in differences for u in d.users if is_on_first_way_back(u)]
    return [min(back, key=order.__getitem__)] if back else []


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
