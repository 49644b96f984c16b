"""Instructions that hand on values of others instead of making their own.

Mirrors the rules by opcode of `HloDataflowAnalysis::UpdateInstructionValueSet`: what is not handed on is
defined (`InitializeInstructionValueSets`).
"""

from functools import cache
from typing import NamedTuple

from hlofuse.analysis.async_ops import is_async_end, wrapped_opcode
from hlofuse.analysis.hlo_value import Index, shape_tree
from hlofuse.ir.graph import Instruction


class Forward(NamedTuple):
    """So many values from a place in the result on are those of `source` from `start` on."""

    at: int
    size: int
    source: Instruction
    start: int


_WHOLE = frozenset({"add-dependency", "all-reduce-done", "bitcast", "call", "domain", "opt-barrier"})
"""They hand on all of what they are given."""
_STARTS = frozenset({"all-gather-start", "collective-permute-start"})
_DONES = frozenset({"all-gather-done", "collective-permute-done"})
_ASYNC = frozenset({"async-start", "async-update", "async-done"})
_ONE_ELEMENT: dict[str, tuple[Index, Index]] = {
    "send": ((0,), ()),
    "recv-done": ((0,), (0,)),
    "copy-start": ((1,), ()),
    "copy-done": ((), (0,)),
}
"""Where they hand something on, and which element of their operand that is."""
_FORWARDING = (
    frozenset({"tuple", "get-tuple-element", "copy", *_ONE_ELEMENT}) | _WHOLE | _STARTS | _DONES | _ASYNC
)


@cache
def may_forward(opcode: str) -> bool:
    """True if an instruction of this opcode may hand on values."""
    return opcode in _FORWARDING or wrapped_opcode(opcode) is not None or is_async_end(opcode)


def forwards_of(x: Instruction) -> list[Forward]:
    """What an instruction hands on; empty if it defines all of its result."""
    opcode, operands = x.opcode, x.operands
    if opcode in _WHOLE:
        source = x.called[0][1].root if opcode == "call" else operands[0]
        return _found(x, (), source, ())
    if opcode == "get-tuple-element":
        return _found(x, (), operands[0], (x.tuple_index,))
    if opcode == "tuple":
        return [f for k, operand in enumerate(operands) for f in _found(x, (k,), operand, ())]
    if opcode == "copy":
        return _elements(x, (), operands[0], ())
    if opcode in _ONE_ELEMENT:
        at, index = _ONE_ELEMENT[opcode]
        return _found(x, at, operands[0], index)
    if opcode in _STARTS:
        if len(operands) == 1 or (opcode == "collective-permute-start" and len(operands) == 4):
            return _found(x, (0,), operands[0], ())
        return [f for k, operand in enumerate(operands) for f in _found(x, (0, k), operand, ())]
    if opcode in _DONES:
        return _elements(x, (), operands[0], (1,)) if x.shape.is_tuple else _found(x, (), operands[0], (1,))
    return _of_async(x)


def _of_async(x: Instruction) -> list[Forward]:
    """Operands and results of a computation that runs by the side (`UpdateAsyncStartValueSet`)."""
    operands = x.operands
    root = x.called[0][1].root if x.called else None
    if is_async_end(x.opcode):
        done = x.opcode.endswith("-done")
        if root is not None:
            return _leaves(x, () if done else (1,), root, ()) + (
                [] if done else _leaves(x, (0,), operands[0], (0,))
            )
        return _leaves(x, (), operands[0], (1,) if done else ())
    found = [f for k, operand in enumerate(operands) for f in _leaves(x, (0, k), operand, ())]
    if root is not None:
        # Of an update the result is the operand's buffer, which is known before it is written.
        source = operands[0] if root.opcode == "dynamic-update-slice" else root
        found += _leaves(x, (1,), source, ())
    return found


def _found(x: Instruction, at: Index, source: Instruction, index: Index) -> list[Forward]:
    """The whole of `source` at `index` is what `x` holds at `at`; nothing where that does not exist."""
    tree, source_tree = shape_tree(x.shape), shape_tree(source.shape)
    place, start = tree.place.get(at), source_tree.place.get(index)
    if place is None or start is None:
        return []
    size = len(shape_tree(source_tree.shapes[start])) if source.shape.is_tuple else 1
    own = len(shape_tree(tree.shapes[place])) if x.shape.is_tuple else 1
    return [Forward(place, size, source, start)] if size == own else []


def _elements(x: Instruction, at: Index, source: Instruction, index: Index) -> list[Forward]:
    """The elements of a tuple that `x` makes itself."""
    count = len(x.shape.tuple_shapes) if x.shape.is_tuple else 0
    return [f for k in range(count) for f in _found(x, (*at, k), source, (*index, k))]


def _leaves(x: Instruction, at: Index, source: Instruction, index: Index) -> list[Forward]:
    """All that are no tuples."""
    tree = shape_tree(source.shape)
    if index not in tree.place:
        return []
    found: list[Forward] = []
    for inner in tree.indices:
        is_inside = inner[: len(index)] == index
        if is_inside and not (source.shape.is_tuple and tree.shapes[tree.place[inner]].is_tuple):
            found += _found(x, (*at, *inner[len(index) :]), source, inner)
    return found
