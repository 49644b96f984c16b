"""A guess at the order in which XLA made the instructions of a computation, from their names.

A text is in post-order and does not carry ids, by which equal priorities are settled. Names tell some
of it: what the framework made is named after its operation (`mul.24` for jit(f)/mul) and numbered in
the order of the program; what passes made since is named after its opcode and comes later. Numbers
of one root grow with the ids.
"""

from __future__ import annotations

import heapq

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.names import (
    is_cloned_by_pass,
    is_of_program,
    name_before_renaming,
    scope,
    stack_frame,
)

_SHARED_ROOTS = frozenset({"constant", "broadcast", "iota", "tuple"})


def guess_ids(module: Module) -> None:
    """Give the instructions outside of fusions ids in their likely order of age.

    Where nothing is known of the program (no op_name in the dump) the order of the text is as good as any.
    """
    for computation in module.computations:
        if computation.fusion is None:
            guess = _Guess(computation)
            if guess.knows_program:
                computation.reorder(guess.order())


class _Guess:
    """Instructions of the program first, each behind what it needs and behind lower numbers of its root."""

    def __init__(self, computation: Computation) -> None:
        self._all = computation.instructions
        self._place = {x: k for k, x in enumerate(self._all)}
        self._names = {x: name_before_renaming(x) for x in self._all}
        self._program = {x for x in self._all if is_of_program(x) and not is_cloned_by_pass(x)}
        self._early = self._program | {x for x in self._all if self._feeds_program(x)}
        self._inlined = {x for x in self._early if scope(x)}
        self._own = self._early - self._inlined
        self._before = self._lower_numbers()
        self._out: list[Instruction] = []
        self._done: set[Instruction] = set()

    @property
    def knows_program(self) -> bool:
        return bool(self._program)

    def order(self) -> list[Instruction]:
        for parameter in sorted(self._all, key=lambda x: x.parameter_number if _is_input(x) else 0):
            if _is_input(parameter):
                self._emit(parameter)
        # What was called is cloned behind all that the program's own level has.
        for instruction in sorted(self._program_order(), key=lambda x: x in self._inlined):
            self._emit(instruction)
        for instruction in self._all:
            self._emit(instruction)
        return self._out

    # ------------------------------------------------------------ what names tell

    def _feeds_program(self, x: Instruction) -> bool:
        """A constant or the like that the framework made for an operation."""
        if self._names[x].root not in _SHARED_ROOTS or x in self._program or _is_input(x):
            return False
        program = self._program
        return any(u in program or any(v in program for v in u.users) for u in x.users)

    def _lower_numbers(self) -> dict[Instruction, Instruction]:
        """For each instruction the one of the same kind and root with the next lower number."""
        chains: dict[tuple[str, bool, bool, bool], list[Instruction]] = {}
        for x in self._all:
            if not _is_input(x):
                key = (self._names[x].root, x in self._program, x in self._early, x in self._inlined)
                chains.setdefault(key, []).append(x)
        before: dict[Instruction, Instruction] = {}
        for chain in chains.values():
            chain.sort(key=lambda x: (self._names[x].number, self._place[x]))
            before.update(zip(chain[1:], chain, strict=False))
        return before

    # ------------------------------------------------------------ the order

    def _program_order(self) -> list[Instruction]:
        """By source line as far as data and numbers allow."""
        needs = {x: self._program_operands(x) for x in self._all if x in self._program}
        for x, lower in self._before.items():
            if x in needs and lower in needs:
                needs[x].add(lower)
        waiting: dict[Instruction, list[Instruction]] = {}
        for x, sources in needs.items():
            for source in sources:
                waiting.setdefault(source, []).append(x)
        missing = {x: len(sources) for x, sources in needs.items()}
        rank = {x: (stack_frame(x), self._place[x]) for x in needs}
        by_place = {self._place[x]: x for x in needs}
        ready = [rank[x] for x, count in missing.items() if count == 0]
        heapq.heapify(ready)
        rest = sorted(needs, key=rank.__getitem__, reverse=True)
        order: dict[Instruction, None] = {}
        while len(order) < len(needs):
            if not ready:  # numbers contradict the data
                while rest[-1] in order:
                    rest.pop()
                ready = [rank[rest[-1]]]
            x = by_place[heapq.heappop(ready)[1]]
            if x in order:
                continue
            order[x] = None
            for user in waiting.get(x, ()):
                missing[user] -= 1
                if missing[user] == 0:
                    heapq.heappush(ready, rank[user])
        return list(order)

    def _program_operands(self, x: Instruction) -> set[Instruction]:
        """Instructions of the program whose values reach it, others between them or not."""
        found: set[Instruction] = set()
        pending, seen = list(x.operands), set(x.operands)
        while pending:
            source = pending.pop()
            if source in self._program and (x in self._inlined or source not in self._inlined):
                found.add(source)
                continue
            for operand in source.operands:
                if operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
        return found

    def _emit(self, start: Instruction) -> None:
        """Put out the instruction, before it what has to be older."""
        done, visiting = self._done, set[Instruction]()
        stack = [start]
        while stack:
            x = stack[-1]
            if x in done:
                stack.pop()
                continue
            visiting.add(x)
            needed = next((y for y in self._needed(x) if y not in done and y not in visiting), None)
            if needed is not None:
                stack.append(needed)
                continue
            stack.pop()
            done.add(x)
            self._out.append(x)

    def _needed(self, x: Instruction) -> list[Instruction]:
        lower = self._before.get(x)
        needed = [lower, *x.operands] if lower is not None else x.operands
        if x in self._early:
            # What passes put between two operations of the program is younger than both.
            early = self._early if x in self._inlined else self._own
            return [y for y in needed if _is_input(y) or y in early]
        return list(needed)


def _is_input(x: Instruction) -> bool:
    return x.opcode == "parameter"
