"""Results that were written over an argument as a whole, as the cache of a model is that is filled at once.

AlgebraicSimplifier drops such an update (`HandleDynamicUpdateSlice`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and nothing reads the argument any more.
"""

from __future__ import annotations

from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.pipelines.users.common.holes import last_in_front


def with_results_in_place_of_update(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of what was written, or of what was reshaped for that.

    Those of the update were appended, and the last of them, which is the result, takes its place. What reads
    the update reshaped became a reshape of `producer`, behind the one that was written.
    """
    if len(users) < 2 or producer.computation is None or not producer.computation.is_entry:
        return users
    root = producer.computation.root
    unread = _unread(root)
    if users[-1] is root and producer.shape in unread:
        return last_in_front(users)
    written = [u for u in users if u.opcode == "bitcast" and u.users == [root] and u.shape in unread]
    return [*written, *(u for u in users if u not in written)]


@lru_cache(maxsize=2)  # asked for one computation after the other
def _unread(root: Instruction) -> frozenset[Shape]:
    """The shapes of the arguments of the computation of `root` that nothing reads."""
    parameters = (x for x in root.computation or () if x.opcode == "parameter")
    return frozenset(x.shape for x in parameters if x.shape.rank and not x.users)
