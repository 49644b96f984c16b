"""Bitcasts of bitcasts of a value, which became bitcasts of the value itself."""

from __future__ import annotations

from bisect import bisect
from functools import lru_cache

from hlofuse.ir.instruction import Instruction


def with_merged_bitcasts_behind(value: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `value` that is reshaped and nothing else, with such bitcasts behind. Ids are XLA's.

    AlgebraicSimplifier (`HandleBitcast`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) appends
    the new bitcast to the users of what the inner one reads. Those that reshapes of the program became are
    older, as ReshapeDecomposer (`xla/hlo/transforms/expanders/reshape_decomposer.cc`) makes them one after
    the other, each in the place of its reshape: what else came in between tells the two apart.
    """
    if not all(_is_named_bitcast(u) and u.id > value.id for u in users):
        return users
    others = _ids_of_others(value)
    oldest = min(users, key=lambda u: u.id, default=None)
    if oldest is None or oldest.op_name != value.op_name:
        return users  # what reads it in that shape may have asked for that itself
    merged = [u for u in users if bisect(others, u.id) > bisect(others, oldest.id)]
    return [*(u for u in users if u not in merged), *sorted(merged, key=lambda u: u.id)]


def _is_named_bitcast(x: Instruction) -> bool:
    return x.opcode == "bitcast" and bool(x.op_name)


def _ids_of_others(x: Instruction) -> tuple[int, ...]:
    return _ids_but_bitcasts(x.computation.root) if x.computation is not None else ()


@lru_cache(maxsize=2)  # asked for one computation after the other
def _ids_but_bitcasts(root: Instruction) -> tuple[int, ...]:
    return tuple(sorted(x.id for x in root.computation or () if x.opcode != "bitcast"))
