"""Which operations that compute in single precision now computed in less in the program.

FloatNormalization (`xla/hlo/transforms/simplifiers/float_normalization.cc`) widens what the device cannot
compute in bf16 or f8, with a convert in front of every operand and one behind; SimplifyFPConversions
(`simplify_fp_conversions.cc`) then takes away what converts there and back, those of the program included.
Where an operation reads another and no convert is left between them nothing tells at once which of the two
was narrow, so that each takes side with what is known around it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.custom_calls import is_library_convolution, is_library_matmul
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.distributed_factors import is_sum_of_factors
from hlofuse.pipelines.users.floats.inserted_converts import (
    is_inserted_convert,
    is_narrowing,
    is_widening,
    reads_widened,
)
from hlofuse.pipelines.users.floats.widened import was_merged, was_swapped

_SURE, _LIKELY = 6, 2

_NEVER_WIDENED = frozenset({"convert", "exponential", "log", "select"})
"""What every NVIDIA device computes or moves in bf16 (`xla/service/gpu/gpu_float_support.cc`)."""
_REDUCING = frozenset({"reduce", "reduce-window"})
_SINCE_AMPERE = frozenset({"abs", "maximum", "minimum", "negate"})
_SINCE_HOPPER = frozenset({"add", "multiply", "subtract"})
_EXPANDED = frozenset({"digamma", "erf_inv", "erfc", "lgamma"})
"""What the framework itself computes in single precision, with converts in front and behind."""
_ANYTHING = frozenset({"custom-call", "dot", "fusion", "get-tuple-element"})
"""A product in bf16 may have become one in f32 long before, without a convert left behind it."""


def widened(
    order: Iterable[Instruction], uses: Uses, cast: frozenset[Instruction] = frozenset()
) -> frozenset[Instruction]:
    """Instructions that were narrow in the program and are f32 now.

    `order` is the post-order, and `uses` are in the order of the walk. What was `cast` at once was so
    likely for who reads it.
    """
    order = list(order)
    if not any(map(is_inserted_convert, order)):
        return frozenset()
    never = _computed_narrow(order)
    found = {x for x in order if x.opcode in _REDUCING and any(map(is_inserted_convert, _initial_values(x)))}
    first = _first_readers(order, uses)
    products = frozenset(x for x in order if _is_product(x))
    if not any(map(reads_widened, products)):
        products = frozenset()
    own = {
        x: _evidence(x) + _SURE * (x in first) + _SURE * _is_sum_for(products, x)
        for x in order
        if is_elementwise(x)
        and _is_wide(x)
        and x.opcode not in never
        and operation(x) not in _EXPANDED
        and not is_sum_of_factors(x)
    }
    own = _with_that_of_place(own)
    side = {x: _sign(known) for x, known in own.items()} | dict.fromkeys(found, 1)
    for sweep in (own, reversed(own), own):
        readers = _readers(side)
        for x in sweep:
            votes = [
                _LIKELY if o in cast and side.get(o, 1) <= 0 else _vote(o, x, side, readers)
                for o in x.operands
            ]
            side[x] = _sign(own[x] + 2 * _together(x, votes) + _sign(sum(side.get(u, 0) for u in x.users)))
    return frozenset(x for x, narrow in side.items() if narrow > 0)


def _initial_values(reduction: Instruction) -> list[Instruction]:
    """One for each of the values that are reduced together."""
    return reduction.operands[len(reduction.operands) // 2 :]


def _first_readers(order: Iterable[Instruction], uses: Uses) -> frozenset[Instruction]:
    """The first to read each convert that was put in: of equal ones, CSE keeps that which it meets first."""
    return frozenset(min(x.users, key=lambda u: uses[x, u]) for x in order if x.users and is_widening(x))


def _with_that_of_place(own: dict[Instruction, int]) -> dict[Instruction, int]:
    """`own` evidence, or for want of any, or of any that is sure, that of the same place in the source.

    The derivative of an expression has its place, and is as narrow. Sums of derivatives are
    as narrow as what they are derivatives of, which has another place.
    """
    there: dict[int, list[int]] = {}
    for x, known in own.items():
        there.setdefault(stack_frame(x), []).append(known)
    told = {place: _LIKELY * _told_by(evidence) for place, evidence in there.items() if place}

    def of_place(x: Instruction) -> int:
        return told.get(stack_frame(x), 0) if operation(x) != "add_any" else 0

    return {x: known + of_place(x) if _is_open(known, of_place(x)) else known for x, known in own.items()}


def _is_open(known: int, of_place: int) -> bool:
    """Is there no evidence, or a weak one of what is read in single precision, and the place is narrow?"""
    return not known or -_SURE < known < 0 < of_place


def _told_by(evidence: list[int]) -> int:
    """What all `evidence` of a place tells, or what is sure of it."""
    signs = {_sign(known) for known in evidence if abs(known) >= _SURE} or {_sign(k) for k in evidence} - {0}
    return signs.pop() if len(signs) == 1 else 0


def _together(x: Instruction, votes: list[int]) -> int:
    """What the operands of `x` tell together.

    One of them in single precision tells that it is, too, but for a sum of derivatives: where a function
    computes in single precision what is narrow, the derivative by that is converted back for the sum.
    """
    if min(votes) < 0 and not (operation(x) == "add_any" and max(votes) > 0):
        return min(votes)
    return max(votes)


def _readers(side: dict[Instruction, int]) -> dict[tuple[Instruction, int], int]:
    """How many of each side read a value."""
    count: dict[tuple[Instruction, int], int] = {}
    for x, one in side.items():
        for operand in set(x.operands):
            count[operand, one] = count.get((operand, one), 0) + 1
    return count


def _vote(
    operand: Instruction,
    x: Instruction,
    side: dict[Instruction, int],
    readers: dict[tuple[Instruction, int], int],
) -> int:
    """What `operand` tells of `x`; nothing if it is there in both precisions anyhow."""
    vote = side.get(operand, 0)
    if operand.opcode == "convert":
        vote = _LIKELY if is_widening(operand) else -1
    others = readers.get((operand, -_sign(vote)), 0) - (side[x] == -_sign(vote))
    return 0 if others > 0 and not _goes_on(operand, x) else vote


def _goes_on(operand: Instruction, x: Instruction) -> bool:
    """Are both sums of one module, as what its layers add to, whatever precision those begin with?"""
    return x.op_name == operand.op_name and operation(x) == "add" == x.opcode and is_of_program(operand)


def _is_wide(x: Instruction) -> bool:
    return x.shape.is_array and x.shape.element_type == "f32" and bool(x.operands)


def _computed_narrow(order: list[Instruction]) -> frozenset[str]:
    """The operations that are never widened, given what there is in bf16."""
    narrow = {x.opcode for x in order if x.shape.is_array and x.shape.element_type == "bf16"}
    if narrow & _SINCE_HOPPER:
        return _NEVER_WIDENED | _SINCE_AMPERE | _SINCE_HOPPER
    return _NEVER_WIDENED | _SINCE_AMPERE if narrow & _SINCE_AMPERE else _NEVER_WIDENED


def is_computed_narrow(x: Instruction) -> bool:
    """Is it computed in bf16, which only devices since Ampere do?"""
    return x.shape.is_array and x.shape.element_type == "bf16" and x.opcode in _SINCE_AMPERE | _SINCE_HOPPER


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _evidence(x: Instruction) -> int:
    """How much tells that `x` was narrow, apart from operations of its kind; negative if it was not."""
    operands = x.operands
    if _is_broadcast_since(x):
        operands = [o for o in operands if not is_broadcast_of_constant(o)]
    of_sum = _SURE if _is_sum_of_narrow_products(x) else 0
    return of_sum + sum(map(_of_operand, operands)) + sum(map(_of_user, x.users))


def _is_sum_of_narrow_products(x: Instruction) -> bool:
    """Is it a sum of derivatives by what several products were given, which is as narrow as they are?"""
    return operation(x) == "add_any" and all(
        _is_of_narrow_product(o) or (o.opcode == "add" and _is_sum_of_narrow_products(o)) for o in x.operands
    )


def _is_of_narrow_product(x: Instruction) -> bool:
    """Is it the result of one that a library computes in single precision, of what was narrow?"""
    if x.opcode != "get-tuple-element":
        return False
    (made,) = x.operands
    return _is_product(made) and reads_widened(made)


def _is_sum_for(products: frozenset[Instruction], x: Instruction) -> bool:
    """Is it a sum of derivatives by the result of a product, which is as narrow as what it was given?

    The `products` that are the derivative of that one read it.
    """
    return operation(x) == "add_any" and bool(x.users) and products.issuperset(x.users)


def _is_product(x: Instruction) -> bool:
    return is_library_convolution(x) or is_library_matmul(x)


def _is_broadcast_since(x: Instruction) -> bool:
    """Was it computed of a broadcast in the program, and the result is broadcast instead?

    A number that it reads was spread anew for that, in single precision either way
    (`TryToSinkBroadcastAfterElementwiseOps`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    if len(x.users) != 1 or not x.op_name or is_of_program(x):
        return False
    (user,) = x.users
    return user.opcode == "broadcast" and user.op_name == x.op_name


def _of_operand(operand: Instruction) -> int:
    if operand.opcode == "broadcast":
        return _SURE if was_swapped(operand) and not was_merged(operand) else -_SURE
    if operand.opcode == "constant":
        return -_LIKELY
    if operand.opcode in _ANYTHING or (is_elementwise(operand) and operand.opcode not in _NEVER_WIDENED):
        return 0
    return 0 if operand.opcode == "reduce" or operand.opcode == "convert" else -1


def _of_user(user: Instruction) -> int:
    if _is_of_convert_gone(user):
        return _SURE
    if user.opcode == "convert":
        if _may_be_moved_up(user):
            return 0
        narrows = user.shape.element_type == "bf16"
        return _SURE if is_narrowing(user) else -_SURE if narrows else 0
    if user.opcode == "reduce":
        return _LIKELY if is_inserted_convert(user.operands[1]) else -_LIKELY
    if user.opcode in {"exponential", "log", "select"}:
        return -1
    return -_LIKELY if user.opcode == "tuple" else 0


def _is_of_convert_gone(x: Instruction) -> bool:
    """Was it made to reshape what a convert of the program gave, of which nothing but its name is left?"""
    return x.opcode == "bitcast" and operation(x) == "convert_element_type" and _is_wide(x)


def _may_be_moved_up(convert: Instruction) -> bool:
    """May it have been behind the concatenate that reads it, as converts of the other operands?

    ConvertMover (`xla/hlo/transforms/simplifiers/convert_mover.cc`) puts a convert that narrows in front of
    each operand, without a name.
    """
    if not is_narrowing(convert) or len(convert.users) != 1:
        return False
    (user,) = convert.users
    return user.opcode == "concatenate" and all(map(is_narrowing, user.operands))
