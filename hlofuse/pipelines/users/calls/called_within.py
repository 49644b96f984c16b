"""Readers that called the function which computed a value, and readers elsewhere that called it themselves.

`g(a) * f(x)` reads what `f` computed within it: the value has no name, so that who reads the like in another
expression had called `f` for that. HloCSE (`xla/service/hlo_cse.cc`) made one of the two, and appended the
readers of the other when the tuples that had either among their elements were gone.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.extents import extent_of, places_of_callers


def apart_from_other_callers(
    source: Instruction, users: list[Instruction]
) -> tuple[list[Instruction], list[list[Instruction]]]:
    """The users within what called for the `source`, and those of each other place.

    All of them where no user called for it.
    """
    around = places_of_callers(source)
    callers = [place for u in users if (place := extent_of(u)) is not None and place in around]
    if not callers:
        return users, []
    own = [u for u in users if not {extent_of(u), *places_of_callers(u)}.isdisjoint(callers)]
    groups: dict[Hashable, list[Instruction]] = {}
    for u in users:
        if u not in own:
            groups.setdefault(extent_of(u), []).append(u)
    return own, [*groups.values()]
