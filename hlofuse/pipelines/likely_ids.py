"""A guess at the order in which XLA made the instructions of a computation, from their names.

A text is in post-order and does not carry ids, by which equal priorities are settled. Whatever the compiler
makes is put behind what there is, so ids tell which pass made an instruction last, and where that pass
came by. The program's own operations come first, in the order of the program.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.front_end_names import named_by_front_end
from hlofuse.pipelines.last_made import Maker, last_makers
from hlofuse.pipelines.names import is_of_program, name_before_renaming
from hlofuse.pipelines.program_order import in_program_order


def guess_ids(module: Module) -> None:
    """Give the instructions outside of fusions ids in their likely order of age.

    Where nothing is known of the program (no op_name in the dump) the order of the text is as good as any.
    """
    named = named_by_front_end(module)
    for computation in module.computations:
        if computation.fusion is None and any(is_of_program(x) for x in computation):
            computation.reorder(_by_age(computation, named))


def _by_age(computation: Computation, named: frozenset[Instruction]) -> list[Instruction]:
    inputs = [x for x in computation if x.opcode == "parameter"]
    order = sorted(inputs, key=lambda x: x.parameter_number or 0)
    made: dict[Maker, list[Instruction]] = {}
    for x, maker in last_makers(computation, named).items():
        made.setdefault(maker, []).append(x)
    for maker in sorted(made):
        if maker in (Maker.FRONT_END, Maker.INLINER) and ".sunk" not in computation.name:
            order += in_program_order(made[maker], hoisted=maker == Maker.FRONT_END)
        else:
            order += in_order_of_numbers(made[maker], named)
    return order


def in_order_of_numbers(made: list[Instruction], named: frozenset[Instruction]) -> list[Instruction]:
    """In the order of the text, but what has one root by its numbers.

    A pass goes through a computation in the order of the text that is written then; where that of today is
    another one, the numbers are right.
    """
    place = {x: k for k, x in enumerate(made)}
    chains: dict[str, list[Instruction]] = {}
    for x in made:
        if x not in named:
            chains.setdefault(name_before_renaming(x).root, []).append(x)
    key = {x: (k, 0) for x, k in place.items()}
    for chain in chains.values():
        chain.sort(key=lambda x: (name_before_renaming(x).number, place[x]))
        places = [place[x] for x in chain]
        rising = _longest_rising(places)
        ahead = (p if k in rising else len(made) for k, p in reversed(list(enumerate(places))))
        most = list(accumulate(ahead, min))[::-1]
        least = accumulate(map(min, places, most), max)
        key.update((x, (p, k)) for k, (x, p) in enumerate(zip(chain, least, strict=True), 1))
    return sorted(made, key=key.__getitem__)


def _longest_rising(numbers: list[int]) -> set[int]:
    """The places of a longest rising subsequence."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for k, number in enumerate(numbers):
        length = bisect_left(ends, number)
        before.append(at[length - 1] if length else -1)
        ends[length:length + 1] = [number]
        at[length:length + 1] = [k]
    found: set[int] = set()
    k = at[-1] if at else -1
    while k >= 0:
        found.add(k)
        k = before[k]
    return found
