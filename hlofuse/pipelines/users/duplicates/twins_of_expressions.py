"""What the program computes expressions of that it writes twice.

HloCSE (`xla/service/hlo_cse.cc`) keeps the one that its walk meets first. The other goes from the lists of
its operands, and the last user there takes its place.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.concatenates import is_of_merged
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.duplicates.source_expressions import readers_of_twin


def with_last_in_place_of_merged_expressions(
    producer: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of `producer`, of which another expression like one of them was computed as well.

    It was made when the walk came to what must have read it. What was itself written twice, such as elements
    that bitcasts are left of, had a list for each until then.
    """
    if is_made_of_nothing(producer) or producer.opcode == "bitcast" or readers_of_twin(producer):
        return users
    places = sorted(place for u in users for place in _places_of_twins(u, uses))
    if not places:
        return users
    made: list[tuple[int, Instruction | None]] = [(_when_made(u, uses), u) for u in users]
    for place in reversed(places):
        ahead = [k for k, (when, _) in enumerate(made, 1) if when < place]
        made.insert(ahead[-1] if ahead else 0, (place, None))
    left = without(made, [(place, None) for place in places])
    return [u for _, u in left if u is not None]


def _places_of_twins(x: Instruction, uses: Uses) -> list[int]:
    """When the walk stood at each reader of one like `x`. Broadcasts are made for each by the framework."""
    if is_made_of_nothing(x) or x.opcode == "broadcast" or not all(map(_is_as_written, (x, *x.users))):
        return []
    return [uses[x, u] for u in readers_of_twin(x)]


def _is_as_written(x: Instruction) -> bool:
    """Is it what the program has in its place, neither made by a pass nor derived of what stands there?"""
    if not is_of_program(x) or is_made_by_pass(x) or is_of_merged(x):
        return False
    return "jvp(" not in (x.op_name or "")


def _when_made(x: Instruction, uses: Uses) -> int:
    """When the walk was through with all that `x` reads."""
    return max(uses[o, x] for o in x.operands)
