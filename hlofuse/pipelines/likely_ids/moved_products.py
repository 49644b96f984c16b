"""Products that ReshapeMover put in front of what they were transposed or merged by.

AlgebraicSimplifier makes of a product with a vector one of what that is spread to, batches first and what is
summed last (`RewriteBatchPlusContractingAsReduce` of
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and of dimensions in between there is one, as
DotDecomposer merged them. Where that is no longer so a reshape or a transposition of both factors has gone
behind (`xla/hlo/transforms/simplifiers/reshape_mover.cc`), and the next simplification takes it into what is
spread and into the sum, which are younger than the product.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import name_before_renaming

_SIMPLIFIERS = (Maker.SIMPLIFIER, Maker.SIMPLIFIER_AGAIN)
_BATCH, _OUTER, _SUMMED = range(3)


def with_moved_products(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """Such products, their sums and what is spread for nothing else, if no later turn is told of them."""
    found: dict[Instruction, None] = {}
    for x, maker in makers.items():
        if maker in _SIMPLIFIERS and is_moved_product(x):
            made_with = [*sums_of(x), *factors_of(x)]
            if all(makers.get(u) in _SIMPLIFIERS for u in made_with):
                found.update(dict.fromkeys([x, *sums_of(x)]))
    spread = (o for x in found for o in x.operands if makers.get(o) == Maker.SIMPLIFIER)
    for_them = [o for o in spread if o.opcode == "broadcast" and found.keys() >= {*o.users}]
    return [*dict.fromkeys([*found, *for_them])]


def is_sum_of_moved(x: Instruction) -> bool:
    """Was a reshape or a transposition of such a product taken into it?"""
    return x.opcode == "reduce" and is_moved_product(x.operands[0]) and x in sums_of(x.operands[0])


def is_moved_product(x: Instruction) -> bool:
    """Is it one of an array and a vector that is spread for it, in dimensions as no pass makes them?"""
    if x.opcode != "multiply" or name_before_renaming(x).root != x.opcode:
        return False
    sums = sums_of(x)
    factors = factors_of(x)
    if not sums or len(factors) != 1 or factors[0].operands[0].shape.rank == 0:
        return False
    spread, summed = factors[0].attributes["dimensions"], sums[0].attributes["dimensions"]
    kinds = [
        _OUTER if k not in spread else _SUMMED if k in summed else _BATCH
        for k in range(len(x.shape.dimensions))
    ]
    return kinds.count(_OUTER) > 1 or kinds != sorted(kinds)


def sums_of(product: Instruction) -> list[Instruction]:
    """What the product was made for."""
    return [u for u in product.users if u.opcode == "reduce" and u.op_name == product.op_name]


def factors_of(product: Instruction) -> list[Instruction]:
    """What was spread for the product."""
    return [o for o in product.operands if o.opcode == "broadcast" and o.op_name == product.op_name]
