"""Elements of tuples that nobody reads, which a text leaves out.

A front end takes every result of a call apart at once, read or not (`xla/hlo/translate/mhlo_to_hlo`). A text
says of an element where it is read only, as `name#1`. XLA's passes meet the others too: what nobody reads is
visited first (`HloComputation::Accept`), so that a call is inlined in another order.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.text.elements import implied_element
from hlofuse.ir.unique_ids import ComputationIds, UniqueIds


def restore_unread_elements(module: Module, ids: UniqueIds | None) -> None:
    """Add to a module before optimizations the elements that `ids` tell of, without them all there must
    have been. Every element comes right behind what it is one of."""
    for computation in module.computations:
        known = ids.computations.get(computation.name) if ids is not None else None
        order: list[Instruction] = []
        for i in list(computation):
            if i.opcode != "get-tuple-element":
                order.append(i)
                if i.shape.is_tuple:
                    order += _elements(i, known)
        computation.reorder(order)


def _elements(source: Instruction, known: ComputationIds | None) -> list[Instruction]:
    """All of one instruction and those of its elements that are tuples themselves, added where they miss."""
    assert source.computation is not None
    read: dict[int, list[Instruction]] = {}
    for user in source.users:
        if user.opcode == "get-tuple-element":
            read.setdefault(user.tuple_index, []).append(user)
    found: list[Instruction] = []
    for index in sorted({*read, *_taken_apart(source, known, max(read, default=-1))}):
        if index not in read:
            new = implied_element(source, index, f"{source.name}#{index}")
            source.computation.append_parsed(new)
            read[index] = [new]
        for element in read[index]:
            found.append(element)
            if element.shape.is_tuple:
                found += _elements(element, known)
    return found


def _taken_apart(source: Instruction, known: ComputationIds | None, last_read: int) -> Iterable[int]:
    """The elements that a front end made."""
    every = range(len(source.shape.tuple_shapes))
    if known is not None:
        mine = known.by_name.get(source.name)
        return [k for k in every if (mine, k) in known.elements]
    if source.opcode == "tuple":
        return ()
    if source.opcode == "while":
        # Values from outside that a body reads are handed in behind the others, and never come out.
        return range(max([last_read, *_changed(dict(source.called)["body"])]) + 1)
    return every


def _changed(body: Computation) -> list[int]:
    """The elements that a loop does not hand on as they are."""
    if body.root.opcode != "tuple":
        return list(range(len(body.root.shape.tuple_shapes)))
    return [
        k
        for k, x in enumerate(body.root.operands)
        if x.opcode != "get-tuple-element" or x.operands[0].opcode != "parameter" or x.tuple_index != k
    ]
