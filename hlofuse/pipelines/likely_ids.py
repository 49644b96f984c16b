"""A guess at the order in which XLA made the instructions of a computation, from their names.

A text is in post-order and does not carry ids, by which equal priorities are settled. Whatever the compiler
makes is put behind what there is, so ids tell which pass made an instruction last, and where that pass
came by. The program's own operations come first, in the order of the program.
"""

from __future__ import annotations

import heapq

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
    """In the order of the text, but what has one root by its numbers."""
    place = {x: k for k, x in enumerate(made)}
    chains: dict[object, list[Instruction]] = {}
    for x in made:
        chains.setdefault(x if x in named else name_before_renaming(x).root, []).append(x)
    next_of: dict[Instruction, Instruction] = {}
    ready: list[int] = []
    for chain in chains.values():
        chain.sort(key=lambda x: (name_before_renaming(x).number, place[x]))
        next_of.update(zip(chain, chain[1:], strict=False))
        ready.append(place[chain[0]])
    heapq.heapify(ready)
    order: list[Instruction] = []
    while ready:
        x = made[heapq.heappop(ready)]
        order.append(x)
        if x in next_of:
            heapq.heappush(ready, place[next_of[x]])
    return order
