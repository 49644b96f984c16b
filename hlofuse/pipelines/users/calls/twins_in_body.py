"""What a loop's body computed twice, in two calls of a function, until HloCSE kept one."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.names import caller_of, stack_frame


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
        listed += [user, *[None] * _count_of_gone(user, module, around)]
    return listed


def _count_of_gone(x: Instruction, module: Module, around: set[int]) -> int:
    """The frames at the place of `x` that nothing bears any more, called out of what called `x`.

    What is `around` the loop called others as well.
    """
    tables = module.stack_frames
    own = stack_frame(x)
    place = tables.location(own)
    if place is None:
        return 0
    left = {stack_frame(y) for c in module.computations for y in c} | tables.callers()
    callers = {*tables.with_callers(own)} - around - {own}
    alike = (k for k in tables.frames if k not in left and tables.location(k) == place)
    return sum(not callers.isdisjoint(tables.with_callers(k)) for k in alike)
