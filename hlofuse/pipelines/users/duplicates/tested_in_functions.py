"""Tests of a value for being finite that a function makes of what it is given, and its caller as well.

`isfinite(x) & ~isclose(y, x)` asks twice whether `x` is finite, the second time within a function. HloCSE
(`xla/service/hlo_cse.cc`) keeps the test that its walk meets first, and appends the users of the other one.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.visits import Uses


def with_tests_where_met(producer: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of such a test, those of either together.

    A function that was given the test would choose by it; what joins it with another test has made it, of a
    value that the function reads elsewhere.
    """
    test = producer.operands[0] if producer.opcode == "bitcast" else producer
    if test.opcode != "is-finite" or len(users) < 2 or not is_of_program(test):
        return users
    around = outermost_call(test)
    groups: dict[str, list[Instruction]] = {}
    for user in users:
        function = outermost_call(user)
        is_own = function != around and user.opcode in {"and", "not"} and _reads(function, test.operands[0])
        groups.setdefault(function if is_own else around, []).append(user)
    met = sorted(groups.values(), key=lambda group: min(uses[producer, u] for u in group))
    return [u for group in met for u in group]


def _reads(function: str, value: Instruction) -> bool:
    return bool(function) and any(outermost_call(u) == function for u in value.users)
