"""Readers that called the function which computed a value, and readers elsewhere that called it themselves.

`g(a) * f(x)` reads what `f` computed within it: the value has no name, so that who reads the like in another
expression had called `f` for that. HloCSE (`xla/service/hlo_cse.cc`) made one of the two, and appended the
readers of the other when the tuples that had either among their elements were gone.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.common.extents import Extent, extent_of, extent_of_frame


def apart_from_other_callers(
    source: Instruction, users: list[Instruction]
) -> tuple[list[Instruction], list[list[Instruction]]]:
    """The users within what called for the `source`, and those of each other place.

    All of them where no user called for it.
    """
    around = _places_around(source)
    callers = [place for u in users if (place := extent_of(u)) is not None and place in around]
    if not callers:
        return users, []
    own = [u for u in users if not {extent_of(u), *_places_around(u)}.isdisjoint(callers)]
    groups: dict[Hashable, list[Instruction]] = {}
    for u in users:
        if u not in own:
            groups.setdefault(extent_of(u), []).append(u)
    return own, [*groups.values()]


def _places_around(x: Instruction) -> set[Extent]:
    """The places of the calls out of which it came."""
    if x.computation is None or x.computation.module is None:
        return set()
    module = x.computation.module
    frames = [*module.stack_frames.with_callers(stack_frame(x))][1:]
    return {place for frame in frames if (place := extent_of_frame(module, frame)) is not None}
