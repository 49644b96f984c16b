"""Who made the instructions of a computation, such that numbers grow from turn to turn."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_call
from hlofuse.pipelines.likely_ids.folded_numbers import is_of_folded_number
from hlofuse.pipelines.likely_ids.inlined_branches import of_inlined_branches
from hlofuse.pipelines.likely_ids.laid_beside import computed_of_laid, laid_beside
from hlofuse.pipelines.likely_ids.made_with_factor import made_with_factor
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers import Makers, reduced_by
from hlofuse.pipelines.likely_ids.merged_quotients import is_of_merged_quotient
from hlofuse.pipelines.likely_ids.moved_behind_gathers import moved_behind_gathers
from hlofuse.pipelines.likely_ids.moved_products import with_moved_products
from hlofuse.pipelines.likely_ids.moved_reshapes import (
    converted_for_moved,
    moved_along,
    on_the_way_to_moved,
    split_behind_product,
    spread_for_moved,
    spread_for_moved_alone,
    spread_of_moved,
)
from hlofuse.pipelines.likely_ids.parts_of_concatenations import made_for_slices
from hlofuse.pipelines.likely_ids.rising_numbers import by_numbers, later
from hlofuse.pipelines.likely_ids.signs_of_passes import is_for_updates
from hlofuse.pipelines.likely_ids.spread_for_readers import (
    spread_as_written,
    spread_for_made,
    spread_for_made_again,
    spread_of_made_again,
    spread_with_reader,
)
from hlofuse.pipelines.likely_ids.updated_slices import is_of_updated
from hlofuse.pipelines.likely_ids.widened_products import widened_for_products
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming, operation

_CALLED = (Maker.INLINER, Maker.CONDITIONALS)
_SPREAD = (Maker.SIMPLIFIER, Maker.CONDITIONALS)


class Made(NamedTuple):
    """What is told of the instructions of a computation."""

    makers: dict[Instruction, Maker]
    """The last one of each but parameters."""
    with_factor: frozenset[Instruction]
    """Products that were made right behind what was spread for them."""


def makers_in_turn(computation: Computation, named: frozenset[Instruction]) -> Made:
    """Who made the instructions last.

    `named` are those that still bear the front end's name. Of what passes named after one opcode the higher
    number was made later: where neighbours tell otherwise, as few as possible are given to another maker.
    """
    made = _made_in_turn(computation, named, ())
    moved = with_moved_products(made.makers)
    return _made_in_turn(computation, named, moved) if moved else made


def _made_in_turn(
    computation: Computation, named: frozenset[Instruction], moved: Collection[Instruction]
) -> Made:
    """The same if products were `moved`, of which numbers of others have to tell then."""
    guess = Makers(computation, named)
    makers = {x: guess.of(x) for x in computation if x.opcode != "parameter"}
    makers.update(dict.fromkeys(moved, Maker.SIMPLIFIER_AGAIN))
    told = dict(makers)
    in_branches = of_inlined_branches(computation, makers, named)
    makers.update(dict.fromkeys(in_branches, Maker.CONDITIONALS))
    in_turn = by_numbers(makers, moved)
    raised = later(in_turn, makers)
    makers.update(in_turn)
    makers.update(made_for_slices(makers, named))
    makers.update(dict.fromkeys(_alone_in_layout(makers), Maker.SIMPLIFIER_AGAIN))
    makers.update(dict.fromkeys(laid_beside(makers), Maker.LAYOUT_NORMALIZATION))
    makers.update(dict.fromkeys(laid_in_calls(makers), Maker.LAYOUT_NORMALIZATION))
    makers.update(dict.fromkeys(_spread_beside_transposed(makers), Maker.LAYOUT_NORMALIZATION))
    makers.update(dict.fromkeys(_spread_beside_merged(makers), Maker.SIMPLIFIER_AGAIN))
    makers.update(dict.fromkeys(split_behind_product(makers), Maker.SIMPLIFIER_AGAIN))
    makers.update(dict.fromkeys(moved_behind_gathers(makers, named), Maker.SIMPLIFIER_AGAIN))
    add_moved(makers, raised)
    in_turn = by_numbers(makers, moved)
    makers.update((x, maker) for x, maker in in_turn.items() if x.opcode in ELEMENTWISE_OPCODES)
    makers.update((x, Maker.SIMPLIFIER_AGAIN) for x in makers if is_of_merged_quotient(x))
    folded = (x for x in makers if makers[x] in (Maker.INLINER, Maker.SIMPLIFIER) and is_of_folded_number(x))
    makers.update(dict.fromkeys([*folded], Maker.SIMPLIFIER_AGAIN))
    makers.update(dict.fromkeys(_converted_before_spread(makers), Maker.SIMPLIFIER_LAST))
    makers.update(dict.fromkeys(_of_updates(makers), Maker.SIMPLIFIER_AGAIN))
    makers.update(dict.fromkeys(spread_for_moved_alone(makers), Maker.SIMPLIFIER_AGAIN))
    with_reader = dict.fromkeys(spread_with_reader(makers), Maker.SIMPLIFIER)
    makers.update(with_reader)
    told.update(with_reader)

    makers.update(widened_for_products(makers))
    in_turn = by_numbers(makers, moved)
    makers.update((x, maker) for x, maker in in_turn.items() if x.opcode == "broadcast")
    makers.update(spread_for_made(makers))
    makers.update(dict.fromkeys(spread_of_made_again(makers), Maker.SIMPLIFIER_AGAIN))
    makers.update(dict.fromkeys(spread_for_made_again(makers), Maker.SIMPLIFIER_AGAIN))
    makers.update(dict.fromkeys((x for x in spread_as_written(makers) if x in named), Maker.FRONT_END))
    in_turn = by_numbers(makers, moved)
    late = (x for x in later(in_turn, makers) if x.opcode == "broadcast")
    makers.update(dict.fromkeys(late, Maker.SIMPLIFIER_AGAIN))
    with_factor = made_with_factor(makers, told)
    makers.update(with_factor)
    makers.update(dict.fromkeys(computed_of_laid(makers), Maker.LAYOUT_NORMALIZATION))
    makers.update(dict.fromkeys(_reduced_in_layout(makers), Maker.REDUCTIONS))
    return Made(makers, frozenset(with_factor))


def add_moved(makers: dict[Instruction, Maker], raised: Collection[Instruction] = ()) -> None:
    """Put in what was moved with what seems to be made the second time around, and what was spread for it.

    Of those `raised` only numbers tell it: AlgebraicSimplifier itself may have made them then.
    """
    told = makers | dict.fromkeys(raised, Maker.SIMPLIFIER)
    for moved_with in (
        moved_along,
        on_the_way_to_moved,
        converted_for_moved,
        spread_for_moved,
        spread_of_moved,
    ):
        found = dict.fromkeys(moved_with(told), Maker.SIMPLIFIER_AGAIN)
        told.update(found)
        makers.update(found)


def _of_updates(makers: dict[Instruction, Maker]) -> list[Instruction]:
    """What an expanded scatter reads that got rid of a dimension of size one meanwhile."""
    made = [x for x, maker in makers.items() if maker == Maker.SIMPLIFIER and not x.op_name]
    return [x for x in made if is_of_updated(x) or (is_broadcast_of_constant(x) and is_for_updates(x))]


def _converted_before_spread(makers: dict[Instruction, Maker]) -> list[Instruction]:
    """What is converted for broadcasts that had been converted themselves: both are new.

    Mirrors `HandleConvert` of `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`.
    """
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.FLOAT_NORMALIZATION and x.opcode == "convert" and x.users
        if all(u.opcode == "broadcast" and makers.get(u) == Maker.SIMPLIFIER_LAST for u in x.users)
    ]


def _alone_in_layout(makers: dict[Instruction, Maker]) -> list[Instruction]:
    """What bears a name that framework and compiler share, but has nothing around it in another layout.

    LayoutNormalization made anew all that was in one layout, or none of it, and called after its opcode what
    the framework calls otherwise. What was moved behind a reshape (ReshapeMover) keeps its root as well.
    """
    shared = {
        x
        for x, maker in makers.items()
        if maker == Maker.LAYOUT_NORMALIZATION and is_told_of_program(x) and x.opcode in ELEMENTWISE_OPCODES
    }
    found: list[Instruction] = []
    seen: set[Instruction] = set()
    for start in shared:
        if start in seen:
            continue
        group, told = [start], False
        seen.add(start)
        for x in group:
            for near in (*x.operands, *x.users):
                if near in shared:
                    if near not in seen:
                        seen.add(near)
                        group.append(near)
                elif makers.get(near) == Maker.LAYOUT_NORMALIZATION and not is_broadcast_of_constant(near):
                    told = True
        if not told:
            found += group
    return found


def laid_in_calls(makers: dict[Instruction, Maker]) -> list[Instruction]:
    """What calls brought in that reads, or is read by, what LayoutNormalization made anew of the same call.

    It made all of that layout, and what framework and compiler call the same still bears the root. So were
    numbers that only that reads.
    """
    pending = [
        x
        for x, maker in makers.items()
        if maker == Maker.LAYOUT_NORMALIZATION and x.opcode in ELEMENTWISE_OPCODES and is_of_call(x)
    ]
    found: dict[Instruction, None] = {}
    for start in pending:
        for x in (*start.operands, *start.users):
            if x not in found and makers.get(x) in _CALLED and _bears_opcode(x):
                found[x] = None
                pending.append(x)
    laid = {*pending}
    spread = (
        o
        for x in found
        for o in x.operands
        if makers.get(o) in _SPREAD and is_broadcast_of_constant(o) and laid.issuperset(o.users)
    )
    return [*found, *dict.fromkeys(spread)]


def _bears_opcode(x: Instruction) -> bool:
    return x.opcode in ELEMENTWISE_OPCODES and name_before_renaming(x).root == x.opcode


def _reduced_in_layout(makers: dict[Instruction, Maker]) -> list[Instruction]:
    """Reductions of what LayoutNormalization made anew: ReductionLayoutNormalizer made those anew in turn."""
    return [
        x
        for x, maker in makers.items()
        if x.opcode == "reduce" and maker < Maker.LAYOUT_NORMALIZATION
        if makers.get(reduced_by(x)) == Maker.LAYOUT_NORMALIZATION
    ]


def _spread_beside_transposed(makers: dict[Instruction, Maker]) -> list[Instruction]:
    """Numbers that were spread in another layout, as what else is read there was."""
    transposed = {
        x for x, maker in makers.items() if maker == Maker.LAYOUT_NORMALIZATION and x.opcode == "transpose"
    }
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.SIMPLIFIER and is_broadcast_of_constant(x) and x.users
        if all(not transposed.isdisjoint(u.operands) for u in x.users)
    ]


def _spread_beside_merged(makers: dict[Instruction, Maker]) -> list[Instruction]:
    """Iotas that were spread for an operation of the program as what else it reads was, a reshape between.

    Of the iota the broadcast is made an iota of its shape.
    """
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.SIMPLIFIER and x.opcode == "iota" and not is_told_of_program(x) and x.users
        if any(
            o.opcode == "broadcast"
            and makers.get(o) == Maker.SIMPLIFIER_AGAIN
            and operation(o) == operation(x)
            for o in x.users[0].operands
        )
    ]
