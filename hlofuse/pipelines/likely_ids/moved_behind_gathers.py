"""What ReshapeMover moved in front of the reshapes that GatherSimplifier puts behind gathers.

A gather that is made simple keeps the dimensions that it had collapsed, with one element each, and a reshape
drops them (`xla/service/gather_simplifier.cc`). What is computed with the gather as it is was moved in front
of that (`xla/hlo/transforms/simplifiers/reshape_mover.cc`), and bears the name of what was there, as the
reshape behind it does. In a clone numbers do not tell. ScatterSimplifier puts such a reshape in front of a
scatter (`xla/service/scatter_simplifier.cc`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.made_again import OF_PROGRAM
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming, number_in_name

_AHEAD_OF_IT = (Maker.FRONT_END, Maker.INLINER, Maker.SIMPLIFIER, Maker.LAYOUT_NORMALIZATION)


def moved_behind_gathers(
    makers: Mapping[Instruction, Maker], named: Collection[Instruction]
) -> list[Instruction]:
    """The elementwise operations that read such gathers, by way of others or not; none that is `named`."""
    found: dict[Instruction, None] = {}
    for x in reversed([*makers]):
        is_kept = x in named or x.opcode not in ELEMENTWISE_OPCODES or makers[x] not in _AHEAD_OF_IT
        if not is_kept and x.users and all(u in found or _ends_there(x, u) for u in x.users):
            found[x] = None
    gathers = (x for x in makers if _keeps_what_it_collapsed(x))
    read = dict.fromkeys(u for x in gathers for u in x.users if u in found)
    pending = [*read]
    for source in pending:
        fresh = dict.fromkeys(u for u in source.users if u in found and u not in read)
        read |= fresh
        pending += fresh
    return [*read, *_made_behind(read, makers, named)]


def _made_behind(
    moved: Collection[Instruction], makers: Mapping[Instruction, Maker], named: Collection[Instruction]
) -> list[Instruction]:
    """What has a higher number of the same root in the body of a loop or a branch was made later still."""
    first: dict[str, int] = {}
    for x in moved:
        root, number = name_before_renaming(x)
        first[root] = min(number, first.get(root, number))
    return [
        x
        for x, maker in makers.items()
        if maker in OF_PROGRAM and x not in named and x not in moved and is_told_of_program(x)
        if x.computation is not None and not x.computation.is_entry
        if number_in_name(x) > first.get(name_before_renaming(x).root, number_in_name(x))
    ]


def _keeps_what_it_collapsed(x: Instruction) -> bool:
    """Has a simple gather dimensions of size one that are none of the indices'?"""
    if x.opcode != "gather" or tuple(x.attributes.get("collapsed_slice_dims") or ()):
        return False
    return any(x.shape.dimensions[k] == 1 for k in x.attributes["offset_dims"])


def _ends_there(x: Instruction, user: Instruction) -> bool:
    """Is it its own reshape, or a simple scatter of it, which there had been a reshape in front of?"""
    return _is_its_reshape(x, user) or (_keeps_what_it_inserted(user) and x is user.operands[2])


def _keeps_what_it_inserted(x: Instruction) -> bool:
    """Has a simple scatter updates with dimensions of size one that are none of the indices'?"""
    if x.opcode != "scatter" or x.shape.is_tuple or tuple(x.attributes.get("inserted_window_dims") or ()):
        return False
    return any(x.operands[2].shape.dimensions[k] == 1 for k in x.attributes["update_window_dims"])


def _is_its_reshape(x: Instruction, user: Instruction) -> bool:
    """Do the dimensions of size one go behind it, where all was its own reshape?"""
    return user.opcode == "bitcast" and user.op_name == x.op_name and user.shape.rank < x.shape.rank
