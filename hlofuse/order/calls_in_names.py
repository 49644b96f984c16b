"""What the op_name of an instruction tells of the calls, loops and branches that it was written in."""

from __future__ import annotations

import re
from functools import lru_cache

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.order.named_calls import calls_shared, function_in_name, is_name_of_call, named_calls
from hlofuse.order.names import ENTRY_OF_OLDER

_REMEMBERED = 1 << 15
"""Paths are asked about again and again, and of those no more than a module has."""

_BODIES = re.compile(r"body|cond|branch_\d+_fun")
"""The computations of loops and conditionals."""

SLICE_OF_SCAN = "/body/jit(dynamic_index_in_dim)/dynamic_slice"
"""How the name of a slice ends that a scan takes of what it goes over."""

FUNCTIONS_OF_SCAN = ("eval_jaxpr", "closed_call")
"""What the framework calls the body of a scan; the second is what it did before."""
_CALLS = frozenset(FUNCTIONS_OF_SCAN)
"""Functions that the framework makes of parts of a program without jit, such as the body of a scan."""


def is_cloned_whole(computation: Computation) -> bool:
    """Is it the body of a loop that constants were sunk into, after all calls had been inlined?"""
    return ".sunk" in computation.name


def is_of_called(x: Instruction) -> bool:
    """Is it of a function, a loop or a branch, which the framework writes as computations of their own?"""
    return bool(scope(x)) or is_in_branch(x) or "/body/" in (x.op_name or "")


def is_in_branch(x: Instruction) -> bool:
    """Is it of a branch of a conditional, which may have been inlined since?"""
    return "/branch_" in (x.op_name or "")


def is_of_derivative(x: Instruction) -> bool:
    """Is it of what differentiation in reverse made, `transpose(jvp(...))`?"""
    return "transpose(" in (x.op_name or "")


def is_on_way_back(x: Instruction) -> bool:
    """Is it of a derivative, rather than of what that computes again as the program has it?"""
    return is_of_derivative(x) and "/rematted_computation/" not in (x.op_name or "")


def scope(x: Instruction) -> str | None:
    """The call the instruction was inlined from, as its op_name tells: `jvp(jit(silu))`; "" for none.

    None if there is no op_name.
    """
    op_name = x.op_name
    return _scope(op_name) if op_name else None


@lru_cache(maxsize=_REMEMBERED)
def _scope(op_name: str) -> str:
    parts = _parts(op_name)
    last = max((k for k, part in enumerate(parts) if _is_call(part)), default=-1)
    return "/".join(parts[: last + 1])


def is_of_call(x: Instruction) -> bool:
    """Was it inlined from a computation that its own computation called?"""
    op_name = x.op_name or ""
    if named_calls(op_name):
        return bool(outermost_call(x))
    is_body = _is_innermost_a_body(op_name)
    if is_body is None:
        return False
    return is_in_entry(x) if is_body else not is_chosen_by_loop(x)


@lru_cache(maxsize=_REMEMBERED)
def _is_innermost_a_body(op_name: str) -> bool | None:
    """Is the innermost thing that it is in the body of a loop or a branch, or a call? None for neither."""
    for part in reversed(_parts(op_name)):
        if _BODIES.fullmatch(part):
            return True
        if _is_call(part):
            return False
    return None


def is_in_entry(x: Instruction) -> bool:
    """Is it in the entry, or in a fusion there?"""
    computation = x.computation
    if computation is None or computation.module is None:
        return False
    entry = computation.module.entry
    return computation is entry or _called_computation(x) is entry


def _called_computation(x: Instruction) -> Computation | None:
    """The entry, the body of a loop or a branch: that of `x`, or that around the fusion it is in."""
    computation = x.computation
    while computation is not None and computation.fusion is not None:
        computation = computation.fusion.computation
    return computation


def outermost_call(x: Instruction) -> str:
    """The call out of which the instruction came into its computation: of nested ones the outermost.

    "" for none. Calls around a loop are not meant: they were inlined with the loop in them, and what had no
    name in the loop has theirs since.
    """
    op_name = x.op_name
    if not op_name:
        return ""
    calls = named_calls(op_name)
    if calls:
        around = _calls_around(x, calls)
        return "/".join(calls[: around + 1]) if around < len(calls) else ""
    function, is_in_body = _outermost_call(op_name)
    if is_in_body:
        return "" if is_named_around_loop(x) else function
    return function if is_in_entry(x) else ""


def function_called(x: Instruction) -> str:
    """The function that the outermost call of `x` calls, `jit(_where)` or `jvp(jit(silu))`; "" for none.

    Where calls tell only their own names, the functions' stand in the path that `x` had before, or in theirs.
    """
    call = outermost_call(x)
    last = call.rpartition("/")[2]
    calls = named_calls(x.op_name or "")
    if not calls or not call:
        return last
    if written := function_in_name(last):
        return written
    functions = [part for part in _parts(x.op_name or "")[len(calls) :] if _is_call(part)]
    at = call.count("/") - len(calls)
    return functions[at] if -at <= len(functions) else ""


def _calls_around(x: Instruction, calls: tuple[str, ...]) -> int:
    """How many of the `calls` that `x` was inlined in are around the loop or the branch that it is in."""
    computation = _called_computation(x)
    loop = computation.first_caller if computation is not None else None
    return calls_shared(calls, named_calls(loop.op_name or "")) if loop is not None else 0


def is_named_around_loop(x: Instruction) -> bool:
    """Is it of a body, but bears the name of the loop, or of what is around that?

    So does the tuple a body gives back, what a scan stacks, and what a loop over a batch selects by its
    predicate.
    """
    loop = caller_of(x)
    if loop is None or loop.opcode not in {"while", "conditional"} or not loop.op_name or not x.op_name:
        return False
    return f"{loop.op_name}/".startswith(f"{x.op_name}/")


def is_chosen_by_loop(x: Instruction) -> bool:
    """Is it what a loop over a batch selects by its predicate, once a turn has been computed?"""
    return x.opcode == "select" and (x.op_name or "").endswith("/while") and is_named_around_loop(x)


def caller_of(x: Instruction) -> Instruction | None:
    """What calls the computation of `x`, a loop or a conditional; None in the entry."""
    return x.computation.first_caller if x.computation is not None else None


@lru_cache(maxsize=_REMEMBERED)
def _outermost_call(op_name: str) -> tuple[str, bool]:
    """With whether that is one of the body of a loop or of a branch."""
    parts = _parts(op_name)
    loop = max((k for k, part in enumerate(parts) if _BODIES.fullmatch(part)), default=-1)
    first = next((k for k in range(loop + 1, len(parts)) if _is_call(parts[k])), None)
    return "" if first is None else "/".join(parts[: first + 1]), loop >= 0


@lru_cache(maxsize=_REMEMBERED)
def functions_around(op_name: str) -> tuple[tuple[str, str], ...]:
    """The functions that the innermost loop or branch calls on the way, by path; each with the way in it."""
    parts = _parts(op_name)
    loop = max((k for k, part in enumerate(parts) if _BODIES.fullmatch(part)), default=-1)
    own = parts[loop + 1 :]
    calls = (k for k, part in enumerate(own[:-1], 1) if _is_call(part))
    return tuple(("/".join(own[:k]), "/".join(own[k:])) for k in calls)


def is_called_once(x: Instruction) -> bool:
    """Did it come out of the body of a loop, which is a function, rather than of what that calls?"""
    return outermost_call(x).rpartition("/")[2] in _CALLS


def is_in_function(op_name: str) -> bool:
    """Is what has that `op_name` written in a function that the program calls, in whatever loops?"""
    return any(map(_is_call, _parts(op_name)))


def is_loop_of_one_turn(x: Instruction) -> bool:
    """Is it of the body of a loop that is gone: WhileLoopSimplifier put the body in place of the loop?"""
    return is_called_once(x) and (is_in_entry(x) or _is_of_inner_loop(x))


def _is_of_inner_loop(x: Instruction) -> bool:
    """Is it of a loop in the body that it is in?"""
    loop = caller_of(x)
    return loop is not None and loop.opcode == "while" and loops_around(x) > loops_around(loop) + 1


def loops_around(x: Instruction) -> int:
    """How many loops and branches its op_name tells of, the parts of each of them counted."""
    return _loops(x.op_name or "")


@lru_cache(maxsize=_REMEMBERED)
def _loops(op_name: str) -> int:
    return sum(_BODIES.fullmatch(part) is not None for part in _parts(op_name))


def _parts(op_name: str) -> list[str]:
    """What stands between the program's name and the end; of several names the first counts.

    Older releases of JAX put the entry behind the program, as if that called it: `jit(f)/jit(main)/...`.
    """
    calls = named_calls(op_name)
    own = op_name.partition(";")[0].split("/")[len(calls) :]
    parts = own[1:] if own[1:] or not calls else own
    return [*calls, *(parts[1:] if parts[:1] == [ENTRY_OF_OLDER] else parts)]


def _is_call(part: str) -> bool:
    return "jit(" in part or part in _CALLS or is_name_of_call(part)
