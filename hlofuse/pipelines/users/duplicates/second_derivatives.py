"""What the rule of a derivative computes: `cos(x)` for `sin(x)`, `x >= 0` for `abs(x)`.

The framework applies the rule once for the value and, where all is derived once more, again for its tangent:
each computes the same. The way back of the tangent reads the one, what is left the other.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses

_IN_RULES = frozenset({("sine", "sin"), ("cosine", "cos"), ("compare", "ge")})
_TWICE = "jvp(jvp("


def with_ways_back_of_tangent_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a value, or of a reshape of it: HloCSE (`xla/service/hlo_cse.cc`) appended those of
    the one that it did not keep."""
    value = producer
    while value.opcode == "bitcast":
        value = value.operands[0]
    back = _way_back_of_tangent(value, users)
    return sorted(users, key=lambda u: u in back)


def with_those_of_tangent_gone(
    producer: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of the operand of such a value: the last takes the place of the one that was not kept."""
    listed = [(u, False) for u in users]
    for value in users:
        back = _way_back_of_tangent(value, value.users)
        if back and len(back) < len(value.users):
            place = min(uses[value, u] for u in back)
            behind = (k for k, (u, is_gone) in enumerate(listed) if not is_gone and uses[producer, u] > place)
            listed.insert(min(behind, default=len(listed)), (value, True))
    return [u for u, _ in without(listed, [x for x in listed if x[1]])]


def _way_back_of_tangent(value: Instruction, users: list[Instruction]) -> set[Instruction]:
    path, _, operation = (value.op_name or "").rpartition("/")
    program, _, derived = path.partition("/")
    if not derived.startswith(_TWICE) or (value.opcode, operation) not in _IN_RULES:
        return set()
    return {u for u in users if (u.op_name or "").startswith(f"{program}/transpose({derived})/")}
