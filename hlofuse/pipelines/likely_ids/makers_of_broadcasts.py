"""Who made a broadcast last.

What it reads tells, and who reads it: a number is spread for its reader, what was reshaped is spread anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_call, scope
from hlofuse.pipelines.likely_ids.front_end_names import constants_of_clone
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_by_name import MakersByName
from hlofuse.pipelines.likely_ids.signs_of_passes import (
    adds_in_front,
    is_bound_of_uniform,
    is_for_missing,
    is_for_updates,
    is_of_divisor,
    is_spread_to_one_reduced,
    is_spread_to_reduced,
    keeps_one_of_bound,
)
from hlofuse.pipelines.names import (
    Name,
    is_of_several,
    is_told_of_program,
    is_without_op_name,
    name_before_renaming,
    operation,
    stack_frame,
)

_NAMED_AFTER_OPCODE = (Maker.SIMPLIFIER, Maker.LAYOUT_NORMALIZATION)


class MakersOfBroadcasts:
    """Of one computation, given who made others of its instructions."""

    def __init__(
        self, computation: Computation, by_name: MakersByName, of: Callable[[Instruction], Maker]
    ) -> None:
        self._computation = computation
        self._named = by_name.named
        self._cloned_constants = constants_of_clone(computation)
        self._by_name = by_name
        self._of = of

    def of(self, x: Instruction) -> Maker:
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
            if explicit and self._was_reshaped_between(x):
                return Maker.SIMPLIFIER
            if source.opcode == "negate" and is_of_divisor(source) and self._are_missing_in_front(x, 1):
                return Maker.SIMPLIFIER_AGAIN  # the reshape behind that went into it
            if self._reduces_to_number(source) and self._are_missing_in_front(x, 1):
                return Maker.SIMPLIFIER_AGAIN  # of what had been reduced a dimension of size one was left
            if self._are_missing_in_front(x, 2) and self._had_kept_a_dimension(x) and not self._is_first(x):
                return Maker.SIMPLIFIER_AGAIN  # ReshapeMover took it from what was made of that
            return self._by_name.by_name(x)
        if source.opcode != "convert" and self._by_name.is_normalized_for(x.users):
            return Maker.LAYOUT_NORMALIZATION
        if any(self._is_widened(u) for u in x.users):
            return Maker.SIMPLIFIER_LAST  # was narrow, and so converted behind the broadcast
        source = source.operands[0] if source.opcode == "bitcast" else source
        is_beside = self._by_name.is_new(source) or source.op_name == x.op_name
        made = self._of(source) if is_beside else None
        if made == Maker.FLOAT_NORMALIZATION and not _is_between_converts(x):
            return Maker.SIMPLIFIER_LAST  # had been converted behind the broadcast
        return Maker.SIMPLIFIER if made == Maker.SIMPLIFIER else Maker.SIMPLIFIER_AGAIN

    def _is_widened(self, x: Instruction) -> bool:
        """Is it an operation that float normalization made wide, between converts?"""
        return x.opcode in ELEMENTWISE_OPCODES - {"convert"} and any(
            n.opcode == "convert" and self._of(n) == Maker.FLOAT_NORMALIZATION
            for n in (*x.operands, *x.users)
        )

    def _was_reshaped_between(self, x: Instruction) -> bool:
        """Was a row with dimensions of size one behind it spread in front first, and then where those are?

        The framework's broadcast_in_dim is written so, as two broadcasts with a reshape between.
        """
        dimensions = tuple(x.attributes["dimensions"])
        has_front = bool(dimensions) and dimensions[0] > 0
        return has_front and not adds_in_front(x) and x in self._named and self._are_missing_in_front(x, 2)

    def _is_as_written(self, x: Instruction) -> bool:
        """Are all its new dimensions in front, or is what it reads the program's? No reshape was between.

        A call or a fusion stands where a product of the program stood.

        Where its dimensions are kept the sum of a derivative is reshaped.
        """
        source = x.operands[0]
        if adds_in_front(x) or source.opcode == "parameter":
            return True
        return source.opcode != "reduce" and self._of(source) in (Maker.FRONT_END, Maker.FUSIONS)

    def _reduces_to_number(self, x: Instruction) -> bool:
        """Is it a reduction of all there is, or a mean that simplification made a product?"""
        if x.opcode == "multiply" and self._by_name.is_new(x):
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
        is_old = source in self._named or self._of(source) in (Maker.INLINER, Maker.SIMPLIFIER)
        return not is_old or is_spread_to_one_reduced(x)

    def _are_missing_in_front(self, x: Instruction, count: int) -> bool:
        """Were there operations of the program right before it, to add or to drop dimensions of size one?"""
        root, number = name_before_renaming(x)
        first = self._first(root) if x in self._named else 0
        return number - count >= first and all(
            (root, number - k) not in self._names for k in range(1, count + 1)
        )

    def _is_first(self, x: Instruction) -> bool:
        """Was it cloned first of its root, when the numbers in front of it were another computation's?"""
        root, number = name_before_renaming(x)
        return self._by_name.all_cloned and number == self._least_numbers[root] > 2

    @cached_property
    def _names(self) -> set[Name]:
        return {name_before_renaming(x) for x in self._computation}

    @cached_property
    def _least_numbers(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for root, number in self._names:
            found[root] = min(number, found.get(root, number))
        return found

    def _first(self, root: str) -> int:
        """The least number that the front end gave to operations of this root."""
        return _greatest_numbers(self._named)[root] // 2 + 1

    def _of_spread_constant(self, x: Instruction) -> Maker:
        if is_bound_of_uniform(x):
            return Maker.SIMPLIFIER
        if is_without_op_name(x) and is_for_updates(x):
            return Maker.SIMPLIFIER_AGAIN
        if is_without_op_name(x) and x in self._named:
            if is_for_missing(x.users) or stack_frame(x):
                return Maker.SIMPLIFIER  # the front end's numbers have no place in the source
            if self._is_spread_by_pass(x):
                return Maker.SIMPLIFIER
        is_cloned = x in self._cloned_constants and self._of(x.operands[0]) == Maker.FRONT_END
        if is_cloned or (x in self._named and not is_told_of_program(x)):
            return Maker.FRONT_END
        if is_told_of_program(x) or is_without_op_name(x):
            if is_of_call(x) and x not in self._named:
                return Maker.INLINER
            if x in self._named or (is_told_of_program(x) and self._by_name.all_cloned):
                return Maker.FRONT_END
        elif is_of_call(x) and not all(self._is_made_with(x, u) for u in self._in_its_call(x)):
            return Maker.INLINER
        return Maker.LAYOUT_NORMALIZATION if self._by_name.is_normalized_for(x.users) else Maker.SIMPLIFIER

    def _is_spread_by_pass(self, x: Instruction) -> bool:
        """Does nothing read it that had been where the front end would have put it?"""
        users = [u for u in x.users if not self._is_inserted(u)]
        new = [u for u in users if self._by_name.is_new(u) or self._is_new_in_call(u)]
        if x.operands[0] in self._named and len(new) == len(users):
            return False
        return bool(new) and all(
            u.opcode in ELEMENTWISE_OPCODES and (u in new or is_of_call(u)) for u in users
        )

    def _is_inserted(self, x: Instruction) -> bool:
        """Is it a convert of float normalization, which says nothing of what it stands beside?"""
        return x.opcode == "convert" and self._of(x) == Maker.FLOAT_NORMALIZATION

    def _is_new_in_call(self, x: Instruction) -> bool:
        return is_of_call(x) and not is_told_of_program(x) and self._by_name.by_name(x) == Maker.SIMPLIFIER

    def _in_its_call(self, x: Instruction) -> list[Instruction]:
        """The readers that are of the very call, if any are: others were given it by CSE."""
        own = [u for u in x.users if scope(u) == scope(x)]
        return x.users if is_of_several(x) else own or x.users

    def _is_made_with(self, x: Instruction, user: Instruction) -> bool:
        return operation(user) == operation(x) or self._by_name.by_name(user) in _NAMED_AFTER_OPCODE


def _is_between_converts(x: Instruction) -> bool:
    """Is it as narrow as it was, of what float normalization made narrow again, and wide for its readers?"""
    made = {u.shape.element_type for u in x.users}
    return all(u.opcode == "convert" for u in x.users) and made == {
        x.operands[0].operands[0].shape.element_type
    }


@lru_cache(maxsize=1)  # asked for one computation after the other
def _greatest_numbers(named: frozenset[Instruction]) -> dict[str, int]:
    """The greatest number that names of each root have."""
    found: dict[str, int] = {}
    for x in named:
        root, number = name_before_renaming(x)
        found[root] = max(number, found.get(root, 0))
    return found
