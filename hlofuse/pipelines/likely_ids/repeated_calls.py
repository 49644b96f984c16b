"""Computations that call a function which was called before.

Ahead of CallInliner FlattenCallGraph (`FlattenNode` of `xla/service/flatten_call_graph.cc`) leaves a function
to the first that calls it, in the order of computations, and makes a clone for everybody else. Of that only
what was inlined tells: of a function that was called twice each operation is there twice, from one place in
the source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from hlofuse.analysis.constants import is_broadcast_of_constant, is_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.calls_in_names import FUNCTIONS_OF_SCAN, functions_around, scope
from hlofuse.pipelines.likely_ids.random_bits import NAME, is_third_word, shape_generated
from hlofuse.pipelines.names import stack_frame

_NUMBERED = re.compile(r"[^.]*\.(\d+)")
_OF_PASSES = frozenset({"bitcast", "fusion", "get-tuple-element", "tuple"})
"""What stands between operations; a program names it too, but passes make it anew."""


class _Operation(NamedTuple):
    """One of a function, alike wherever that is called."""

    path: str
    opcode: str
    shapes: tuple[str, ...]
    place: object


def repeated_calls(module: Module) -> dict[Computation, int]:
    """By loop body, condition or branch that calls such a function: the number of the first caller's.

    Of several functions the last one counts. Those that call none are left out.
    """
    numbered = [
        (int(match[1]), c)
        for c in module.computations
        if _is_of_control_flow(c) and (match := _NUMBERED.match(c.name)) is not None
    ]
    known: dict[str, list[tuple[int, frozenset[_Operation]]]] = {}
    found: dict[Computation, int] = {}
    for number, computation in sorted(numbered, key=lambda pair: pair[0]):
        for path, members in _functions(computation).items():
            function = path.rpartition("/")[2]
            operations = frozenset(filter(None, members.values()))
            if not operations:
                continue
            callers = known.setdefault(function, [])
            before = next((n for n, others in callers if operations <= others), None)
            if function not in FUNCTIONS_OF_SCAN:
                callers.append((number, operations))
            if before is None and _is_called_twice(function, members):
                before = number
            if before is not None:
                found[computation] = max(found.get(computation, 0), before)
    return found


def _is_of_control_flow(computation: Computation) -> bool:
    caller = computation.first_caller
    return caller is not None and caller.opcode in {"while", "conditional"}


def _functions(computation: Computation) -> dict[str, dict[Instruction, _Operation | None]]:
    """What was inlined, by the paths of the functions; None for what only connects the rest."""
    found: dict[str, dict[Instruction, _Operation | None]] = {}
    for x in computation:
        op_name = x.operands[0].op_name if x.opcode == "get-tuple-element" else x.op_name
        if op_name and x.opcode != "parameter" and not _is_number(x):
            for path, inner in functions_around(op_name):
                found.setdefault(path, {})[x] = None if x.opcode in _OF_PASSES else _operation(x, inner)
        if is_third_word(x):
            generator = f"{scope(x) or ''}/{NAME}({shape_generated(x)})"
            found.setdefault(generator, {})[x] = _Operation(NAME, x.opcode, (), None)
    return found


def _operation(x: Instruction, path: str) -> _Operation:
    shapes = tuple(str(y.shape) for y in (x, *x.operands))
    return _Operation(path, x.opcode, shapes, _place(x))


def _is_number(x: Instruction) -> bool:
    return is_constant(x) or is_broadcast_of_constant(x)


def _place(x: Instruction) -> object:
    """Where it is written: what it was called from is noted as well when a call is inlined."""
    assert x.computation is not None
    assert x.computation.module is not None
    frame = stack_frame(x)
    return x.computation.module.stack_frames.location(frame) or frame


def _is_called_twice(function: str, members: dict[Instruction, _Operation | None]) -> bool:
    """Is all of it there twice, or something in parts that nothing connects?

    The function of a scan's body is in parts of its own accord.
    """
    counts = Counter(x for x in members.values() if x is not None)
    if min(counts.values()) > 1:
        return True
    if function in FUNCTIONS_OF_SCAN:
        return False
    seen: set[_Operation] = set()
    for part in _parts(members):
        operations = {known for x in part if (known := members[x]) is not None}
        if len({known.place for known in operations}) == 1:  # of the call: its own are not the program's
            operations = {known._replace(place=None) for known in operations}
        if not seen.isdisjoint(operations):
            return True
        seen |= operations
    return False


def _parts(members: dict[Instruction, _Operation | None]) -> Iterator[list[Instruction]]:
    rest = dict.fromkeys(members)
    while rest:
        part = [rest.popitem()[0]]
        for x in part:
            for y in (*x.operands, *x.users):
                if y in rest:
                    del rest[y]
                    part.append(y)
        yield part
