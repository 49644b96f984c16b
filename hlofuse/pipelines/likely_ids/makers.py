"""Which part of the compiler made an instruction last, as far as its name and its neighbours tell.

A pass names what it makes after the opcode (`multiply.7`), but an instruction that takes the place of
another one of its opcode takes the name as well (`HloComputation::ReplaceInstruction`): so a name of the
program may be on something young. What then tells are the operands: they have not been there before either.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.likely_ids.batched_indices import is_of_batches
from hlofuse.pipelines.likely_ids.folded_numbers import is_spread_anew_for, is_variance
from hlofuse.pipelines.likely_ids.front_end_names import constants_of_clone
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.merged_products import is_joined_for_product, is_part_of_merged
from hlofuse.pipelines.likely_ids.signs_of_passes import (
    CALLS,
    adds_in_front,
    bears_name_of_another,
    is_bound_of_uniform,
    is_for_missing,
    is_for_updates,
    is_moved_in_front_of_copies,
    is_negated_behind_reshape,
    is_of_divisor,
    is_of_padded_call,
    is_spread_for_operation,
    is_spread_to_one_reduced,
    is_spread_to_reduced,
    is_sum_with_transposed,
    joins_reductions,
    keeps_one_of_bound,
)
from hlofuse.pipelines.names import (
    Name,
    is_cloned_whole,
    is_of_call,
    is_told_of_program,
    name_before_renaming,
    operation,
    stack_frame,
)


def _is_cloned(computation: Computation, program: list[Instruction], kept: list[Instruction]) -> bool:
    """Have most of the `program` other numbers than the front end's, which it `kept`?

    Nobody clones the entry: ReshapeMover may have made all anew there, as where a network only infers.
    """
    return not program or (not computation.is_entry and 2 * len(kept) < len(program))


_NAMED_AFTER_OPCODE = (Maker.SIMPLIFIER, Maker.LAYOUT_NORMALIZATION)
_LOWERED = {
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne"), "compare"),
    "cholesky": "select",
    "convert_element_type": "convert",
    "div": "divide",
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
MOVES = frozenset("complex concatenate imag pad real reverse slice".split())


class Makers:
    """Of the instructions of one computation."""

    def __init__(self, computation: Computation, named: frozenset[Instruction]) -> None:
        self._computation = computation
        self._named = named
        program = [x for x in computation if is_told_of_program(x) and (x in named or not is_of_call(x))]
        kept = [x for x in program if x in named]
        self._all_cloned = _is_cloned(computation, program, kept)
        """Are its numbers those of the clones of a computation, of which a few fall into the windows?"""
        self._known = set() if self._all_cloned else {(operation(x), x.opcode) for x in kept}
        self._cloned_whole = is_cloned_whole(computation)
        caller = computation.first_caller
        self._reduces = caller is not None and caller.opcode not in ("while", "conditional", "call")
        self._cloned_constants = constants_of_clone(computation)

    def of(self, x: Instruction) -> Maker:
        """The last one to make it."""
        match x.opcode:
            case "bitcast":
                return Maker.ANY
            case "custom-call" | "fusion":
                return Maker.FUSIONS
            case "get-tuple-element" if x.operands[0].opcode == "custom-call":
                return Maker.FUSIONS  # cublas and cudnn give their workspace back as well
            case "broadcast":
                return self._of_broadcast(x)
            case "constant":
                return self._of_constant(x)
            case "convert":
                return self._of_convert(x)
            case "multiply" if is_variance(x):
                return Maker.SIMPLIFIER_AGAIN
            case "negate" if is_of_divisor(x) or is_negated_behind_reshape(x):
                return Maker.SIMPLIFIER_AGAIN
            case "concatenate" | "iota" if is_of_batches(x):
                return Maker.INDICES
            case "iota" if name_before_renaming(x).root == x.opcode:
                return self._of_iota(x)
            case "reduce":
                return self._of_reduce(x)
            case "reverse" if name_before_renaming(x).root == x.opcode:
                return _maker_of_reverse(x)
            case "concatenate" if is_joined_for_product(x):
                return Maker.DOT_MERGER
            case "gather" | "scatter" if not self._all_cloned:
                return Maker.GATHERS
            case "transpose":
                return self._of_transpose(x)
            case "tuple" if x is self._computation.root and name_before_renaming(x) != ("tuple", 0):
                return Maker.FRONT_END  # LayoutAssignment gives one that it makes anew no number
        if self._is_simplified(x):
            return Maker.SIMPLIFIER
        return self._of_moved(x) if x.opcode in MOVES else self._by_name(x)

    # ------------------------------------------------------------ by name alone

    def _by_name(self, x: Instruction) -> Maker:
        if is_told_of_program(x):
            if is_of_call(x) and x not in self._named:
                return Maker.LAYOUT_NORMALIZATION if is_sum_with_transposed(x) else self._inliner()
            if joins_reductions(x) and not self._reduces:
                window = operation(x).startswith("reduce_window")
                return Maker.SIMPLIFIER if window else Maker.SIMPLIFIER_AGAIN
            if x in self._named or self._all_cloned:
                return Maker.FRONT_END
            if name_before_renaming(x).root == x.opcode:
                return _anew(x)
            return Maker.SIMPLIFIER_AGAIN
        if bears_name_of_another(x):
            return self._inliner() if is_of_call(x) else Maker.FRONT_END
        # An operation of the program made anew, or another one in its place?
        if x.opcode == "multiply" and any(is_sum_with_transposed(o) for o in x.operands):
            return Maker.LAYOUT_NORMALIZATION  # half of it
        if (operation(x), x.opcode) in self._known or _LOWERED.get(operation(x)) == x.opcode:
            return _anew(x)
        if operation(x) == "iota_2x32_shape" and x.opcode in _COUNTED:
            return _anew(x)
        return Maker.SIMPLIFIER

    def _inliner(self) -> Maker:
        return Maker.FRONT_END if self._cloned_whole else Maker.INLINER

    def _is_new(self, x: Instruction) -> bool:
        """Was it made by a pass, in nobody's place?"""
        return x not in self._named and not is_told_of_program(x) and not is_of_call(x)

    # ------------------------------------------------------------ by neighbours

    def _is_simplified(self, x: Instruction) -> bool:
        if x.opcode == "divide":  # a quotient was divided once more
            divisor = x.operands[1]
            return is_told_of_program(x) and divisor.opcode == "multiply" and self._is_new(divisor)
        if x.opcode == "multiply":  # two constant factors became one
            if any(is_spread_anew_for(o, x) for o in x.operands):
                return True
            is_mean = any(o.opcode == "reduce" for o in x.operands)  # of which the quotient is gone
            factors = (o for o in x.operands if o.opcode == "broadcast" and (o.op_name or is_mean))
            return is_told_of_program(x) and any(
                self._is_new(o) and not self._is_spread_in_program(o.operands[0]) for o in factors
            )
        # The sum of what was negated is the negated sum.
        return x.opcode == "negate" and x.operands[0].opcode == "reduce" and not is_told_of_program(x)

    def _is_spread_in_program(self, x: Instruction) -> bool:
        """Is it a number converted that the front end had spread as it was?"""
        return x.opcode == "convert" and any(
            u.opcode == "broadcast" and u in self._named for u in x.operands[0].users
        )

    def _of_broadcast(self, x: Instruction) -> Maker:
        source = x.operands[0]
        if source.opcode == "constant":
            return self._of_spread_constant(x)
        if keeps_one_of_bound(x):
            return Maker.SIMPLIFIER
        if is_told_of_program(x):
            explicit = operation(x) == "broadcast_in_dim" and self._is_as_written(x)
            is_row = bool(source.shape.dimensions) and adds_in_front(x) and x in self._named
            if explicit and is_row and self._are_missing_in_front(x, 3):
                return Maker.SIMPLIFIER_AGAIN  # jax.numpy.tile spreads one of one row, two reshapes around it
            if source.opcode != "bitcast" and source.shape.dimensions and not explicit:
                return Maker.SIMPLIFIER_AGAIN  # two broadcasts, a reshape between them, became one
            if self._reduces_to_number(source) and self._are_missing_in_front(x, 1):
                return Maker.SIMPLIFIER_AGAIN  # of what had been reduced a dimension of size one was left
            if self._are_missing_in_front(x, 2) and self._had_kept_a_dimension(x):
                return Maker.SIMPLIFIER_AGAIN  # ReshapeMover took it from what was made of that
            return self._by_name(x)
        if source.opcode != "convert" and self._is_normalized_for(x.users):
            return Maker.LAYOUT_NORMALIZATION
        if any(self._is_widened(u) for u in x.users):
            return Maker.SIMPLIFIER_LAST  # was narrow, and so converted behind the broadcast
        source = source.operands[0] if source.opcode == "bitcast" else source
        made = self.of(source) if self._is_new(source) else None
        if made == Maker.FLOAT_NORMALIZATION and not _is_between_converts(x):
            return Maker.SIMPLIFIER_LAST  # had been converted behind the broadcast
        return Maker.SIMPLIFIER if made == Maker.SIMPLIFIER else Maker.SIMPLIFIER_AGAIN

    def _is_widened(self, x: Instruction) -> bool:
        """Is it an operation that float normalization made wide, between converts?"""
        return x.opcode in ELEMENTWISE_OPCODES - {"convert"} and any(
            n.opcode == "convert" and self._of_convert(n) == Maker.FLOAT_NORMALIZATION
            for n in (*x.operands, *x.users)
        )

    def _is_as_written(self, x: Instruction) -> bool:
        """Are all its new dimensions in front, or is what it reads the program's? No reshape was between.

        Where its dimensions are kept the sum of a derivative is reshaped.
        """
        source = x.operands[0]
        if adds_in_front(x) or source.opcode == "parameter":
            return True
        return source.opcode != "reduce" and self.of(source) == Maker.FRONT_END

    def _reduces_to_number(self, x: Instruction) -> bool:
        """Is it a reduction of all there is, or a mean that simplification made a product?"""
        if x.opcode == "multiply" and self._is_new(x):
            return any(o.opcode == "reduce" and not o.shape.dimensions for o in x.operands)
        return x.opcode == "reduce" and not x.shape.is_tuple and not x.shape.dimensions

    def _had_kept_a_dimension(self, x: Instruction) -> bool:
        """Had what it spreads a dimension of size one?

        What was computed with that was moved. The framework converts what it reduced, or chooses it where it
        is finite, and gives it the dimension then.
        """
        source = x.operands[0]
        if source.shape.dimensions or (operation(x) == "broadcast_in_dim" and self._is_as_written(x)):
            return source not in self._named and is_spread_to_reduced(x)
        if source in self._named and source.opcode not in ("convert", "select"):
            return False
        is_old = source in self._named or self.of(source) in (Maker.INLINER, Maker.SIMPLIFIER)
        return not is_old or is_spread_to_one_reduced(x)

    def _are_missing_in_front(self, x: Instruction, count: int) -> bool:
        """Were there operations of the program right before it, to add or to drop dimensions of size one?"""
        root, number = name_before_renaming(x)
        first = self._first(root) if x in self._named else 0
        return number - count >= first and all(
            (root, number - k) not in self._names for k in range(1, count + 1)
        )

    @cached_property
    def _names(self) -> set[Name]:
        return {name_before_renaming(x) for x in self._computation}

    def _first(self, root: str) -> int:
        """The least number that the front end gave to operations of this root."""
        return _greatest_numbers(self._named)[root] // 2 + 1

    def _of_spread_constant(self, x: Instruction) -> Maker:
        if is_bound_of_uniform(x):
            return Maker.SIMPLIFIER
        if not x.op_name and is_for_updates(x):
            return Maker.SIMPLIFIER_AGAIN
        if not x.op_name and x in self._named:
            if is_for_missing(x.users) or stack_frame(x):
                return Maker.SIMPLIFIER  # the front end's numbers have no place in the source
            if self._is_spread_by_pass(x):
                return Maker.SIMPLIFIER
        is_cloned = x in self._cloned_constants and self._of_constant(x.operands[0]) == Maker.FRONT_END
        if is_cloned or (x in self._named and not is_told_of_program(x)):
            return Maker.FRONT_END
        if is_told_of_program(x) or not x.op_name:
            if is_of_call(x) and x not in self._named:
                return self._inliner()
            if x in self._named or (is_told_of_program(x) and self._all_cloned):
                return Maker.FRONT_END
        elif is_of_call(x) and not all(self._is_made_with(x, u) for u in x.users):
            return self._inliner()
        return Maker.LAYOUT_NORMALIZATION if self._is_normalized_for(x.users) else Maker.SIMPLIFIER

    def _is_spread_by_pass(self, x: Instruction) -> bool:
        """Does nothing read it that had been where the front end would have put it?"""
        users = [u for u in x.users if not self._is_inserted(u)]
        new = [u for u in users if self._is_new(u) or self._is_new_in_call(u)]
        if x.operands[0] in self._named and len(new) == len(users):
            return False
        return bool(new) and all(
            u.opcode in ELEMENTWISE_OPCODES and (u in new or is_of_call(u)) for u in users
        )

    def _is_inserted(self, x: Instruction) -> bool:
        """Is it a convert of float normalization, which says nothing of what it stands beside?"""
        return x.opcode == "convert" and self._of_convert(x) == Maker.FLOAT_NORMALIZATION

    def _is_new_in_call(self, x: Instruction) -> bool:
        return is_of_call(x) and not is_told_of_program(x) and self._by_name(x) == Maker.SIMPLIFIER

    def _is_made_with(self, x: Instruction, user: Instruction) -> bool:
        return operation(user) == operation(x) or self._by_name(user) in _NAMED_AFTER_OPCODE

    def _is_normalized_for(self, users: list[Instruction]) -> bool:
        return all(self._by_name(u) == Maker.LAYOUT_NORMALIZATION for u in users)

    def _of_constant(self, x: Instruction) -> Maker:
        if x in self._named or x in self._cloned_constants:
            return Maker.FRONT_END
        return self._inliner() if is_of_call(x) else Maker.SIMPLIFIER

    def _of_convert(self, x: Instruction) -> Maker:
        if is_told_of_program(x) or _LOWERED.get(operation(x)) == x.opcode:
            return self._by_name(x)
        source = x.operands[0]
        if source.opcode == "reduce" and self.of(source) == Maker.SPLIT_K:
            return Maker.SPLIT_K
        if {source.shape.element_type, x.shape.element_type} <= FLOATING_TYPES:
            return Maker.FLOAT_NORMALIZATION
        if not x.op_name and x.shape.element_type in FLOATING_TYPES:
            return (
                Maker.SIMPLIFIER_LAST
            )  # of a number that was narrow between: SimplifyFPConversions made one
        return self._by_name(x)

    def _of_iota(self, x: Instruction) -> Maker:
        """The front end spreads one of one dimension, of which the first simplification makes one of more.

        A reshape of an iota is made a sum of iotas, each a multiple of its dimension (`HandleReshape`).
        """
        if x.users and all(self._is_new(u) and operation(u) == "reshape" for u in x.users):
            return Maker.SIMPLIFIER
        if x.users and self._is_new(x) and self._is_normalized_for(x.users):
            return Maker.LAYOUT_NORMALIZATION
        if x.shape.rank > 1 and is_told_of_program(x):
            return Maker.LAYOUT_NORMALIZATION if self._is_compared_in_layout(x) else Maker.SIMPLIFIER
        if x.users and all(u.opcode == "reduce" and u.shape.is_tuple for u in x.users):
            return self._inliner()  # jax.numpy.argmax is a function, of which the name does not tell
        if is_spread_for_operation(x):
            return Maker.SIMPLIFIER_AGAIN
        if x in self._named:
            return Maker.FRONT_END
        return self._inliner() if is_told_of_program(x) else Maker.SIMPLIFIER

    def _is_compared_in_layout(self, x: Instruction) -> bool:
        return all(u.opcode == "compare" for u in x.users) and self._is_normalized_for(x.users)

    def _of_reduce(self, x: Instruction) -> Maker:
        source = x.operands[0]
        if source.opcode in CALLS and not is_told_of_program(x):
            return Maker.SPLIT_K
        if source.opcode == "convert" and not is_told_of_program(source):
            source = source.operands[0]  # float normalization widened what is reduced
        in_two = source.opcode == "reduce" or any(u.opcode == "reduce" for u in x.users)
        if in_two or source.opcode == "bitcast" or self.of(source) == Maker.LAYOUT_NORMALIZATION:
            return Maker.REDUCTIONS
        if not x.op_name and any(u.opcode == "transpose" and not is_told_of_program(u) for u in x.users):
            return Maker.REDUCTIONS  # ReductionLayoutNormalizer puts a copy behind
        return self._by_name(x)

    def _of_transpose(self, x: Instruction) -> Maker:
        if is_told_of_program(x):
            return self._by_name(x)
        return Maker.LAYOUT_NORMALIZATION  # had been a copy into another layout

    def _of_moved(self, x: Instruction) -> Maker:
        """What framework and compiler call the same: a layout that was another one was so all around."""
        source = x.operands[0]
        if not is_told_of_program(x) and is_moved_in_front_of_copies(x):
            return Maker.MOVED_COPIES
        if x.opcode == "slice" and not is_told_of_program(x):
            if is_part_of_merged(x):
                return Maker.DOT_MERGER
            source = source.operands[0] if source.opcode == "bitcast" else source
            if source.opcode in CALLS or is_of_padded_call(x):
                turned = x.users and self._is_normalized_for(x.users)
                return Maker.LAYOUT_NORMALIZATION if turned else Maker.DOT_MERGER
            if operation(x) == _UNSTACKING and source.opcode == "parameter":
                return Maker.LAYOUT_NORMALIZATION  # rows of a transposed one
            # A slice of what is reshaped is made one of what is not, behind which the reshape goes.
            moved = source.opcode in ELEMENTWISE_OPCODES and self._by_name(source) == Maker.SIMPLIFIER_AGAIN
            return Maker.SIMPLIFIER_AGAIN if moved else self._by_name(x)
        made = self._by_name(x)
        ours = is_told_of_program(x) and name_before_renaming(x).root == x.opcode
        if not ours or made not in (Maker.FRONT_END, Maker.LAYOUT_NORMALIZATION):
            return made
        around = [n for n in (*x.operands, *x.users) if n.opcode in _TELLING]
        new = [n for n in around if not is_told_of_program(n)]
        # Simplification puts its own beside what it leaves alone.
        if any(self._by_name(n) == Maker.LAYOUT_NORMALIZATION or x not in self._named for n in new):
            return Maker.LAYOUT_NORMALIZATION
        return Maker.FRONT_END if around else made


def _is_between_converts(x: Instruction) -> bool:
    """Is it as narrow as it was, of what float normalization made narrow again, and wide for its readers?"""
    made = {u.shape.element_type for u in x.users}
    return all(u.opcode == "convert" for u in x.users) and made == {
        x.operands[0].operands[0].shape.element_type
    }


def _maker_of_reverse(x: Instruction) -> Maker:
    """Who made what the framework calls rev. In front of a product that was widened it was made with that."""
    is_widened = bool(x.users) and all(u.opcode == "convert" and not u.op_name for u in x.users)
    is_given = x.operands[0].opcode == "parameter"
    return Maker.WIDENED_PRODUCTS if is_given and is_widened else Maker.LAYOUT_NORMALIZATION


def _anew(x: Instruction) -> Maker:
    """Who makes an operation anew under its opcode's name: ReshapeMover, where there is but one layout.

    Dimensions of size one have their places, but in the entry hardly ever other ones.
    """
    if x.shape.is_tuple:
        return Maker.LAYOUT_NORMALIZATION
    in_entry = x.computation is not None and x.computation.is_entry
    rank = x.shape.true_rank if in_entry else x.shape.rank
    return Maker.SIMPLIFIER_AGAIN if rank < _FEWEST_LAID else Maker.LAYOUT_NORMALIZATION


_FEWEST_LAID = 2
"""Dimensions that can be in another order."""


@lru_cache(maxsize=1)  # asked for one computation after the other
def _greatest_numbers(named: frozenset[Instruction]) -> dict[str, int]:
    """The greatest number that names of each root have."""
    found: dict[str, int] = {}
    for x in named:
        root, number = name_before_renaming(x)
        found[root] = max(number, found.get(root, 0))
    return found


_UNSTACKING = "unstack"
"""What the framework calls the slices that it takes an array apart with."""


_TELLING = (ELEMENTWISE_OPCODES | MOVES) - {"convert"}
