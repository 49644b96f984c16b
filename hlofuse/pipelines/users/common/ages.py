"""Since when instructions are there: since the program, since calls were inlined, or since a pass made them.

The framework makes the root last. What calls bring in when they are inlined comes behind it, operands first,
and then what passes make. Ids have to be XLA's.
"""

from __future__ import annotations

from typing import TypeAlias

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.ages_of_program import MADE_ANEW, is_made_by_pass, last_of_program
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import (
    is_of_older_release,
    is_of_program,
    is_of_several,
    name_before_renaming,
    operation,
)
from hlofuse.pipelines.users.common.constants import is_made_of_nothing

Calls: TypeAlias = "dict[Instruction, int]"
"""By instruction, after how many calls of functions, each another than the one before, it was made."""
_NAMED_ALIKE = frozenset(
    {"add", "and", "concatenate", "gather", "get-tuple-element", "not", "or", "pad", "parameter", "reshape"}
    | {"reverse", "scatter", "slice", "sort", "tanh", "transpose", "tuple", "while", "xor"}
)
"""Opcodes that JAX calls operations by, too."""


def first_of_dots(computation: Computation) -> int | None:
    """The lowest id of a product that a dot became, if there is one.

    The first simplification makes it (`HandleDotStrengthReduction`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) as it comes along the dot, operands first: ids
    go on from there as where calls are inlined until something is made anew (`first_made_anew`).
    """
    return min((x.id for x in computation if was_dot(x)), default=None)


def first_made_anew(computation: Computation) -> int:
    """The lowest id of an operation of the program that a pass made anew, outside of called functions.

    What is as young or younger was made by a pass, in a called function as well. A product that was a
    division is the work of a pass wherever it is.
    """
    if not any(x.op_name for x in computation):
        return _first_named_by_pass(computation)
    is_call = _is_call_without_name(computation)
    return min(
        (x.id for x in computation if was_division(x) or (not is_call and _is_made_anew(x))),
        default=last_of_program(computation.root) + len(computation.instructions),
    )


def _first_named_by_pass(computation: Computation) -> int:
    """The same of a text without metadata: what is named after its opcode, as the program calls nothing.

    The framework calls most operations otherwise, `mul` or `dynamic_slice`; XLA has no other name to give.
    """
    last = last_of_program(computation.root)
    named = [x for x in computation if x.opcode == name_before_renaming(x).root and not _is_of_any(x)]
    of_program = {x.opcode for x in named if x.id <= last}
    return min(
        (x.id for x in named if x.id > last and x.opcode not in of_program),
        default=last + len(computation.instructions),
    )


def _is_of_any(x: Instruction) -> bool:
    """Does the name of its opcode not tell? It is what the framework calls it, or it can be from anywhere."""
    return x.opcode in _NAMED_ALIKE or is_made_of_nothing(x)


def _is_call_without_name(computation: Computation) -> bool:
    """Is it the body of a loop that only calls a function, and nothing tells which?

    Older releases of JAX name what a scan runs nowhere. Then nothing of what is computed in floating point
    is older than the root, and what was inlined looks as if passes had made it.
    """
    root = computation.root
    of_program = [x for x in computation if x.opcode in ELEMENTWISE_OPCODES and is_of_older_release(x)]
    if computation.is_entry or not of_program:
        return False
    return not any(x.id < root.id and x.shape.element_type in FLOATING_TYPES for x in of_program)


def _is_made_anew(x: Instruction) -> bool:
    if not is_made_by_pass(x) or not is_of_program(x):
        return False
    return not (is_made_of_nothing(x) or is_in_nameless_function(x))


def runs_of_calls(computation: Computation) -> Calls:
    """Those of a `computation`."""
    runs: Calls = {}
    last, run = "", 0
    for x in computation:
        function = outermost_call(x) if is_of_program(x) else ""
        if function and function != last:
            last, run = function, run + 1
        runs[x] = run
    return runs


def with_clones_by_age(
    users: list[Instruction], served: dict[Instruction, Instruction], ids: range
) -> list[Instruction]:
    """The `users` with those by age, each in the place of another, that are of called functions.

    Those serve (`served_by`) operations of the program with one of the `ids`; what passes made, or made anew,
    stays where it is, and so does a broadcast of what got dimensions of one before it: it took the place of
    that reshape.
    """
    cloned = {u for u in users if served[u].id in ids and _is_cloned(served[u])}
    by_age = iter(sorted(cloned, key=lambda u: served[u].id))
    return [next(by_age) if u in cloned else u for u in users]


def _is_cloned(x: Instruction) -> bool:
    return is_of_program(x) and not (x.opcode in MADE_ANEW or is_of_several(x) or is_of_reshaped(x))


def is_of_reshaped(x: Instruction) -> bool:
    """Is it a broadcast that two became, as the framework makes of `x[:, None] - y`?"""
    return x.opcode == "broadcast" and x.operands[0].shape.rank > 0 and operation(x) != "broadcast_in_dim"


def is_in_nameless_function(x: Instruction) -> bool:
    """A running sum or an argmax comes out of a function of which names tell nothing."""
    return operation(x).startswith("reduce_window") or (x.opcode == "reduce" and x.shape.is_tuple)


def was_division(x: Instruction) -> bool:
    """A division by a constant no more: the first simplification makes it, after calls have been inlined."""
    return _became_product(x, "div")


def was_dot(x: Instruction) -> bool:
    """A matrix product no more, which the first simplification multiplies and adds up."""
    return _became_product(x, "dot_general")


def was_product_of_vectors(x: Instruction) -> bool:
    """Of vectors, which simplification multiplied and adds up, in the shape that they were reshaped from."""
    return was_dot(x) and x.shape.true_rank == 1 < x.shape.rank


def was_simplified_as_text(computation: Computation) -> bool:
    """Was the text that XLA was given, without metadata, of a program that had been simplified before?

    A division by a constant is a product there already, which has the name of the division, and is no
    younger than the root. HloCSE had run with AlgebraicSimplifier (`algebraic_simplifier.cc`): lists of users
    are in the order of the text since. Ids have to be XLA's.
    """
    products = [x for x in computation if x.opcode == "multiply" and not x.op_name]
    divisions = [x for x in products if name_before_renaming(x).root == "div"]
    return bool(divisions) and min(x.id for x in divisions) <= last_of_program(computation.root)


def was_product_with_predicate(x: Instruction) -> bool:
    """A product with a predicate made a number no more: a choice, with a zero made for it."""
    return x.opcode == "select" and operation(x) == "mul" and not is_of_program(x)


def was_two(x: Instruction) -> bool:
    """A clamp that simplification made of a minimum and a maximum."""
    return x.opcode == "clamp" and operation(x) in {"max", "min"}


def is_sign_of_remainder(x: Instruction, zeros: Instruction) -> bool:
    """Does `x` compare with `zeros` what was divided by a power of two? They were made anew for it."""
    return x.opcode == "compare" and operation(x) in ("rem", "div") and x.operands[1] is zeros


def is_choice_of_remainder(x: Instruction) -> bool:
    """Does `x` choose by that sign? No call was given it: CSE made it one with what compares outside."""
    return x.opcode == "select" and operation(x) in ("rem", "div")


def was_subtraction(x: Instruction) -> bool:
    """Of a constant, which the first simplification adds with the other sign."""
    return x.opcode == "add" and operation(x) == "sub"


def _became_product(x: Instruction, written: str) -> bool:
    """Did simplification make `x` of what is `written` in the program?"""
    return x.opcode == "multiply" and name_before_renaming(x).root == x.opcode and operation(x) == written


def came_behind_its_users(x: Instruction, users: list[Instruction]) -> bool:
    """Was `x` made anew for users that were there? Ids have to be XLA's."""
    return all(u.id < x.id or _is_normalized_broadcast(u) for u in users)


def _is_normalized_broadcast(x: Instruction) -> bool:
    """Did LayoutNormalization make it anew, which puts it where it was (`layout_normalization.cc`)?"""
    return x.opcode == "broadcast" and bool(x.op_name) and not is_of_program(x)
