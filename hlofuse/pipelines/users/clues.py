"""What tells of the lists of users in a computation: gathered once, read for each list."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.calls.results import Results
from hlofuse.pipelines.users.calls.selected_branches import Given, given_to_branches
from hlofuse.pipelines.users.calls.unrolled_loops import last_unrolled
from hlofuse.pipelines.users.common.ages import (
    Calls,
    first_made_anew,
    first_of_dots,
    runs_of_calls,
    was_simplified_as_text,
)
from hlofuse.pipelines.users.common.numbers import Numbers, numbers_in_names
from hlofuse.pipelines.users.common.visits import Uses, uses_in_order
from hlofuse.pipelines.users.duplicates.dead_at_cse import UsesAtCse
from hlofuse.pipelines.users.duplicates.merged_reshapes import GonePlaces
from hlofuse.pipelines.users.duplicates.met_first import met_first_in
from hlofuse.pipelines.users.duplicates.moved_readers_of_shared import moved_from_shared
from hlofuse.pipelines.users.duplicates.repeated import Repeated, repeated_in
from hlofuse.pipelines.users.duplicates.reshaped_broadcasts import Reshaped, made_of_reshapes
from hlofuse.pipelines.users.duplicates.rounds import Rounds, rounds_of
from hlofuse.pipelines.users.duplicates.scalars_for_each import made_for_each
from hlofuse.pipelines.users.floats.narrow_in_program import widened
from hlofuse.pipelines.users.floats.widened_products import places_of_widened
from hlofuse.pipelines.users.layouts.normalized_convolutions import results_of_normalized
from hlofuse.pipelines.users.operands_as_written import Program
from hlofuse.pipelines.users.products.taken_constants import GemmReaders, gemm_readers
from hlofuse.pipelines.users.products.taken_in_softmax import SoftmaxReaders, softmax_readers
from hlofuse.pipelines.users.products.taken_readers import Taken, readers_in_gemms
from hlofuse.pipelines.users.simplified.divisions import Divisions, divisions, made_again
from hlofuse.pipelines.users.simplified.hidden_casts import narrowed_places, was_cast
from hlofuse.pipelines.users.simplified.higher_bits import LowerBits, lower_bits
from hlofuse.pipelines.users.simplified.moved_operations import behind_moved_reshapes, younger_than_results
from hlofuse.pipelines.users.simplified.operations_on_equals import Readers, readers_of_operations_on_equals
from hlofuse.pipelines.users.simplified.reciprocals import Divided, divided_by_constants
from hlofuse.pipelines.users.simplified.summed_again import Reductions, reductions_in


class Ages(NamedTuple):
    """What ids tell, be they XLA's or guessed."""

    passes: int
    """The first id that a pass gave."""
    unrolled: int
    """The last id of what came out of a loop of one turn, if ids are XLA's."""
    anew: int
    """The first id of what a pass made anew of the program (`first_made_anew`)."""
    products: Divisions
    again: frozenset[Instruction]
    """Those of the products that took over the name of another, if ids are XLA's."""
    numbers: Numbers
    moved: frozenset[Instruction]
    """What ReshapeMover made."""
    younger: frozenset[Instruction]
    """What was made anew in the body of a loop."""
    calls: Calls
    on_equals: Readers
    """What read an operation that gave back its operand."""
    rounds: Rounds
    """In which round of CSE what a pass made came to be merged."""
    repeated: Repeated
    """What the program computed again."""


class Clues(NamedTuple):
    """What is known of a computation as the fusion passes get it."""

    order: dict[Instruction, int]
    """The post-order."""
    uses: Uses
    """The order in which a walk comes along each use."""
    at_cse: UsesAtCse
    program: Program
    divided: Divided
    wide: frozenset[Instruction]
    """What was narrow in the program."""
    narrow_products: frozenset[int]
    """The places in the source of matrix products that were."""
    cast: frozenset[Hashable]
    """The places in the source of which a result was made narrow at once."""
    reductions: Reductions
    for_each: frozenset[Instruction]
    """The scalars that the program computed anew for each use."""
    reshaped: Reshaped
    """What was made of reshapes of broadcasts."""
    moved_from_shared: frozenset[Instruction]
    """What was moved in front of a reshape and had read a broadcast that the program shares."""
    in_softmax: SoftmaxReaders
    in_gemms: GemmReaders
    taken: Taken
    """What gemms took along that read a value which is still there."""
    given: Given
    """What the branches of conditionals that became selects were given."""
    lower_bits: LowerBits
    """What drew the bits of random integers, where what had drawn more of them is gone."""
    results: Results
    of_convolutions: frozenset[Instruction]
    """The results of convolutions that layout normalization made anew."""
    ages: Ages
    gone: GonePlaces
    simplified: bool
    """Had CSE made equals one before the text was written, if ids are XLA's?"""
    ids_known: bool
    """Are ids XLA's?"""

    @property
    def anew(self) -> int | None:
        """The first id of what a pass made anew of the program, if ids are XLA's."""
        return self.ages.anew if self.ids_known else None

    def guessed_anew(self, producer: Instruction) -> int | None:
        """The same if ids are guessed, in the entry alone: a guess of loops' bodies has calls torn apart."""
        is_in_entry = producer.computation is not None and producer.computation.is_entry
        return self.ages.anew if is_in_entry and not self.ids_known else None


def clues_of(computation: Computation, program: Program, gone: GonePlaces, *, ids_known: bool) -> Clues:
    """Those of a `computation`; what the `program` had other operands for is known."""
    order = {x: k for k, x in enumerate(computation.post_order())}
    uses = uses_in_order(computation, [computation.root])
    ages = _ages_of(computation, order, uses, ids_known=ids_known)
    cast = narrowed_places(computation)
    return Clues(
        order,
        uses,
        UsesAtCse(computation, uses),
        program,
        divided_by_constants(order),
        widened(order, uses, frozenset(x for x in order if was_cast(x, cast))),
        places_of_widened(order),
        cast,
        reductions_in(order),
        made_for_each(computation, ages.numbers, ids_known=ids_known),
        made_of_reshapes(computation),
        moved_from_shared(computation),
        softmax_readers(order),
        gemm_readers(order),
        readers_in_gemms(order),
        given_to_branches(order),
        lower_bits(order),
        Results(),
        results_of_normalized(computation),
        ages,
        gone,
        ids_known and was_simplified_as_text(computation),
        ids_known,
    )


def _ages_of(computation: Computation, order: dict[Instruction, int], uses: Uses, *, ids_known: bool) -> Ages:
    anew = first_made_anew(computation)
    # A guess of ids goes by what is made anew, not by dots.
    of_dots = first_of_dots(computation) if ids_known else None
    products, numbers = divisions(order), numbers_in_names(order)
    passes = anew if of_dots is None else min(anew, of_dots)
    return Ages(
        passes,
        last_unrolled(computation) if ids_known else -1,
        anew,
        products,
        made_again(products) if ids_known else frozenset(),
        numbers,
        behind_moved_reshapes(computation),
        younger_than_results(computation) if ids_known else frozenset(),
        # A guess has what calls brought in apart from all else: where one ends is not in it.
        runs_of_calls(computation) if ids_known else {},
        readers_of_operations_on_equals(computation) if ids_known else {},
        rounds_of(computation, passes) if ids_known else {},
        _repeated_in(computation, uses, numbers, passes, ids_known=ids_known),
    )


def _repeated_in(
    computation: Computation, uses: Uses, numbers: Numbers, passes: int, *, ids_known: bool
) -> Repeated:
    made_first = repeated_in(computation, uses, numbers, passes)
    return met_first_in(computation, uses, numbers, passes) | made_first if ids_known else made_first
