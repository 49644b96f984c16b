"""Values that a derivative of a derivative computes twice, as in the gradient of a gradient.

JAX chooses between a derivative and its negation by whether a value is zero or more, for what has its
magnitude: once for the magnitude and once for that in the derivative, as `logsumexp` has it. Of a sine it
takes the cosine, of which it takes the sine again, and once more the cosine. HloCSE
(`xla/service/hlo_cse.cc`) keeps what it meets first, and appends the users of the other one.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.derivatives import (
    is_derived_twice,
    is_on_first_way_back,
    is_on_second_way_back,
)
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses

_WAVES = {"sin", "cos"}


def with_last_in_place_of_twins(
    producer: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of a `producer` of which such values are computed, given that one of each two went.

    The walk had come to that ahead of whatever else its first reader needs.
    """
    met = {u: uses[u, twin[0]] for u in users if (twin := _readers_of_twin(u, uses))}
    if not met:
        return users
    listed = [(u, False) for u in users]
    for value in met:
        ahead = (k for k, (u, _) in enumerate(listed, 1) if uses[producer, u] < met[value])
        listed.insert(max(ahead, default=0), (value, True))
    return [u for u, _ in without(listed, [(value, True) for value in sorted(met, key=met.__getitem__)])]


def with_readers_of_twin_behind(
    producer: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of such a value itself, or of what it was reshaped to."""
    twin = _readers_of_twin(producer, uses)
    return sorted(users, key=twin.__contains__) if twin else users


def _readers_of_twin(x: Instruction, uses: Uses) -> list[Instruction]:
    """Those of the one like `x` that went, as met: nothing unless `x` is such a value."""
    if not is_derived_twice(x) or not any(map(is_on_first_way_back, x.users)):
        return []
    back = {u for u in x.users if is_on_second_way_back(u)}
    if not _is_of_magnitude(x):
        if operation(x) not in _WAVES:
            return []
        back = {u for u in back if operation(u) == "mul" and stack_frame(u) == stack_frame(x)}
    met = sorted(x.users, key=lambda u: uses[x, u])
    return [u for u in met if (u in back) != (met[0] in back)]


def _is_of_magnitude(x: Instruction) -> bool:
    if x.opcode != "compare" or operation(x) != "ge":
        return False
    value, zero = x.operands
    return is_broadcast_of_constant(zero) and any(u.opcode == "abs" for u in value.users)
