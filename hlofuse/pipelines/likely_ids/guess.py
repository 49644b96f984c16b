"""A guess at the order in which XLA made the instructions of a computation.

A text is in post-order and does not carry ids, by which equal priorities are settled. Whatever the compiler
makes is put behind what there is (`HloComputation::AddInstruction`), and what is removed leaves no gap
(`Cleanup`), so ids are in the order of who made an instruction last, and when.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.likely_ids.ahead_of_reader import with_numbers_ahead, with_spread_right_ahead
from hlofuse.pipelines.likely_ids.bitcasts import in_order_of_making
from hlofuse.pipelines.likely_ids.callers import reductions_as_written, with_callers_as_written
from hlofuse.pipelines.likely_ids.copied_results import apart_from_copied_results
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end
from hlofuse.pipelines.likely_ids.given_as_text import is_given_as_text
from hlofuse.pipelines.likely_ids.inlined_branches import in_order_of_branches
from hlofuse.pipelines.likely_ids.inlined_calls import in_order_of_cloning
from hlofuse.pipelines.likely_ids.made_again import OF_PROGRAM, made_again_by_numbers
from hlofuse.pipelines.likely_ids.made_with_factor import behind_factors
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import add_moved, makers_in_turn
from hlofuse.pipelines.likely_ids.merged_products import in_order_of_mergers
from hlofuse.pipelines.likely_ids.merged_quotients import behind_quotients, is_of_merged_quotient
from hlofuse.pipelines.likely_ids.older_names import (
    is_clone,
    is_named_after_opcodes,
    made_by_older_front_end,
    with_older_makers,
)
from hlofuse.pipelines.likely_ids.order_of_pass import in_order_of_pass
from hlofuse.pipelines.likely_ids.parts_of_concatenations import (
    with_slices_behind_parts,
    with_wholes_in_front,
)
from hlofuse.pipelines.likely_ids.program_order import in_program_order
from hlofuse.pipelines.likely_ids.rising_numbers import by_numbers, later
from hlofuse.pipelines.likely_ids.simplification_rounds import in_rounds
from hlofuse.pipelines.likely_ids.sort_keys import with_keys_as_made
from hlofuse.pipelines.likely_ids.turns_in_clones import in_turns
from hlofuse.pipelines.names import is_told_of_program


def guess_ids(module: Module) -> dict[Instruction, Maker]:
    """Give the instructions outside of fusions ids in their likely order of age.

    Where nothing is known of the program (no op_name in the dump) the order of the text is as good as any.
    Returns who made each of the others.
    """
    guessed: dict[Instruction, Maker] = {}
    is_older = is_given_as_text(module) and is_named_after_opcodes(module)
    named = made_by_older_front_end(module) if is_older else named_by_front_end(module)
    written = {computation: k for k, computation in enumerate(module.computations)}
    for computation in written:
        if computation.fusion is None:
            order = computation.instructions
            if is_older or any(is_told_of_program(x) for x in order):
                makers, with_factor = makers_in_turn(computation, named)
                makers |= reductions_as_written(makers, named, written)
                if is_older:
                    makers = with_older_makers(computation, makers, named)
                if not is_older and not computation.is_entry:
                    again = made_again_by_numbers(computation, makers, named)
                    makers |= dict.fromkeys(again, Maker.SIMPLIFIER_AGAIN)
                    if again:
                        not_told = {x: maker for x, maker in makers.items() if maker not in OF_PROGRAM}
                        add_moved(not_told)
                        makers |= not_told
                        makers |= dict.fromkeys(later(by_numbers(makers), makers), Maker.SIMPLIFIER_AGAIN)
                order = _by_age(computation, makers, named, with_factor, is_older=is_older)
                guessed.update(makers)
            computation.reorder(_with_elements_behind(with_callers_as_written(order, written)))
    return guessed


def _with_elements_behind(order: list[Instruction]) -> list[Instruction]:
    """Elements right behind the tuple that they are of: they are taken out of it when it is made."""
    place = {x: (k, 0) for k, x in enumerate(order)}
    for k, x in enumerate(order, 1):
        if x.opcode == "get-tuple-element":
            place[x] = (place[x.operands[0]][0], k)
    return sorted(order, key=place.__getitem__)


def _by_age(
    computation: Computation,
    makers: Mapping[Instruction, Maker],
    named: frozenset[Instruction],
    with_factor: frozenset[Instruction],
    *,
    is_older: bool,
) -> list[Instruction]:
    """By the makers of all instructions, but for parameters that stand in front of all."""
    parameters = [x for x in computation if x not in makers]
    order = sorted(parameters, key=lambda x: x.parameter_number or 0)
    made: dict[Maker, list[Instruction]] = {}
    for x, maker in makers.items():
        made.setdefault(maker, []).append(x)
    program = [x for x, maker in makers.items() if maker == Maker.FRONT_END or x in named]
    age = {x: k for k, x in enumerate(program if is_older else in_program_order(program))}
    if Maker.CONDITIONALS in made:
        made.setdefault(Maker.SIMPLIFIER_AGAIN, [])
    laid = frozenset(made.get(Maker.LAYOUT_NORMALIZATION, ()))
    bitcasts = in_order_of_making(made.pop(Maker.ANY, []), laid)
    for maker in sorted((made.keys() | bitcasts.keys()) - {Maker.CONDITIONALS}):
        members = made.get(maker, [])
        if maker == Maker.FRONT_END and is_older and is_clone(computation):
            order += with_numbers_ahead(in_turns(computation, members))
        elif maker == Maker.FRONT_END:
            order += with_numbers_ahead(with_wholes_in_front(sorted(members, key=age.__getitem__), named))
        elif maker == Maker.INLINER:
            cloned_in_turn = in_order_of_pass(in_order_of_cloning(computation, members), [], frozenset())
            order += with_numbers_ahead(with_wholes_in_front(cloned_in_turn, named))
        elif maker == Maker.DOT_MERGER:
            order += in_order_of_mergers(in_order_of_pass(members, [], named))
        elif maker == Maker.SIMPLIFIER_AGAIN:
            # What was merged in the place of another product has the number of that.
            merged = {x for x in members if x.opcode == "multiply" and is_of_merged_quotient(x)}
            turns = [in_order_of_pass(turn, [], named | merged) for turn in in_rounds(members)]
            turns.insert(
                min(1, len(turns) - 1), in_order_of_branches(computation, made.get(Maker.CONDITIONALS, []))
            )
            rounds = behind_factors([x for turn in turns for x in turn], with_factor)
            order += with_slices_behind_parts([*rounds], named)
        else:
            copied: list[Instruction] = []
            if maker == Maker.LAYOUT_NORMALIZATION:
                members, copied = apart_from_copied_results(members)
            # Those that take the place of broadcasts are met in the order of the program.
            broadcasts = [x for x in members if x in age and x.opcode == "broadcast"]
            aged = sorted(broadcasts, key=age.__getitem__)
            made_in_turn = in_order_of_pass(members, aged, named, expanded=True)
            made_in_turn = with_slices_behind_parts(with_keys_as_made(made_in_turn), named)
            if maker == Maker.GATHERS:  # GatherSimplifier goes first
                made_in_turn.sort(key=lambda x: x.opcode == "scatter")
            if maker == Maker.SIMPLIFIER:
                made_in_turn = behind_quotients(
                    with_spread_right_ahead(made_in_turn, cloned=is_clone(computation))
                )
            order += made_in_turn + copied
        order += bitcasts.get(maker, [])
    return order
