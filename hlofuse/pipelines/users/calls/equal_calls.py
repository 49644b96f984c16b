"""Values that two functions compute alike, of which CSE made one.

`x // n` and `x % n` are two functions, which both divide and compare the remainder with zero. HloCSE
(`xla/service/hlo_cse.cc`) gives the users of the second remainder to the first, behind its own; then the
second comparison goes in turn.
"""

from __future__ import annotations

from collections.abc import Callable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call, scope
from hlofuse.pipelines.users.common.holes import without


class Twin:
    """What went: the like of it is read by `reader`, which is of the second function."""

    def __init__(self, reader: Instruction) -> None:
        self.reader = reader


def merged_twins(
    inner: list[Instruction],
    outer: list[Instruction],
    function: str,
    function_of: Callable[[Instruction], str | None] = outermost_call,
) -> list[Twin]:
    """What was merged with one of the users in the same `function`, `inner`, in the order it was made.

    A function reads what it was given or made itself. Where it reads a value of another function and what
    that one made of the value, it had both of its own. A derivative is given what the original made.
    """
    others = {function_of(u) or "" for u in outer}
    if len(others) != 1 or not _differ(function, *others):
        return []
    readers = (v for u in inner for v in u.users if function_of(v) in others)
    return [Twin(v) for v in sorted(dict.fromkeys(readers), key=lambda v: v.id)]


def merged_in_nested(source: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `source`, of a function that another one calls; none if nothing went.

    What is called in the body of a scan is.
    """
    function = scope(source) or ""
    inner = [u for u in users if scope(u) == function]
    outer = [u for u in users if scope(u) != function]
    around = function.rpartition("/")[0]
    if any((scope(u) or "").rpartition("/")[0] != around for u in outer):
        return []  # that reads a result
    twins = merged_twins([u for u in inner if u.opcode != "bitcast"], outer, function, scope)
    return with_twins_users_merged(inner, outer, twins) if twins else []


def with_twins_users_merged(
    inner: list[Instruction], outer: list[Instruction], twins: list[Twin]
) -> list[Instruction]:
    """The users in both functions after the `twins` went from among the `outer`, which are in post-order."""
    listed: list[Instruction | Twin] = [*outer, *twins]
    listed.sort(key=_age)
    return [*inner, *(u for u in without(listed, twins) if isinstance(u, Instruction))]


def _age(x: Instruction | Twin) -> tuple[int, bool]:
    return (x.reader.id, False) if isinstance(x, Twin) else (x.id, True)


def _differ(function: str, other: str) -> bool:
    """Are these two functions, rather than one and its derivative?"""
    return bool(other) and _written(function) != _written(other)


def _written(function: str) -> str:
    """The function as the program calls it."""
    last = function.rpartition("/")[2]
    return last[last.find("jit(") :].rstrip(")")
