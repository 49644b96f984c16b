"""Results of the program that are given a sharding by a reshape of no effect, as an older JAX does.

AlgebraicSimplifier drops it (`HandleReshape`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the
sharding goes on to what was reshaped, and the tuple of the results, its last user then, into its place.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_results_in_place_of_reshape(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a `producer` with a sharding, and the tuple where the walk from it met the reshape.

    That is behind what it met for the results in front, as the post-order (`order`) tells.
    """
    computation = producer.computation
    if computation is None or producer.opcode == "parameter" or not producer.operands:
        return users
    results = computation.root
    if results.opcode != "tuple" or results not in users or producer.attributes.raw("sharding") is None:
        return users
    in_front = results.operands[: results.operands.index(producer)]
    met = max((order[x] for x in in_front), default=-1)
    others = [u for u in users if u is not results]
    place = sum(order[u] <= met for u in others)
    return [*others[:place], results, *others[place:]]
