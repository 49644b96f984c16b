"""Which instructions still bear the name and number that the front end gave them.

JAX's module is named twice on its way to the compiler: the first time every operation of a root gets 1 to N,
the second time N + 1 to 2N, functions that are called first and what the entry holds last. The numbers up to
N are free again, and what passes make (clones of what is called, too) takes them, the smallest first, and goes on
behind 2N. So the numbers of the program lie in a window (N, 2N], in the order of the program.
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
            if is_hoisted_constant(x) or (is_of_program(x) and not is_of_call(x)):
                candidates.setdefault(root, []).append((number, x))
            else:
                others.setdefault(root, []).append(number)
    found: set[Instruction] = set()
    for root, numbered in candidates.items():
        top = _top([number for number, _ in numbered], others.get(root, []))
        found.update(x for number, x in numbered if top // 2 < number <= top)
    return frozenset(found)


def is_hoisted_constant(x: Instruction) -> bool:
    """A constant, or one spread out, that the front end keeps in front of the program."""
    if x.opcode == "broadcast":
        return x.operands[0].opcode == "constant" and not x.op_name
    return x.opcode == "constant" and not x.op_name


def _top(numbers: list[int], others: list[int]) -> int:
    """The upper end of the window that holds the most of the numbers, and the fewest of the others."""
    numbers, others = sorted(numbers), sorted(others)

    def within(values: list[int], top: int) -> int:
        return bisect_right(values, top) - bisect_left(values, top // 2 + 1)

    return max(numbers, key=lambda top: (within(numbers, top) - 2 * within(others, top), top))
