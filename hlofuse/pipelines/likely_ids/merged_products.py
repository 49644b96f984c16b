"""What DotMerger makes of products that share an operand (`xla/hlo/transforms/simplifiers/dot_merger.cc`).

It joins the other operands, and takes the results out of the product behind that, one merger after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.signs_of_passes import CALLS
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming

_BETWEEN = frozenset({"bitcast", "convert", "copy", "transpose"})
"""What later passes put between an operand and a product."""


def is_joined_for_product(x: Instruction) -> bool:
    """Does a product read the concatenation, which the framework did not make?"""
    return not is_told_of_program(x) and any(u.opcode in CALLS for u in _readers(x))


def is_part_of_merged(x: Instruction) -> bool:
    """Is it a slice of a product that reads such a concatenation?"""
    return any(o.opcode == "concatenate" and is_joined_for_product(o) for o in _joined_for(x))


def in_order_of_mergers(made: list[Instruction]) -> list[Instruction]:
    """What was `made`, given in its likely order, with slices right behind what was joined for them."""
    joined = [x for x in made if x.opcode == "concatenate"]
    turn = {x: k for k, x in enumerate(sorted(joined, key=lambda x: name_before_renaming(x).number))}
    key: dict[Instruction, int] = {}
    last = -1
    for x in made:
        of = next((turn[o] for o in _joined_for(x) if o in turn), last) if x not in turn else turn[x]
        key[x] = last = of
    return sorted(made, key=lambda x: (key[x], x not in turn))


def _readers(x: Instruction) -> Iterator[Instruction]:
    for u in x.users:
        if u.opcode in _BETWEEN:
            yield from _readers(u)
        else:
            yield u


def _joined_for(x: Instruction) -> Iterator[Instruction]:
    """What the product that it is a slice of reads."""
    call = x.operands[0]
    while call.opcode in _BETWEEN or call.opcode == "get-tuple-element":
        call = call.operands[0]
    if call.opcode not in CALLS:
        return
    for o in call.operands:
        while o.opcode in _BETWEEN:
            o = o.operands[0]
        yield o
