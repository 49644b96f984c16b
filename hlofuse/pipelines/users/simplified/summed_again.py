"""Sums that were summed again over dimensions of one, as the derivative of a broadcast is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import Name, is_of_program, name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_in_front

Reductions: TypeAlias = "dict[Name, Instruction]"
"""Those of a computation, by name."""


def reductions_in(order: Iterable[Instruction]) -> Reductions:
    """Those among the instructions `order`."""
    return {name_before_renaming(x): x for x in order if x.opcode == "reduce"}


def with_last_in_place_of_sum(
    producer: Instruction, users: list[Instruction], reductions: Reductions
) -> list[Instruction]:
    """The users of a reduction with the last in front if the next number of its name is missing
    between others.

    The derivative of a broadcast, or a sum that keeps dimensions, is reduced to dimensions of one and then
    over those. Simplification makes the second reduction a reshape, which changes nothing and goes in turn:
    its users are appended and the last takes its place (`HandleReduce` and `HandleReshape`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). Behind the last of a name no number tells: it
    is as the others are. What is added in the regions of reductions has numbers as well. Where one of the
    same operation and shape has the number in front, that was summed once, and so was this.
    """
    if producer.opcode != "reduce" or not producer.shape.rank or not is_of_program(producer):
        return users
    root, number = name_before_renaming(producer)
    if (root, number + 1) in reductions or not all(map(_is_told_by_place, users)):
        return users
    if _is_in_region(Name(root, number + 1), producer):
        return users
    before = reductions.get(Name(root, number - 1))
    if before is not None and (before.op_name, before.shape) == (producer.op_name, producer.shape):
        return users
    if not is_of_derivative(producer) and not _is_spread_again(producer):
        return users
    is_last = not any(name.root == root and name.number > number for name in reductions)
    return users if is_last and not _are_others_summed_again(producer, reductions) else last_in_front(users)


def _is_in_region(name: Name, reduction: Instruction) -> bool:
    """Is something that reductions of the module compute called so? It is numbered with the operations."""
    module = reduction.computation.module if reduction.computation is not None else None
    for region in module.computations if module is not None else ():
        caller = region.first_caller
        if caller is not None and caller.opcode == "reduce" and name in map(name_before_renaming, region):
            return True
    return False


def _is_told_by_place(user: Instruction) -> bool:
    """Did it read the sum from the beginning?

    A product that was a dot stands where that was; a negation stands where the reshape was, in front of which
    AlgebraicSimplifier put it.
    """
    return is_of_program(user) or operation(user) == "dot_general" or user.opcode == "negate"


def _are_others_summed_again(last: Instruction, reductions: Reductions) -> bool:
    """Is the next number missing behind the other derivatives that are sums, as it may be behind the `last`?

    Those of the same place in the source tell, if there are any, or those of the same name.
    """
    root = name_before_renaming(last).root
    sums = [x for x in last.computation or () if x is not last and _is_sum_of_derivative(x, root)]
    of_name = [x for x in sums if x.op_name == last.op_name]
    of_place = [x for x in of_name if stack_frame(x) == stack_frame(last)]
    others = [name_before_renaming(x) for x in of_place or of_name or sums]
    return bool(others) and not any((root, other.number + 1) in reductions for other in others)


def _is_sum_of_derivative(x: Instruction, root: str) -> bool:
    is_named = x.opcode == "reduce" and name_before_renaming(x).root == root
    return is_named and x.shape.rank > 0 and is_of_derivative(x)


def _is_spread_again(summed: Instruction) -> bool:
    """Is the sum, or what is computed of it alone, broadcast along the dimensions that it was summed over?

    Only such a sum outside of derivatives, as softmax has, was written to keep dimensions of one.
    """
    of = summed.operands[0].shape.dimensions
    kept = tuple(n for n in range(len(of)) if n not in summed.dimensions)
    computed = [summed]
    known = {summed}
    for x in computed:
        for user in x.users:
            if user.opcode == "broadcast":
                if user.shape.dimensions == of and user.dimensions == kept:
                    return True
            elif (
                user not in known
                and user.shape.dimensions == summed.shape.dimensions
                and all(y in known or is_constant(y) for y in user.operands)
            ):
                computed.append(user)
                known.add(user)
    return False
