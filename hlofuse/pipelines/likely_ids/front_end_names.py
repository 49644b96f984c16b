"""Which instructions still bear the name and number that the front end gave them.

JAX's module is named twice on its way to the compiler: at first the operations of a root get the numbers 1
to N all over the module, then N + 1 to 2N, functions that are called before those of the entry. Up to N
all are free again, and what passes make (clones of what is called, too) takes them, the smallest first, then
goes on behind 2N. So the numbers of the program lie in a window (N, 2N], in the order of the program.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.names import is_of_call, is_of_program, name_before_renaming


def named_by_front_end(module: Module) -> frozenset[Instruction]:
    """The instructions outside of fusions whose numbers lie in the window of their root."""
    candidates: dict[str, list[tuple[int, Instruction]]] = {}
    others: dict[str, list[int]] = {}
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        for x in computation:
            if x.opcode == "parameter":
                continue
            root, number = name_before_renaming(x)
            if _is_constant_of_program(x) or (is_of_program(x) and not is_of_call(x)):
                candidates.setdefault(root, []).append((number, x))
            else:
                others.setdefault(root, []).append(number)
    found: set[Instruction] = set()
    for root, numbered in candidates.items():
        top = _top([number for number, _ in numbered], others.get(root, []), root not in _SHARED)
        found.update(x for number, x in numbered if top // 2 < number <= top)
    return frozenset(found)


def _is_constant_of_program(x: Instruction) -> bool:
    """What the front end makes for constants bears no op_name, unless there is but one reader."""
    if x.opcode == "broadcast":
        return x.operands[0].opcode == "constant" and not x.op_name
    return x.opcode == "constant" and not x.op_name


_SHARED = frozenset({"broadcast", "constant"})
"""Roots that the compiler gives as well."""


def _top(numbers: list[int], others: list[int], told_apart: bool) -> int:
    """The upper end of the window that holds the most of the numbers, and the fewest of the others.

    What a pass makes anew takes a free number and leaves one in the window: those in it and below it are no
    more than the front end made. If there is no such window, all have been made anew.
    """
    numbers, others = sorted(numbers), sorted(others)

    def within(values: list[int], top: int) -> int:
        return bisect_right(values, top) - bisect_left(values, top // 2 + 1)

    def chosen(tops: list[int]) -> int:
        return max(tops, key=lambda top: (within(numbers, top) - 2 * within(others, top), top), default=-1)

    def made_at_most(top: int) -> int:
        return min(numbers[bisect_right(numbers, top // 2) :], default=-1)

    top = chosen([number for number in numbers if number])  # one that ends at 0 is empty
    if not told_apart or bisect_right(numbers, top) <= made_at_most(top):
        return top
    return chosen([t for k, t in enumerate(numbers, 1) if t > top and k <= made_at_most(t)])
