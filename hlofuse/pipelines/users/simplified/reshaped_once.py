"""Values that one reshape was made of, for all that read it, rather than one for each."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import (
    is_loop_of_one_turn,
    is_of_called,
    is_of_derivative,
    outermost_call,
)
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.calls.clones import is_of_same_call
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.keys import joins_words_of_computed_key
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert

_RESHAPED_FOR_EACH = ELEMENTWISE_OPCODES | {"dynamic-slice", "parameter", "slice"}


def was_reshaped_once(
    x: Instruction, moved: list[Instruction], others: list[Instruction], passes: int
) -> bool:
    """Was it reshaped for those together that were `moved`?"""
    spread = x.operands[0] if x.opcode == "bitcast" else x
    if spread.opcode in {"broadcast", "iota"}:
        return False  # it is made anew in the shape of who reads it, or reshaped for each of them
    if is_reshaped_once(x, passes):
        return not _is_of_several_calls(moved)
    if len(moved) == 1 and any(_is_reduced_as_moved(u, moved[0]) for u in others):
        return True
    if not is_of_program(x):
        return False
    # What is unstacked is reshaped at once, for all that read it.
    if was_scalar(x) or is_element(x) or _is_gradient(x, [*moved, *others]):
        return True
    if is_loop_of_one_turn(x) and not any(map(is_loop_of_one_turn, [*moved, *others])):
        return True  # what such a loop gives is an array of one element, which is reshaped at once
    if not others and _is_index(x) and _has_name(x, moved):
        return True
    # The framework reshapes what is written in different places for each of them, and a scalar, which it
    # broadcasts to the dimensions of the other operand, for each operation.
    if len(moved) == 1:
        if any(u.opcode == "reduce" and _was_argument_with(u, moved[0], passes) for u in others):
            return True
        if any(_is_reduced_as_reshaped(u, moved[0]) for u in others):
            return True
        return joins_words_of_computed_key(moved[0]) or all(is_inserted_convert(u) for u in others)
    is_scalar = not x.shape.rank
    return not is_scalar and len({(stack_frame(u), u.op_name and outermost_call(u)) for u in moved}) == 1


def is_reshaped_once(x: Instruction, passes: int) -> bool:
    """Does the framework reshape such an `x` for all that read it, but for calls?"""
    return x.id >= passes or x.opcode not in _RESHAPED_FOR_EACH


def was_scalar(x: Instruction) -> bool:
    """Is it one element of an array that was reshaped to a scalar, or computed of several such?"""
    if not x.shape.is_array or not x.shape.rank or x.shape.element_count != 1:
        return False
    if x.opcode not in ELEMENTWISE_OPCODES:
        return is_element(x)
    computed = [o for o in x.operands if o.opcode != "constant"]
    # A constant was put behind the only element, by AlgebraicSimplifier, in an array as well.
    return all(map(was_scalar, computed)) and not (len(computed) == 1 and is_element(computed[0]))


def is_element(x: Instruction) -> bool:
    return x.opcode == "slice" and operation(x) == "unstack"


def _is_index(x: Instruction) -> bool:
    """Is it sliced along dimensions that are gone in the program, as `a[:, 0]` is? It is reshaped at once."""
    if x.opcode not in {"slice", "dynamic-slice"}:
        return False
    return any(n == 1 < of for n, of in zip(x.shape.dimensions, x.operands[0].shape.dimensions, strict=True))


def _has_name(x: Instruction, readers: list[Instruction]) -> bool:
    """Does the function that the `readers` are written in call it something? None is written around it."""
    here = extent_of(x)
    extents = [extent_of(u) for u in readers]
    if here is None or not all(e is not None and e.context == here.context for e in extents):
        return False
    return not any(e is not None and e.encloses(here) for e in extents)


def _was_argument_with(reduction: Instruction, moved: Instruction, passes: int) -> bool:
    """Did both read an argument of one call, which was a transpose, of which the reduction is made anew now?

    AlgebraicSimplifier reduces what was transposed instead (`HandleReduce`), before the other is moved.
    """
    function = outermost_call(moved)
    if reduction.id < passes or not function or not is_of_called(reduction):
        return False
    return stack_frame(reduction) == stack_frame(moved) and is_of_same_call(reduction, moved, function)


def _is_reduced_as_reshaped(user: Instruction, moved: Instruction) -> bool:
    """Is it what a reduction reads that summed the reshape as well, without ones, before the value itself?

    AlgebraicSimplifier has it read the value (`HandleReduce`), ahead of ReshapeMover. Of one that ever summed
    the value ReductionDimensionGrouper makes such a bitcast where it joins dimensions.
    """
    if not _is_summed_since(user, moved):
        return False
    return list(user.shape.dimensions) == user.operands[0].shape.true_dimensions


def _is_summed_since(user: Instruction, moved: Instruction) -> bool:
    """Is it a bitcast for nothing but reductions, younger than the one `moved`?"""
    return user.opcode == "bitcast" and user.id >= moved.id and all(r.opcode == "reduce" for r in user.users)


def _is_reduced_as_moved(user: Instruction, moved: Instruction) -> bool:
    """Is it what a reduction reads, with the dimensions to which the one `moved` is reshaped, be it later?

    The reduction read that reshape, of an argument maybe, until AlgebraicSimplifier had it read the value
    (`HandleReduce`), ahead of ReshapeMover; ReductionDimensionGrouper joins the dimensions again.
    """
    if not _is_summed_since(user, moved):
        return False
    found, pending = {moved}, [moved]
    while pending:
        for reader in pending.pop().users:
            if reader.opcode == "bitcast" and reader.shape.dimensions == user.shape.dimensions:
                return True
            if reader.opcode in ELEMENTWISE_OPCODES and reader not in found:
                found.add(reader)
                pending.append(reader)
    return False


def _is_gradient(x: Instruction, users: list[Instruction]) -> bool:
    """Is it the result of a derivative? That of what was broadcast ends in a reshape, which all read."""
    return is_of_derivative(x) and not any(map(is_of_derivative, users))


def _is_of_several_calls(moved: list[Instruction]) -> bool:
    """The same operation of a function, called in several places: each read a value of its own till CSE."""
    places = {stack_frame(u) for u in moved}
    if len({u.op_name for u in moved}) > 1 or len(places) == 1 or not outermost_call(moved[0]):
        return False
    extents = [extent_of(u) for u in moved]
    # What is written in several places of the function is of one call.
    return len({extent[1:] for extent in extents if extent is not None}) < len(moved)
