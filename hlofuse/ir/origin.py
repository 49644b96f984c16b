"""The instructions of a run's input that an instruction comes from (`Instruction.origin`).

A run names every instruction of its input after itself. A clone has the origin of its source. A replacement
has its own origin and that of the instruction that it replaces. Instructions share these immutable values.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

Origin: TypeAlias = "str | tuple[Any, ...]"
"""A name in the input, a pair of origins with the instruction's own first, or `()` for a new instruction."""

NO_ORIGIN: Origin = ()


def joined(own: Origin, other: Origin) -> Origin:
    """The origin of an instruction with origin `own` that now also stands for `other`."""
    if not other or own is other:
        return own
    if not own:
        return other
    if own.__class__ is tuple and (own[0] is other or own[1] is other):
        return own
    return own, other


def names_in(origin: Origin) -> Iterator[str]:
    """The names, the instruction's own first; one that was joined twice may occur twice."""
    pending = [origin]
    while pending:
        x = pending.pop()
        if isinstance(x, str):
            yield x
        else:
            pending += reversed(x)


def own_name(origin: Origin) -> str | None:
    """The name of the input instruction that this is, or is a clone of; None for a new instruction."""
    while not isinstance(origin, str):
        if not origin:
            return None
        origin = origin[0]
    return origin
