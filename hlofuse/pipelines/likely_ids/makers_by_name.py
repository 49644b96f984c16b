"""Who made an instruction last, as far as its name alone tells."""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_call
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.signs_of_passes import (
    bears_name_of_another,
    is_sum_with_transposed,
    joins_reductions,
)
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming, operation

LOWERED = {
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne"), "compare"),
    "cholesky": "select",
    "convert_element_type": "convert",
    "div": "divide",
    "dynamic_slice": "dynamic-slice",
    "dynamic_update_slice": "dynamic-update-slice",
    "exp": "exponential",
    "max": "maximum",
    "reduce_precision": "reduce-precision",
    "select_n": "select",
    "shift_left": "shift-left",
    "shift_right_arithmetic": "shift-right-arithmetic",
    "shift_right_logical": "shift-right-logical",
}
"""What operations of the framework are written as, of which simplification makes none of the same opcode."""
_COUNTED = frozenset({"add", "convert", "shift-right-logical"})
"""What counts of random bits are written with, but for products, of which simplification makes some."""
_FEWEST_LAID = 2
"""Dimensions that can be in another order."""


class MakersByName:
    """Of the instructions of one computation, of which those `named` bear names of the front end."""

    def __init__(self, computation: Computation, named: frozenset[Instruction]) -> None:
        self.named = named
        program = [x for x in computation if is_told_of_program(x) and (x in named or not is_of_call(x))]
        kept = [x for x in program if x in named]
        self.all_cloned = _is_cloned(computation, program, kept)
        """Are its numbers those of the clones of a computation, of which a few fall into the windows?"""
        self._known = set() if self.all_cloned else {(operation(x), x.opcode) for x in kept}
        caller = computation.first_caller
        self._reduces = caller is not None and caller.opcode not in ("while", "conditional", "call")

    def by_name(self, x: Instruction) -> Maker:
        """The last one to make it, if its neighbours do not tell otherwise."""
        if is_told_of_program(x):
            if is_of_call(x) and x not in self.named:
                return Maker.LAYOUT_NORMALIZATION if is_sum_with_transposed(x) else Maker.INLINER
            if joins_reductions(x) and not self._reduces:
                window = operation(x).startswith("reduce_window")
                return Maker.SIMPLIFIER if window else Maker.SIMPLIFIER_AGAIN
            if x in self.named or self.all_cloned:
                return Maker.FRONT_END
            if name_before_renaming(x).root == x.opcode:
                return _anew(x)
            return Maker.SIMPLIFIER_AGAIN
        if bears_name_of_another(x):
            return Maker.INLINER if is_of_call(x) else Maker.FRONT_END
        # An operation of the program made anew, or another one in its place?
        if x.opcode == "multiply" and any(is_sum_with_transposed(o) for o in x.operands):
            return Maker.LAYOUT_NORMALIZATION  # half of it
        if (operation(x), x.opcode) in self._known or LOWERED.get(operation(x)) == x.opcode:
            return _anew(x)
        if operation(x) == "iota_2x32_shape" and x.opcode in _COUNTED:
            return _anew(x)
        return Maker.SIMPLIFIER

    def is_new(self, x: Instruction) -> bool:
        """Was it made by a pass, in nobody's place?"""
        return x not in self.named and not is_told_of_program(x) and not is_of_call(x)

    def is_normalized_for(self, users: list[Instruction]) -> bool:
        return all(self.by_name(u) == Maker.LAYOUT_NORMALIZATION for u in users)


def _anew(x: Instruction) -> Maker:
    """Who makes an operation anew under its opcode's name: ReshapeMover, where there is but one layout.

    Dimensions of size one have their places, but in the entry hardly ever other ones.
    """
    if x.shape.is_tuple:
        return Maker.LAYOUT_NORMALIZATION
    in_entry = x.computation is not None and x.computation.is_entry
    rank = x.shape.true_rank if in_entry else x.shape.rank
    return Maker.SIMPLIFIER_AGAIN if rank < _FEWEST_LAID else Maker.LAYOUT_NORMALIZATION


def _is_cloned(computation: Computation, program: list[Instruction], kept: list[Instruction]) -> bool:
    """Have most of the `program` other numbers than the front end's, which it `kept`?

    Nobody clones the entry: ReshapeMover may have made all anew there, as where a network only infers.
    """
    return not program or (not computation.is_entry and 2 * len(kept) < len(program))
