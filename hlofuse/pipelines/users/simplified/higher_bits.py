"""Random integers below a power of two: of the two draws of bits that make one, the first is gone.

The framework computes `(higher % span * (2**32 % span) + lower % span) % span`. Where that factor is zero,
AlgebraicSimplifier drops the product (`HandleMultiply`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) and with it all that drew the higher bits, after
HloCSE (`xla/service/hlo_cse.cc`) made the counts and the constants of all draws one.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TypeAlias

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import last_in_front, without

_FUNCTION = "jit(_randint)"

LowerBits: TypeAlias = "tuple[dict[Instruction, int], ...]"
"""What drew the lower bits, each time: in the order in which what had drawn the higher ones was removed."""


def lower_bits(order: dict[Instruction, int]) -> LowerBits:
    """Those whose higher bits are gone, in `order`."""
    found = (x for x in order if _is_below_power_of_two(x))
    return tuple(_as_removed(x) for x in found if not any(map(_is_below_power_of_two, x.operands)))


def with_higher_bits_gone(
    producer: Instruction, users: list[Instruction], lower: LowerBits
) -> list[Instruction]:
    """The users of what all draws share: what drew the higher bits was ahead of what drew the `lower`."""
    listed = [(u, False) for u in users]
    gone: list[tuple[Instruction, bool]] = []
    for draw in lower:
        drawn = [u for u in users if u in draw] if producer not in draw else []
        if drawn:
            place = listed.index((drawn[0], False))
            listed[place:place] = [(u, True) for u in drawn]
            gone += [(u, True) for u in sorted(drawn, key=draw.__getitem__)]
    return [u for u, _ in without(listed, gone)] if gone else users


def with_last_in_place_of_least(drawn: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such integers, to which zero was added as the least: the last takes the place of the sum.

    It went (`HandleAdd`), and its users came behind it.
    """
    if drawn.opcode != "convert" or _FUNCTION not in (drawn.op_name or ""):
        return users
    if operation(drawn) != "convert_element_type":
        return users
    is_summed = any(u.opcode == "add" and _FUNCTION in (u.op_name or "") for u in users)
    return users if is_summed else last_in_front(users)


def _is_below_power_of_two(x: Instruction) -> bool:
    """Is it a remainder, that of the lower bits or that of the sum, of which they are all that is left?"""
    if x.opcode != "and" or operation(x) != "rem" or _FUNCTION not in (x.op_name or ""):
        return False
    return any(map(is_broadcast_of_constant, x.operands))


def _as_removed(result: Instruction) -> dict[Instruction, int]:
    """What drew the bits of a `result`, as `RemoveInstructionAndUnusedOperands` comes to what is equal to it.

    It takes what nobody reads any more off a queue (`xla/hlo/ir/hlo_computation.cc`).
    """
    drawn = {result}
    stack = [result]
    while stack:
        found = [o for o in stack.pop().operands if _draws(o, result) and o not in drawn]
        drawn.update(found)
        stack += found
    left = Counter(o for x in drawn for o in set(x.operands))
    removed: dict[Instruction, int] = {}
    queue = deque([result])
    while queue:
        x = queue.popleft()
        if x in removed or left[x] > 0:
            continue
        removed[x] = len(removed)
        left.subtract(set(x.operands))
        queue += [o for o in x.operands if o in drawn]
    del removed[result]  # the remainder, which has a number of its own
    return removed


def _draws(x: Instruction, result: Instruction) -> bool:
    if not is_elementwise(x) or x.opcode == "convert":  # the halves of a count, which all draws share
        return False
    return x.shape.dimensions == result.shape.dimensions and _FUNCTION in (x.op_name or "")
