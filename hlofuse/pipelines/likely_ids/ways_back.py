"""What a derivative computes on its way forth, ahead of what it computes on its way back.

jax.grad traces a function before it goes back through it, so that all that is named after `jvp(...)` is
written ahead of what is named after `transpose(jvp(...))`. Data do not tell that of what only the program's
results read, such as the value of a loss. Where a program has several derivatives in a row, numbers of one
root begin again behind the way back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def with_ways_back_behind(
    order: list[Instruction], reads: Mapping[Instruction, Collection[Instruction]]
) -> list[Instruction]:
    """The `order` of a program with the ways forth, and what they read, ahead of the ways back."""
    forth: dict[str, list[Instruction]] = {}
    back: dict[str, list[Instruction]] = {}
    for x in order:
        if is_constant(x):
            continue
        around, is_back = _derivative_of(x)
        if around is not None:
            (back if is_back else forth).setdefault(around, []).append(x)
    for around, first in back.items():
        if around in forth and _is_one_derivative(forth[around], first):
            order = _with_ahead(order, forth[around], first, reads)
    return order


def _derivative_of(x: Instruction) -> tuple[str | None, bool]:
    """What is around the derivative that it is of, and whether it is of the way back; None if of no one."""
    parts = (x.op_name or "").split("/")
    for k, part in enumerate(parts):
        if "jvp(" in part:
            return "/".join(parts[:k]), part.startswith("transpose(")
    return None, False


def _is_one_derivative(forth: list[Instruction], back: list[Instruction]) -> bool:
    first: dict[str, int] = {}
    for x in back:
        root, number = name_before_renaming(x)
        first[root] = min(number, first.get(root, number))
    return not any(
        name_before_renaming(x).number
        > first.get(name_before_renaming(x).root, name_before_renaming(x).number)
        for x in forth
    )


def _with_ahead(
    order: list[Instruction],
    forth: list[Instruction],
    back: list[Instruction],
    reads: Mapping[Instruction, Collection[Instruction]],
) -> list[Instruction]:
    place = {x: k for k, x in enumerate(order)}
    start = min(place[x] for x in back)
    ahead = {x for x in forth if place[x] > start}
    pending = [*ahead]
    for x in pending:
        for y in reads.get(x, ()):
            if place[y] >= start and y not in ahead:
                ahead.add(y)
                pending.append(y)
    if not ahead.isdisjoint(back):
        return order
    moved = [x for x in order if x in ahead]
    key = {x: (k, 0) for k, x in enumerate(order)}
    for k, x in enumerate(moved, 1):
        key[x] = max((key[y] for y in reads[x]), default=(-1, 0))[0], k
    return sorted(order, key=key.__getitem__)
