"""What CallInliner (`xla/service/call_inliner.cc`) cloned out of a call: which one, and what reads that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.calls_in_names import is_called_once, outermost_call
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.calls.unrolled_loops import is_stacked
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.divisors import was_divisors
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert
from hlofuse.pipelines.users.floats.widened import served_by


def is_of_same_call(x: Instruction, source: Instruction, function: str) -> bool:
    """Was `x` cloned with `source`, out of one call of `function`?"""
    if is_stacked(x) and x.op_name == source.op_name:
        return True
    if x.opcode == "bitcast":  # it bears the name of what it was put behind
        if _is_given_back(x) and _is_read_only_outside(function, source, x):
            return False  # whoever called the function reshaped the result
        named = [u for u in x.users if u.op_name]
        readers = named or [u for u in map(served_by, x.users) if u.opcode == "reduce"] or [x.operands[0]]
        within = all(outermost_call(u) == function and u.opcode != "bitcast" for u in readers)
        return bool(x.op_name and x.users and within)
    if x.opcode == "concatenate" and not x.op_name:  # DotMerger's, in place of the products that read them
        return all(outermost_call(o) == function for o in x.operands)
    if was_divisors(x):
        (x,) = x.users  # which divided by one divisor after the other
    if outermost_call(x) != function:
        return False
    if not (is_result(source) and _leads_to_like(source, x, function)):
        return True
    return is_called_once(source) and not _is_unrolled(source)


def is_of_later_call(
    x: Instruction, source: Instruction, function: str, order: Mapping[Instruction, int]
) -> bool:
    """Does `x`, of a `function`, read something outside of it that is made of `source`?

    No call is given what is made of its own results, however often it is made itself.
    """
    if is_called_once(source):
        return False
    found = {source}
    pending = [o for o in x.operands if is_of_program(o) and outermost_call(o) != function]
    while pending:
        operands = pending.pop().operands
        if source in operands:
            return True
        near = {o for o in operands if order[o] > order[source]} - found
        found |= near
        pending += near
    return False


def _is_given_back(x: Instruction) -> bool:
    """Is it a result of the whole program, in other dimensions, and nothing else?

    Where only dimensions of size 1 went a sum over them may have done that, in the function.
    """
    (source,) = x.operands
    if x.computation is None or x.op_name != source.op_name:
        return False
    if x.shape.true_dimensions == source.shape.true_dimensions:
        return False
    return x.users == [x.computation.root] and not x.users[0].op_name


def _is_read_only_outside(function: str, source: Instruction, x: Instruction) -> bool:
    """Does something other than `x` read `source`, and none of that in the `function`?"""
    others = [u for u in source.users if u is not x]
    return bool(others) and all(u.op_name and outermost_call(u) != function for u in others)


def _is_unrolled(x: Instruction) -> bool:
    """Is the function of its body called for several turns at once (`scan` with `unroll`)?

    The body takes the turns' parts out of what it takes at the index, and puts their results together again.
    """
    around = outermost_call(x).rpartition("/")[0]
    ends = {f"{around}/slice", f"{around}/concatenate"}
    return x.computation is not None and any(
        i.opcode in {"slice", "concatenate"} and (i.op_name or "").partition("/")[2] in ends
        for i in x.computation
    )


def _leads_to_like(result: Instruction, start: Instruction, function: str) -> bool:
    """Is `start` of a call that has no other result than one like `result`? Then it is another call."""
    found, pending, again = {start}, [start], False
    while pending:
        x = pending.pop()
        if _is_like(x, result):
            again = again or not x.users or is_result(x)
            continue
        if is_result(x):
            return False
        near = [u for u in x.users if outermost_call(u) == function and u not in found]
        found.update(near)
        pending += near
    return again


def _is_like(x: Instruction, other: Instruction) -> bool:
    """Is it the same operation of the source, as far as is told, in whatever call?"""
    if (x.opcode, x.op_name, x.shape) != (other.opcode, other.op_name, other.shape):
        return False
    here, there = extent_of(x), extent_of(other)
    return here is None or there is None or here[1:] == there[1:]


def is_result(x: Instruction) -> bool:
    function = outermost_call(x)
    return any(outermost_call(v) != function for v in readers_of(x))


def clone_of(user: Instruction) -> Instruction:
    """What was cloned out of a call: the user, or what it was put in front of."""
    clone = served_by(user)
    if clone.opcode == "bitcast" and len(clone.users) == 1 and outermost_call(clone) == "":
        return clone.users[0]
    return clone


def readers_of(x: Instruction, but: Instruction | None = None) -> Iterator[Instruction]:
    """What reads `x`, an element of it or what passes put behind it; not `but`, nor what reads that."""
    for user in x.users:
        if user is but:
            continue
        if is_element(user):
            yield from readers_of(user, but)
        elif user.opcode == "bitcast" or is_inserted_convert(user):
            yield from user.users
        else:
            yield user


def operands_of(x: Instruction) -> list[Instruction]:
    return [o.operands[0] if is_inserted_convert(o) or is_element(o) else o for o in x.operands]


def is_element(x: Instruction) -> bool:
    """Is it one of the results of a sort? It has no name of its own."""
    return x.opcode == "get-tuple-element" and x.operands[0].opcode == "sort"


def twins_of(x: Instruction) -> list[Instruction]:
    """What the same operation, written once, makes of the same operands in another order."""
    operands = set(x.operands)
    others = (u for o in x.operands if not is_made_of_nothing(o) for u in o.users if u is not x)
    return [u for u in others if u.op_name == x.op_name and operands == set(u.operands)]


def is_cotangent(x: Instruction, function: str) -> bool:
    """Is it of a derivative, of which nothing reads the results but who called it?

    Who reads it elsewhere as well had one like it, until CSE made them one.
    """
    is_derivative = function.rpartition("/")[2].startswith("transpose(")
    return is_derivative and x.shape.element_type in FLOATING_TYPES
