"""Which part of the compiler made an instruction last, as far as its name and its neighbours tell."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from itertools import accumulate

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_call, is_of_program, name_before_renaming, operation

_MOVES = frozenset("complex concatenate imag pad real reverse".split())
_CALLS = frozenset({"fusion", "custom-call", "dot"})


class Maker(IntEnum):
    """In the order of their turns."""

    FRONT_END = 0
    INLINER = 1
    SIMPLIFIER = 2
    """AlgebraicSimplifier as it comes first (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`)."""
    SIMPLIFIER_AGAIN = 3
    DOT_MERGER = 4
    LAYOUT_NORMALIZATION = 5
    SPLIT_K = 6
    FUSIONS = 7
    REDUCTIONS = 8
    FLOAT_NORMALIZATION = 9
    SIMPLIFIER_LAST = 10
    OTHERS = 11


def last_makers(
    computation: Computation, named_by_front_end: frozenset[Instruction]
) -> dict[Instruction, Maker]:
    """Of all instructions but parameters."""
    makers = _Makers(computation, named_by_front_end)
    found = {x: makers.of(x) for x in computation if x.opcode != "parameter"}
    _as_numbers_tell(found)
    if is_cloned_whole(computation):
        found = {x: Maker.FRONT_END if maker == Maker.INLINER else maker for x, maker in found.items()}
    return found


def is_cloned_whole(computation: Computation) -> bool:
    """Is it the body of a loop that constants were sunk into, after all calls had been inlined?

    A clone is made in the order in which a text would be written.
    """
    return ".sunk" in computation.name


class _Makers:
    """Of one computation."""

    def __init__(self, computation: Computation, named: frozenset[Instruction]) -> None:
        self._named = named
        self._all_cloned = not any(x in named and is_of_program(x) for x in computation)
        self._known = {(operation(x), x.opcode) for x in computation if x in named and is_of_program(x)}

    def of(self, x: Instruction) -> Maker:
        special = _SPECIAL.get(x.opcode)
        return special(self, x) if special is not None else self._by_name(x)

    def _by_name(self, x: Instruction) -> Maker:
        if is_of_program(x):
            if is_of_call(x):
                return Maker.INLINER
            if x in self._named or self._all_cloned:
                return Maker.FRONT_END
            if name_before_renaming(x).root == x.opcode:
                return Maker.LAYOUT_NORMALIZATION
            return Maker.SIMPLIFIER_AGAIN
        # An operation of the program that was made anew, or another one in its place?
        if (operation(x), x.opcode) in self._known:
            return Maker.LAYOUT_NORMALIZATION
        return Maker.SIMPLIFIER

    def _of_fusion(self, x: Instruction) -> Maker:
        return Maker.FUSIONS

    def _of_bitcast(self, x: Instruction) -> Maker:
        return Maker.OTHERS  # among themselves only numbers count

    def _of_constant(self, x: Instruction) -> Maker:
        if x in self._named:
            return Maker.FRONT_END
        return Maker.INLINER if is_of_call(x) else Maker.SIMPLIFIER

    def _of_slice(self, x: Instruction) -> Maker:
        source = x.operands[0]
        source = source.operands[0] if source.opcode == "bitcast" else source
        if source.opcode in _CALLS and not is_of_program(x):
            return Maker.DOT_MERGER
        return self._of_moved(x)

    def _of_convert(self, x: Instruction) -> Maker:
        if is_of_program(x) or (operation(x), x.opcode) in self._known:
            return self._by_name(x)
        source = x.operands[0]
        if source.opcode == "reduce" and self.of(source) == Maker.SPLIT_K:
            return Maker.SPLIT_K
        return Maker.FLOAT_NORMALIZATION

    def _of_moved(self, x: Instruction) -> Maker:
        """What is called the same by framework and compiler: by what is made of it, and of what."""
        made = self._by_name(x)
        if made in (Maker.FRONT_END, Maker.LAYOUT_NORMALIZATION) and is_of_program(x):
            around = [n for n in (*x.operands, *x.users) if n.opcode in ELEMENTWISE_OPCODES or n.opcode in _MOVES]
            around = [n for n in around if n.opcode not in ("convert", "constant")]
            if name_before_renaming(x).root == x.opcode and around:
                new = any(not is_of_program(n) for n in around)
                return Maker.LAYOUT_NORMALIZATION if new else Maker.FRONT_END
        return made

    def _of_negate(self, x: Instruction) -> Maker:
        if x.operands[0].opcode == "reduce" and not is_of_program(x):
            return Maker.SIMPLIFIER  # the sum of what was negated
        return self._by_name(x)

    def _of_divide(self, x: Instruction) -> Maker:
        if is_of_program(x) and self._is_new(x.operands[1], "multiply"):
            return Maker.SIMPLIFIER  # a quotient divided once more
        return self._by_name(x)

    def _of_multiply(self, x: Instruction) -> Maker:
        if is_of_program(x) and any(self._is_new(o, "broadcast") and o.op_name for o in x.operands):
            return Maker.SIMPLIFIER  # two factors became one
        return self._by_name(x)

    def _of_broadcast(self, x: Instruction) -> Maker:
        source, ours = x.operands[0], is_of_program(x)
        if source.opcode == "constant":
            return self._of_spread_constant(x)
        if ours:
            if source.opcode != "bitcast" and source.shape.dimensions and not (operation(x) == "broadcast_in_dim" and _adds_in_front(x)):
                return Maker.SIMPLIFIER_AGAIN  # two broadcasts, with a reshape between them, became one
            return self._by_name(x)
        if source.opcode != "convert" and all(self._by_name(u) == Maker.LAYOUT_NORMALIZATION for u in x.users):
            return Maker.LAYOUT_NORMALIZATION
        source = source.operands[0] if source.opcode == "bitcast" else source
        made = self.of(source) if self._is_new(source, source.opcode) else None
        if made == Maker.FLOAT_NORMALIZATION:
            return Maker.SIMPLIFIER_LAST
        return Maker.SIMPLIFIER if made == Maker.SIMPLIFIER else Maker.SIMPLIFIER_AGAIN

    def _of_spread_constant(self, x: Instruction) -> Maker:
        if is_of_program(x) or not x.op_name:
            if is_of_call(x):
                return Maker.INLINER
            if x in self._named or (is_of_program(x) and self._all_cloned):
                return Maker.FRONT_END
        elif is_of_call(x) and not self._is_of_users(x):
            return Maker.INLINER
        if all(self._by_name(u) == Maker.LAYOUT_NORMALIZATION for u in x.users):
            return Maker.LAYOUT_NORMALIZATION
        return Maker.SIMPLIFIER

    def _is_of_users(self, x: Instruction) -> bool:
        return all(operation(u) == operation(x) or self._by_name(u) == Maker.SIMPLIFIER for u in x.users)

    def _of_reduce(self, x: Instruction) -> Maker:
        source = x.operands[0]
        if source.opcode in _CALLS and not is_of_program(x):
            return Maker.SPLIT_K
        if source.opcode in ("reduce", "bitcast") or any(u.opcode == "reduce" for u in x.users):
            return Maker.REDUCTIONS
        if self.of(source) == Maker.LAYOUT_NORMALIZATION:
            return Maker.REDUCTIONS  # the dimensions of what is summed up were put in order
        return self._by_name(x)

    def _of_scatter(self, x: Instruction) -> Maker:
        if any(self.of(o) == Maker.LAYOUT_NORMALIZATION for o in x.operands):
            return Maker.LAYOUT_NORMALIZATION
        return self._by_name(x)

    def _of_transpose(self, x: Instruction) -> Maker:
        if is_of_program(x):
            return self._by_name(x)
        source = x.operands[0]
        if source.opcode == "convert" and self.of(source) == Maker.FLOAT_NORMALIZATION:
            return Maker.SIMPLIFIER_LAST
        return Maker.LAYOUT_NORMALIZATION

    def _is_new(self, x: Instruction, opcode: str) -> bool:
        return x.opcode == opcode and x not in self._named and not is_of_program(x) and not is_of_call(x)


def _adds_in_front(broadcast: Instruction) -> bool:
    dimensions = broadcast.attributes["dimensions"]
    rank = len(broadcast.shape.dimensions)
    return tuple(dimensions) == tuple(range(rank - len(dimensions), rank))


_NUMBERED = (Maker.SIMPLIFIER, Maker.SIMPLIFIER_AGAIN, Maker.LAYOUT_NORMALIZATION)
_SPECIAL: dict[str, Callable[[_Makers, Instruction], Maker]] = {
    "bitcast": _Makers._of_bitcast,
    "broadcast": _Makers._of_broadcast,
    "constant": _Makers._of_constant,
    "convert": _Makers._of_convert,
    "custom-call": _Makers._of_fusion,
    "divide": _Makers._of_divide,
    "fusion": _Makers._of_fusion,
    "multiply": _Makers._of_multiply,
    "negate": _Makers._of_negate,
    "reduce": _Makers._of_reduce,
    "scatter": _Makers._of_scatter,
    "slice": _Makers._of_slice,
    "transpose": _Makers._of_transpose,
}


_SPECIAL.update(dict.fromkeys(_MOVES, _Makers._of_moved))


def _as_numbers_tell(makers: dict[Instruction, Maker]) -> None:
    """Of one root the higher number was made later: as few are moved to another maker as that takes."""
    chains: dict[str, list[Instruction]] = {}
    for x, maker in makers.items():
        if maker in _NUMBERED and not is_of_program(x):
            chains.setdefault(name_before_renaming(x).root, []).append(x)
    for chain in chains.values():
        chain.sort(key=lambda x: name_before_renaming(x).number)
        best = [0] * len(_NUMBERED)
        steps: list[list[int]] = []
        for x in chain:
            step = list(accumulate(range(len(best)), lambda a, b: b if best[b] > best[a] else a))
            best = [best[k] + (makers[x] == maker) for k, maker in zip(step, _NUMBERED, strict=True)]
            steps.append(step)
        at = max(range(len(best)), key=best.__getitem__)
        for x, step in zip(reversed(chain), reversed(steps), strict=True):
            makers[x] = _NUMBERED[at]
            at = step[at]
