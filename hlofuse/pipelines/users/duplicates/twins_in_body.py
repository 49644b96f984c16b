"""What a loop's body computed twice, in two calls of a function, until HloCSE kept one."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice, takewhile

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.stack_frames import SourceLocation, StackFrames
from hlofuse.pipelines.calls_in_names import caller_of
from hlofuse.pipelines.names import stack_frame


def with_twins_gone(users: list[Instruction]) -> list[Instruction | None]:
    """The `users` of a value in the body of a loop, with None behind each for every one like it that is gone.

    The table of places in the source still has the place of that, called from elsewhere in the body.
    """
    module = users[0].computation.module if users and users[0].computation is not None else None
    loop = caller_of(users[0]) if users else None
    if module is None or loop is None:
        return [*users]
    around = {*module.stack_frames.with_callers(stack_frame(loop))}
    listed: list[Instruction | None] = []
    for user in users:
        listed += [user, *[None] * len(_calls_of_gone(user, module, around))]
    return listed


def calls_of_gone(x: Instruction) -> list[int]:
    """The frames, each of one call in the body of a loop, that led to one like `x` that is gone."""
    module = x.computation.module if x.computation is not None else None
    loop = caller_of(x)
    if module is None or loop is None or loop.opcode != "while":
        return []
    return _calls_of_gone(x, module, {*module.stack_frames.with_callers(stack_frame(loop))})


def _calls_of_gone(x: Instruction, module: Module, around: set[int]) -> list[int]:
    """Those out of what called `x`, for each frame at the place of `x` that nothing bears any more.

    What is `around` the loop called others as well.
    """
    tables = module.stack_frames
    own = stack_frame(x)
    place = tables.location(own)
    if place is None:
        return []
    callers = {*tables.with_callers(own)} - around - {own}
    found = []
    for alike in _gone_frames(module).get(place, ()):
        chain = [*takewhile(lambda k: k not in callers, tables.with_callers(alike))]
        if _is_called_out_of(chain, callers, tables):
            found.append(chain[-1])
    return found


@lru_cache(maxsize=1)  # asked for one value after the other
def _gone_frames(module: Module) -> dict[SourceLocation, list[int]]:
    """By place in the source, the frames there that neither an instruction nor a call bears any more."""
    tables = module.stack_frames
    left = {stack_frame(y) for c in module.computations for y in c} | tables.callers()
    found: dict[SourceLocation, list[int]] = {}
    for frame in tables.frames:
        if frame not in left and (place := tables.location(frame)) is not None:
            found.setdefault(place, []).append(frame)
    return found


def _is_called_out_of(chain: list[int], callers: set[int], tables: StackFrames) -> bool:
    return any(k in callers for k in islice(tables.with_callers(chain[-1]), 1, 2))
