"""Values that calls compute of nothing they are given, such as the counters of a random generator.

Each call had its own until HloCSE (`xla/service/hlo_cse.cc`) kept the one that its walk met first, and
appended the users of each other as it met that.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.calls.results import is_computed_of_nothing
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.visits import Uses


def in_order_of_meeting(producer: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of such a value, one for each call, which do the same.

    The walk comes to a value of nothing through whoever reads it, ahead of what that reads behind it. The
    value that was kept is of the call whose own user was cloned next, if ids are XLA's: where the walk of now
    meets another first, it is not that of then.
    """
    if is_made_of_nothing(producer):
        return users
    if not all(is_of_program(x) and outermost_call(x) for x in (producer, *users)):
        return users
    if len({(u.opcode, operation(u)) for u in users}) > 1 or not is_computed_of_nothing(producer):
        return users
    met = sorted(users, key=lambda u: uses[producer, u])
    own = min((u for u in users if u.id > producer.id), key=lambda u: u.id, default=None)
    return met if met[0] is own else users
