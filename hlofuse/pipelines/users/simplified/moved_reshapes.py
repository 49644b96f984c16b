"""Values that were reshaped before they were used, until the reshape was moved behind the use."""

from __future__ import annotations

import re

from hlofuse.analysis.constants import is_broadcast_of_constant, is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import (
    SLICE_OF_SCAN,
    is_in_branch,
    is_of_called,
    is_of_derivative,
    outermost_call,
)
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.calls.clones import is_of_same_call
from hlofuse.pipelines.users.common.ages import (
    Calls,
    is_in_nameless_function,
    was_product_of_vectors,
    was_subtraction,
    was_two,
)
from hlofuse.pipelines.users.common.copies import was_bitcast_copied
from hlofuse.pipelines.users.common.grouping import is_grouped_reduction, is_reduced
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.common.sunk_broadcasts import was_sunk
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.widened import served_by
from hlofuse.pipelines.users.simplified.equals_elsewhere import written_elsewhere
from hlofuse.pipelines.users.simplified.merged_factors import are_around_product_with_one, has_merged_factor
from hlofuse.pipelines.users.simplified.moved_in_each_place import with_each_place_moved
from hlofuse.pipelines.users.simplified.reshaped_once import (
    is_element,
    is_reshaped_once,
    was_reshaped_once,
    was_scalar,
)
from hlofuse.pipelines.users.simplified.sunk_slices import is_sliced_since

_BRANCH = re.compile(r"/branch_\d+_fun/")


def with_moved_in_front(
    producer: Instruction,
    users: list[Instruction],
    passes: int,
    calls: Calls,
    uses: Uses,
    wide: frozenset[Instruction] = frozenset(),
    *,
    is_convert: bool = False,
) -> list[Instruction]:
    """The users of a value with the last of those in front that ReshapeMover made.

    It makes all element-wise operations on what was reshaped anew, on what it was reshaped from, and reshapes
    the results (`xla/hlo/transforms/simplifiers/reshape_mover.cc`). The reshape in front, a user from the
    beginning, goes and the last user takes its place. `passes` is the first id that a pass gave, and what is
    of a call but behind others' `calls` a pass made as well. What is read now may be younger than what was
    reshaped, unless that is known to be a convert of the program (`is_convert`).

    Where it was a transpose, each was made to read one of its own that undid it. CSE made those one in the
    order of a walk, in which `uses` are. What was narrow then, as what is `wide` now was, read a convert.
    """
    if _is_made_with_reader(producer, users, passes):
        return users
    served = {u: _served_at_once(u) if is_reshaped_once(producer, passes) else u for u in users}
    if {"/branch_0_fun/", "/branch_1_fun/"} <= {b for u in users for b in _branches(served[u])}:
        return users  # those of branches are young because they were cloned out of these
    moved = [u for u in users if u not in wide and _is_moved(served[u], producer, passes, calls)]
    if producer.id < passes:
        moved = _without_merged_numbers(moved, [u for u in users if u not in moved])
    moved.sort(key=lambda u: served[u].id)
    spread = [u for u in users if u.opcode == "broadcast" and u.op_name]
    moved = [u for u in moved if not (is_sliced_since(u) or any(was_sunk(u, x) for x in spread))]
    if are_around_product_with_one(users):
        moved = [u for u in moved if not has_merged_factor(u)]
    if was_scalar(producer):
        moved = [u for u in moved if was_scalar(u)]
    others = [u for u in users if u not in moved]
    if moved and others and all(map(was_subtraction, moved)):
        return users  # each took the place of what it was (`HandleSubtract`)
    elsewhere = written_elsewhere(producer, moved)
    if elsewhere:
        own = [u for u in users if u not in elsewhere]
        own = with_moved_in_front(producer, own, passes, calls, uses, wide, is_convert=is_convert)
        return [*own, *(u for u in users if u in elsewhere)]
    if _is_argument_reshaped_back(producer, others, passes):
        return [*moved[-1:], *last_in_front(others), *moved[:-1]]
    if not moved and _is_of_element(producer) and all(_is_of_same_dimensions(u, producer) for u in users):
        return last_in_front(sorted(users, key=lambda u: u.id))
    if not moved:
        return users
    if (listed := _with_broadcasts_of_reshape(producer, users, moved, passes)) is not None:
        return listed
    if (listed := with_each_place_moved(producer, users, moved, uses, passes)) is not None:
        return listed
    if _read_another(moved, producer, others, passes):
        return [*others, *last_in_front(moved)]
    if not was_reshaped_once(producer, moved, others, passes):
        return users
    is_anew = not is_convert and producer.id > moved[-1].id and (others or is_of_program(producer))
    # A derivative ends in a reshape: those that read it were moved as soon as there was a reduction.
    is_kept = any(map(_is_reshaped, moved)) or (is_of_derivative(producer) and not others)
    if is_anew and not (is_grouped_reduction(producer) and is_kept):
        return [*moved, *others] if _is_moved_convert(producer) and all(map(is_reduced, others)) else users
    if any(map(_is_transposed_since, moved)):
        moved.sort(key=lambda u: uses[producer, u])
    # Who read a broadcast of a scalar came behind the reshape that had made it one.
    # Made anew itself, it was given its reshape before what another like it had been read by.
    is_first = was_scalar(producer) or (producer.id >= passes and is_of_program(producer))
    in_front = users[: min(map(users.index, moved))] if not is_first else []
    # A gather was made anew since, and took the place of the reshape that had been put in front of it.
    in_front = [u for u in in_front if u.opcode != "gather"]
    place = sum(
        (u.id < passes and not is_made_by_pass(u)) or _is_reshaped_on(u) or _is_read_as(u) for u in in_front
    )
    return [*others[:place], moved[-1], *others[place:], *moved[:-1]]


def _is_made_with_reader(x: Instruction, users: list[Instruction], passes: int) -> bool:
    """Did a pass make it for what it made next, as the divisor of `(a / b) / c`? No reshape was there."""
    return x.id >= passes and not x.op_name and any(u.id == x.id + 1 for u in users)


def _without_merged_numbers(moved: list[Instruction], others: list[Instruction]) -> list[Instruction]:
    """Those `moved` but products with a number where one of the `others` is: that was a factor of them.

    AlgebraicSimplifier makes `x * (c * d)` of `(x * c) * d` (`HandleMultiply`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), with the name it had, behind all users of `x`.
    What ReshapeMover made may still be read through a reshape.
    """
    if not any(map(_is_product_with_number, others)):
        return moved
    return [u for u in moved if not _is_product_with_number(u) or _is_reshaped(u)]


def _is_product_with_number(x: Instruction) -> bool:
    return x.opcode == "multiply" and any(map(is_broadcast_of_constant, x.operands))


def _is_reshaped_on(x: Instruction) -> bool:
    """Was what is unstacked reshaped for a broadcast, in one with the reshape that others read?

    What a function is called with is reshaped ahead of that.
    """
    if x.opcode != "bitcast" or not is_element(x.operands[0]) or is_of_called(x):
        return False
    return all(u.opcode == "broadcast" for u in x.users)


def _is_read_as(x: Instruction) -> bool:
    """Are these the bits of a value as another type? The bitcast took the place of what read them."""
    return x.opcode == "bitcast" and operation(x) == "bitcast_convert_type"


def _is_moved_convert(x: Instruction) -> bool:
    """Was it made anew with who reads it, and then behind its reshape?

    The latter ConvertMover does (`xla/hlo/transforms/simplifiers/convert_mover.cc`). Reductions had read the
    reshape that came behind all others.
    """
    if x.opcode != "convert" or x.operands[0].opcode != "bitcast" or is_of_program(x):
        return False
    return operation(x) == "convert_element_type"


def _is_reshaped(moved: Instruction) -> bool:
    """Is it read through the reshape that was put behind it, or a broadcast took that in?"""
    rank = moved.shape.rank
    return any(u.opcode in {"bitcast", "broadcast"} and u.shape.rank > rank for u in moved.users)


def _branches(x: Instruction) -> list[str]:
    return _BRANCH.findall(x.op_name or "")


def _is_of_element(x: Instruction) -> bool:
    """Is it computed of an element of what is scanned, with the dimension that is gone in the program?

    A scan takes a slice of one and reshapes it at once. What reads the slice itself was moved in front of
    that, in a loop as well, where ids do not tell; then what reads it in turn, together or not at all.
    """
    if x.opcode not in ELEMENTWISE_OPCODES:
        return False
    slices = (o for o in x.operands if o.opcode == "dynamic-slice")
    return any((o.op_name or "").endswith(SLICE_OF_SCAN) for o in slices)


def _is_of_same_dimensions(user: Instruction, x: Instruction) -> bool:
    return user.opcode in ELEMENTWISE_OPCODES and user.shape.dimensions == x.shape.dimensions


def _is_argument_reshaped_back(x: Instruction, readers: list[Instruction], passes: int) -> bool:
    """Did ReshapeMover make `x`, and its `readers` in called functions read it through a reshape?

    They were given `x` when that reshape was none any more; the last of them took the place of it
    (`ReplaceInstruction`, `xla/hlo/ir/hlo_computation.cc`).
    """
    if x.id < passes or x.opcode not in ELEMENTWISE_OPCODES or is_of_called(x) or not is_of_program(x):
        return False
    if operation(x) == "broadcast_in_dim" and _is_product_with_number(x):
        return False  # of two numbers one was made, that of a mean, and the product anew (`HandleMultiply`)
    return bool(readers) and all(u.id < x.id and is_of_called(u) for u in readers)


def _with_broadcasts_of_reshape(
    x: Instruction, users: list[Instruction], moved: list[Instruction], passes: int
) -> list[Instruction] | None:
    """The users of `x`, reshaped for the one that was `moved` and for all that broadcast it.

    AlgebraicSimplifier makes the broadcasts anew, of what is not reshaped (`HandleBroadcast`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): they come behind all others, but for the one
    moved then, which takes the place of the reshape. None if there is no such broadcast. Ids do not tell of a
    reduction: ReductionLayoutNormalizer and its like make it anew.
    """
    if x.opcode != "reduce" and (x.id >= passes or x.opcode not in ELEMENTWISE_OPCODES):
        return None
    broadcasts = [u for u in users if u.opcode == "broadcast"]
    if len(moved) > 1 or not broadcasts:
        return None
    if any(u.id < passes or not _was_broadcast_of_program(u) for u in broadcasts):
        return None
    place = min(users.index(u) for u in (*moved, *broadcasts))
    others = [u for u in users if u not in moved and u not in broadcasts]
    return [*others[:place], *moved, *others[place:], *broadcasts]


def _was_broadcast_of_program(x: Instruction) -> bool:
    """Layouts may have been normalized since. The broadcast in a product that became a sum is none."""
    return is_of_program(x) or (bool(x.op_name) and operation(x) != "dot_general")


def _served_at_once(x: Instruction) -> Instruction:
    """What FloatNormalization put a convert `x` in front of, which took its place; `x` itself otherwise."""
    return served_by(x) if len(x.users) == 1 else x


def _read_another(moved: list[Instruction], x: Instruction, others: list[Instruction], passes: int) -> bool:
    """Were they `moved` along with an equal of `x` that their function computed, with which CSE made `x` one?

    `x` was moved as well, and is read through the reshape that came with it.
    """
    if x.id < passes or not others or outermost_call(x) or not is_of_program(x):
        return False  # a choice of what conditionals gave is computed by no function
    is_own = all(u.opcode == "bitcast" and u.op_name == x.op_name for u in others)
    return is_own and all(map(outermost_call, moved))


def _is_moved(x: Instruction, producer: Instruction, passes: int, calls: Calls) -> bool:
    if x.opcode not in ELEMENTWISE_OPCODES or is_in_nameless_function(x):
        return False
    if not (is_of_program(x) or was_subtraction(x) or was_two(x) or was_product_of_vectors(x)):
        return False
    if producer.opcode == "reduce-window" and any(map(_is_end_of_rows, producer.users)):
        return False  # `x` was called for each element and inlined
    if is_in_branch(x) and is_in_branch(producer):
        return False  # both were cloned out of it, operands first
    if was_bitcast_copied(producer) or _is_counted_from_end(x, producer):
        return False
    return x.id >= passes or _is_out_of_its_call(x, producer, calls)


def _is_counted_from_end(x: Instruction, producer: Instruction) -> bool:
    """Is it an index, `producer` and a number, where that is negative, which read the index itself?

    AlgebraicSimplifier (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes one of
    the two numbers, so that both read the `producer`.
    """
    if x.opcode != "add" or not is_constant(x.operands[1]):
        return False
    for selected in x.users:
        if selected.opcode == "select" and selected.operands[1] is x:
            sign, _, index = selected.operands
            if index.opcode != "add" or sign.opcode != "compare" or sign.operands[0] is not index:
                continue
            if index.operands[0] is producer and is_constant(index.operands[1]):
                return True
    return False


def _is_end_of_rows(x: Instruction) -> bool:
    """What ReduceWindowRewriter (`xla/hlo/transforms/simplifiers/reduce_window_rewriter.cc`) goes on from."""
    return x.opcode == "slice" and not x.op_name


def _is_transposed_since(moved: Instruction) -> bool:
    """Is it read through a transpose that no operation of the program is?"""
    return any(
        u.opcode == "bitcast"
        and not u.op_name
        and not u.shape.is_row_major
        and sorted(u.shape.dimensions) == sorted(moved.shape.dimensions)
        for u in moved.users
    )


def _is_out_of_its_call(x: Instruction, producer: Instruction, calls: Calls) -> bool:
    """Was something of another call inlined between `producer` and `x`, which are of the same?"""
    function = outermost_call(producer)
    if not function or calls.get(x) == calls.get(producer):
        return False
    return x.id > producer.id and is_of_same_call(x, producer, function)
