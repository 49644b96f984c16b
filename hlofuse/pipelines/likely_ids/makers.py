"""Which part of the compiler made an instruction last, as far as its name and its neighbours tell.

A pass names what it makes after the opcode (`multiply.7`), but an instruction that takes the place of
another one of its opcode takes the name as well (`HloComputation::ReplaceInstruction`): so a name of the
program may be on something young. What then tells are the operands: they have not been there before either.
"""

from __future__ import annotations

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.calls_in_names import is_of_call
from hlofuse.pipelines.likely_ids.batched_indices import is_of_batches
from hlofuse.pipelines.likely_ids.folded_numbers import (
    is_of_difference,
    is_spread_anew_for,
    is_spread_for_another,
    is_sum_with_last,
    is_variance,
)
from hlofuse.pipelines.likely_ids.front_end_names import constants_of_clone
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_by_name import LOWERED, MakersByName
from hlofuse.pipelines.likely_ids.makers_of_broadcasts import MakersOfBroadcasts
from hlofuse.pipelines.likely_ids.merged_products import is_joined_for_product, is_part_of_merged
from hlofuse.pipelines.likely_ids.pads_of_one import pads_of_one
from hlofuse.pipelines.likely_ids.signs_of_passes import (
    CALLS,
    is_moved_in_front_of_copies,
    is_negated_behind_reshape,
    is_of_divisor,
    is_of_padded_call,
    is_spread_for_operation,
    is_widened_behind_reshape,
)
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming, operation

MOVES = frozenset("complex concatenate imag pad real reverse slice".split())


class Makers(MakersByName):
    """Of the instructions of one computation."""

    def __init__(self, computation: Computation, named: frozenset[Instruction]) -> None:
        super().__init__(computation, named)
        self._computation = computation
        self._cloned_constants = constants_of_clone(computation)
        self._pads_of_one = pads_of_one(computation)
        self._broadcasts = MakersOfBroadcasts(computation, self, self.of)

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
                return self._broadcasts.of(x)
            case "constant":
                return self._of_constant(x)
            case "convert":
                return self._of_convert(x)
            case "multiply" if is_variance(x):
                return Maker.SIMPLIFIER_AGAIN
            case "multiply" if self._is_by_folded(x):
                return Maker.SIMPLIFIER_AGAIN if x.shape.rank else Maker.SIMPLIFIER
            case "add" if is_sum_with_last(x, self.named) and is_of_difference(x):
                return Maker.SIMPLIFIER_AGAIN
            case "add" if is_sum_with_last(x, self.named) and self._is_by_folded(x):
                return Maker.SIMPLIFIER
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
            case "gather" | "scatter" if not self.all_cloned or self.by_name(x) == Maker.INLINER:
                return Maker.GATHERS
            case "pad" if x in self._pads_of_one:
                return Maker.SIMPLIFIER
            case "transpose":
                return self._of_transpose(x)
            case "tuple" if x is self._computation.root and name_before_renaming(x) != ("tuple", 0):
                return Maker.FRONT_END  # LayoutAssignment gives one that it makes anew no number
        if self._is_by_reshaped(x):
            return Maker.SIMPLIFIER_AGAIN
        if self._is_simplified(x):
            return Maker.SIMPLIFIER
        return self._of_moved(x) if x.opcode in MOVES else self.by_name(x)

    # ------------------------------------------------------------ by neighbours

    def _is_simplified(self, x: Instruction) -> bool:
        if x.opcode == "divide":  # a quotient was divided once more
            divisor = x.operands[1]
            return is_told_of_program(x) and divisor.opcode == "multiply" and self.is_new(divisor)
        if x.opcode == "multiply":  # two constant factors became one
            if any(is_spread_anew_for(o, x) and not is_spread_for_another(o) for o in x.operands):
                return True
            # A quotient of a sum is gone, of which the divisor was a number.
            is_mean = any(o.opcode == "reduce" for o in x.operands)
            factors = (
                o
                for o in x.operands
                if o.opcode == "broadcast"
                and (o.op_name or (is_mean and o.operands[0].opcode in ("constant", "convert")))
            )
            return is_told_of_program(x) and any(
                self.is_new(o) and not self._is_spread_in_program(o.operands[0]) for o in factors
            )
        # The sum of what was negated is the negated sum.
        return x.opcode == "negate" and x.operands[0].opcode == "reduce" and not is_told_of_program(x)

    def _is_by_folded(self, x: Instruction) -> bool:
        """Does the program multiply by a number that ConstantFolding made of two, for this alone, or add it?

        Mirrors `HandleMultiply` and `HandleAdd` of
        `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`. Where there is a dimension of one, reshapes
        had to be moved first.
        """
        numbers = (o for o in x.operands if o.opcode == "constant" and len(o.users) == 1 and not o.op_name)
        return is_told_of_program(x) and any(self._of_constant(o) == Maker.SIMPLIFIER for o in numbers)

    def _is_by_reshaped(self, x: Instruction) -> bool:
        """Did simplification make it with a number that has dimensions of size one?

        ConstantFolding made that of a reshape, or of what spread it, the time around before.
        """
        return (
            x.opcode == "multiply"
            and bool(x.op_name)
            and not is_told_of_program(x)
            and any(
                o.opcode == "constant"
                and bool(o.shape.rank)
                and not o.shape.true_rank
                and self._of_constant(o) != Maker.FRONT_END
                for o in x.operands
            )
        )

    def _is_spread_in_program(self, x: Instruction) -> bool:
        """Is it a number converted that the front end had spread as it was?"""
        return x.opcode == "convert" and any(
            u.opcode == "broadcast" and u in self.named for u in x.operands[0].users
        )

    def _of_constant(self, x: Instruction) -> Maker:
        if x in self.named or x in self._cloned_constants:
            return Maker.FRONT_END
        return Maker.INLINER if is_of_call(x) else Maker.SIMPLIFIER

    def _of_convert(self, x: Instruction) -> Maker:
        if is_told_of_program(x):
            return self.by_name(x)
        if LOWERED.get(operation(x)) == x.opcode:
            return Maker.MOVED_CONVERTS if is_widened_behind_reshape(x) else self.by_name(x)
        source = x.operands[0]
        if source.opcode == "reduce" and self.of(source) == Maker.SPLIT_K:
            return Maker.SPLIT_K
        if {source.shape.element_type, x.shape.element_type} <= FLOATING_TYPES:
            return Maker.FLOAT_NORMALIZATION
        if not x.op_name and x.shape.element_type in FLOATING_TYPES:
            # Of a number that was narrow between SimplifyFPConversions made one.
            is_spread = bool(x.users) and all(u.opcode == "broadcast" for u in x.users)
            return Maker.CONVERSIONS_LAST if is_spread else Maker.SIMPLIFIER_LAST
        return self.by_name(x)

    def _of_iota(self, x: Instruction) -> Maker:
        """The front end spreads one of one dimension, of which the first simplification makes one of more.

        A reshape of an iota is made a sum of iotas, each a multiple of its dimension (`HandleReshape`).
        """
        if x.users and all(self.is_new(u) and operation(u) == "reshape" for u in x.users):
            return Maker.SIMPLIFIER
        if x.users and self.is_new(x) and self.is_normalized_for(x.users):
            return Maker.LAYOUT_NORMALIZATION
        if x.shape.rank > 1 and is_told_of_program(x):
            return Maker.LAYOUT_NORMALIZATION if self._is_compared_in_layout(x) else Maker.SIMPLIFIER
        if x.users and all(u.opcode == "reduce" and u.shape.is_tuple for u in x.users):
            return Maker.INLINER  # jax.numpy.argmax is a function, of which the name does not tell
        if is_spread_for_operation(x):
            return Maker.SIMPLIFIER_AGAIN
        if x in self.named or (self.all_cloned and is_told_of_program(x) and not is_of_call(x)):
            return Maker.FRONT_END
        return Maker.INLINER if is_told_of_program(x) else Maker.SIMPLIFIER

    def _is_compared_in_layout(self, x: Instruction) -> bool:
        return all(u.opcode == "compare" for u in x.users) and self.is_normalized_for(x.users)

    def _of_reduce(self, x: Instruction) -> Maker:
        if x.operands[0].opcode in CALLS and not is_told_of_program(x):
            return Maker.SPLIT_K
        return Maker.REDUCTIONS if _is_regrouped(x) else self.by_name(x)

    def _of_transpose(self, x: Instruction) -> Maker:
        if is_told_of_program(x):
            return self.by_name(x)
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
                turned = _is_laid_anew(x) or (x.users and self.is_normalized_for(x.users))
                return Maker.LAYOUT_NORMALIZATION if turned else Maker.DOT_MERGER
            if operation(x) == _SLICED_ANYWHERE:
                return Maker.SIMPLIFIER_AGAIN  # where it begins had to be folded first (ConstantFolding)
            if operation(x) == _UNSTACKING and source.opcode == "parameter":
                return Maker.LAYOUT_NORMALIZATION  # rows of a transposed one
            # A slice of what is reshaped is made one of what is not, behind which the reshape goes.
            moved = source.opcode in ELEMENTWISE_OPCODES and self.by_name(source) == Maker.SIMPLIFIER_AGAIN
            return Maker.SIMPLIFIER_AGAIN if moved else self.by_name(x)
        made = self.by_name(x)
        ours = is_told_of_program(x) and name_before_renaming(x).root == x.opcode
        if not ours or made not in (Maker.FRONT_END, Maker.LAYOUT_NORMALIZATION):
            return made
        around = [n for n in (*x.operands, *x.users) if n.opcode in _TELLING]
        new = [n for n in around if not is_told_of_program(n)]
        # Simplification puts its own beside what it leaves alone.
        if any(self.by_name(n) == Maker.LAYOUT_NORMALIZATION or x not in self.named for n in new):
            return Maker.LAYOUT_NORMALIZATION
        return Maker.FRONT_END if around else made


def reduced_by(x: Instruction) -> Instruction:
    """What a reduction reads, which float normalization may have widened."""
    source = x.operands[0]
    return source.operands[0] if source.opcode == "convert" and not is_told_of_program(source) else source


def _is_regrouped(x: Instruction) -> bool:
    """Is it a reduction of other dimensions than the program's, in one or two?"""
    source = reduced_by(x)
    if source.opcode in ("bitcast", "reduce") or any(u.opcode == "reduce" for u in x.users):
        return True
    # ReductionLayoutNormalizer puts a copy behind.
    return not x.op_name and any(u.opcode == "transpose" and not is_told_of_program(u) for u in x.users)


def _is_laid_anew(x: Instruction) -> bool:
    """Is it cut off a convolution, whose library has dimensions in another order than what reads it?"""
    element = x.operands[0]
    is_convolution = element.opcode == "get-tuple-element" and is_library_convolution(element.operands[0])
    return is_convolution and not any(u.opcode in ELEMENTWISE_OPCODES - {"convert"} for u in x.users)


def _maker_of_reverse(x: Instruction) -> Maker:
    """Who made what the framework calls rev. In front of a product that was widened it was made with that."""
    is_widened = bool(x.users) and all(u.opcode == "convert" and not u.op_name for u in x.users)
    is_given = x.operands[0].opcode == "parameter"
    return Maker.WIDENED_PRODUCTS if is_given and is_widened else Maker.LAYOUT_NORMALIZATION


_SLICED_ANYWHERE = "dynamic_slice"
"""What the framework calls a slice that it computes the beginning of."""

_UNSTACKING = "unstack"
"""What the framework calls the slices that it takes an array apart with."""


_TELLING = (ELEMENTWISE_OPCODES | MOVES) - {"convert"}
