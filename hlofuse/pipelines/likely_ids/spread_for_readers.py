"""Broadcasts that were made with, for or of what simplification made.

AlgebraicSimplifier makes what it puts in the place of an operation together with what that reads, so that
they share their metadata (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). What ReshapeMover put in
front of a reshape reads a reshape of each number first, of which the next time around makes a broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.ahead_of_reader import is_spread_for_reader
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import is_told_of_program, is_without_op_name, operation

_SIMPLIFIERS = (Maker.SIMPLIFIER, Maker.SIMPLIFIER_AGAIN)


def spread_with_reader(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """Two factors that became one, spread once, and what stands for the sides of an outer product."""
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.SIMPLIFIER_AGAIN and not is_broadcast_of_constant(x) and is_spread_for_reader(x)
        if all(makers.get(u) == Maker.SIMPLIFIER and u.opcode in ELEMENTWISE_OPCODES for u in x.users)
        if x.operands[0].opcode == "bitcast" or makers.get(x.operands[0]) == Maker.SIMPLIFIER
    ]


def spread_for_made(makers: Mapping[Instruction, Maker]) -> dict[Instruction, Maker]:
    """Numbers without a name in the program that only what simplification computes reads: made with that."""
    return {
        x: min(makers[u] for u in x.users)
        for x, maker in makers.items()
        if maker == Maker.FRONT_END and is_broadcast_of_constant(x) and is_without_op_name(x) and x.users
        if all(makers[u] in _SIMPLIFIERS and u.opcode in ELEMENTWISE_OPCODES for u in x.users)
        if not any(map(is_told_of_program, x.users))
    }


def spread_of_made_again(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What spreads something that was only made the next time around."""
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.SIMPLIFIER and x.opcode == "broadcast" and not is_told_of_program(x)
        if makers.get(x.operands[0]) == Maker.SIMPLIFIER_AGAIN and x.operands[0].opcode in ELEMENTWISE_OPCODES
    ]


def spread_as_written(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What the program spreads of a quotient that became a product in its place: no reshape was between."""
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.SIMPLIFIER_AGAIN and x.opcode == "broadcast" and operation(x) == "broadcast_in_dim"
        if x.operands[0].opcode == "multiply" and makers[x.operands[0]] == Maker.SIMPLIFIER
    ]


def spread_for_made_again(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """Numbers whose first reader was moved: CSE keeps the broadcast that it meets first, that one's."""
    place = {x: k for k, x in enumerate(makers)}
    found: list[Instruction] = []
    for x, maker in makers.items():
        if maker == Maker.SIMPLIFIER and is_broadcast_of_constant(x) and x.users:
            first = min(x.users, key=lambda u: place.get(u, len(place)))
            if makers.get(first) == Maker.SIMPLIFIER_AGAIN and _may_be_moved(first, makers):
                found.append(x)
    return found


def _may_be_moved(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    """Not of what was computed sooner alone, behind which no reshape is."""
    return x.opcode in ELEMENTWISE_OPCODES and any(
        o.opcode not in ELEMENTWISE_OPCODES or makers.get(o) == Maker.SIMPLIFIER_AGAIN
        for o in x.operands
        if not is_broadcast_of_constant(o)
    )
