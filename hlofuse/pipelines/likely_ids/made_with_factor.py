"""What AlgebraicSimplifier made together with what it spread for it.

Two constant factors, or a divisor and a factor, become one number, which is spread and multiplied by at once
(`HandleMultiply` and `HandleDivide` of `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and a
product of vectors becomes one of what both are spread to, which is summed (`HandleDot`). Numbers in names
tell in which turn the broadcast was made: the product, which may bear a name of the program, is of the same
turn. Other readers were given that broadcast by CSE, as they had one of their own beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.folded_numbers import is_variance
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.merged_quotients import is_of_merged_quotient
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming

_LATER = (Maker.SIMPLIFIER_AGAIN, Maker.LAYOUT_NORMALIZATION, Maker.SIMPLIFIER_LAST)


def made_with_factor(
    makers: Mapping[Instruction, Maker], told: Mapping[Instruction, Maker]
) -> dict[Instruction, Maker]:
    """Products that seem to be older than what was spread for them, and what sums them.

    Of both their neighbours had `told` the same turn, numbers a later one of what is spread.
    """
    found: dict[Instruction, Maker] = {}
    for factor, maker in makers.items():
        if maker not in _LATER or not _is_new(factor):
            continue
        if maker == Maker.SIMPLIFIER_LAST and _is_product(factor.operands[0]):
            found.update(dict.fromkeys(_merged_last(factor), maker))
        elif told[factor] == Maker.SIMPLIFIER:
            is_number = is_broadcast_of_constant(factor) and not factor.operands[0].shape.rank
            may_be_of_program = is_number and maker != Maker.LAYOUT_NORMALIZATION
            readers = [
                u
                for u in factor.users
                if told.get(u) == Maker.SIMPLIFIER
                and makers[u] < maker
                and u.opcode in ELEMENTWISE_OPCODES
                and (may_be_of_program or not is_told_of_program(u))
            ]
            if any(u.op_name == factor.op_name for u in readers):
                found.update((u, max(maker, found.get(u, maker))) for u in readers)
    for x in [*found]:
        for u in x.users:
            if u.opcode == "reduce" and u.op_name == x.op_name and makers.get(u) == Maker.SIMPLIFIER:
                found[u] = found[x]
    return found


def _is_new(x: Instruction) -> bool:
    return (
        x.opcode == "broadcast"
        and bool(x.op_name)
        and name_before_renaming(x).root == x.opcode
        and x.operands[0].opcode != "convert"
    )


def _is_product(x: Instruction) -> bool:
    """Is it a product that no program has, of two factors that were spread one after the other?

    What float normalization made wide was there before: a convert went through what spreads that.
    """
    is_new = x.opcode == "multiply" and not is_told_of_program(x) and name_before_renaming(x).root == x.opcode
    return is_new and not any(n.opcode == "convert" for n in (*x.operands, *x.users))


def _merged_last(factor: Instruction) -> list[Instruction]:
    """The product that was made with two factors that became one, and that of the factors."""
    of_both = [u for u in factor.users if u.opcode == "multiply" and u.op_name == factor.op_name]
    return [*of_both, factor.operands[0]] if of_both else []


def behind_factors(order: list[Instruction], with_factor: Collection[Instruction]) -> list[Instruction]:
    """The `order` with such products, and their sums, right behind what was spread for them last.

    So are quotients that became products when numbers had been folded: CSE may have kept for one of them what
    was spread later for another one.
    """
    products = {x for x in order if x in with_factor or _is_of_folded(x)}
    key = {x: (k, 0) for k, x in enumerate(order)}
    for k, x in enumerate(order, 1):
        if x in products:
            own = [key[o] for o in x.operands if o in key and (is_broadcast_of_constant(o) or o in products)]
            if own:
                key[x] = max(key[x], (max(own)[0], k))
    return sorted(order, key=key.__getitem__)


def _is_of_folded(x: Instruction) -> bool:
    return x.opcode == "multiply" and (is_of_merged_quotient(x) or is_variance(x))
