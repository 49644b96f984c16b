"""Which opcodes the fast path reads by itself, and how.

An opcode or attribute that is missing here is not wrong, it is the grammar's to judge. So everything
here has to be something the grammar accepts with the same meaning, and need not be all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import OPCODES
from hlofuse.ir.shape import Shape
from hlofuse.ir.text.signatures import VARIADIC, signature

Check = Callable[[Sequence[Instruction], Shape], bool]

AT_LEAST_ONE = -2

# How the loop over instructions treats an opcode.
PLAIN, PARAMETER, CONSTANT, CALLING, OTHER = range(5)

_KINDS = {
    "parameter": PARAMETER,
    "constant": CONSTANT,
    **dict.fromkeys(
        "fusion call while map reduce reduce-window select-and-scatter sort scatter all-reduce"
        " all-reduce-start reduce-scatter custom-call conditional".split(),
        CALLING,
    ),
}
_MAY_LACK_OPERANDS = frozenset("after-all tuple fusion call map custom-call".split())
# What makes other instructions on the way, or is checked for more than operand counts and attributes.
_GRAMMAR_ONLY = frozenset(
    "async-start async-update async-done scan domain ragged-dot scaled-dot"
    " topk infeed outfeed send send-done recv recv-done dynamic-reshape collective-permute-start".split()
)


# Opcodes whose `dimensions` has to name one dimension.
_ONE_DIMENSION = frozenset(
    "all-gather all-gather-start reduce-scatter all-to-all sort concatenate get-dimension-size"
    " set-dimension-size".split()
)


@dataclass(frozen=True, slots=True)
class Form:
    """How an opcode is treated, its operand count (or one of the two above), its attributes.

    `check` is what XLA asks of operands and result besides (`HloParserImpl::CreateInstruction`).
    """

    opcode: str
    kind: int
    operands: int
    required: frozenset[str]
    allowed: frozenset[str]
    check: Check | None
    one_dimension: bool

    @property
    def attributes_key(self) -> tuple[object, ...]:
        """Equal for forms that take the same attributes in the same way."""
        return self.kind == CALLING, self.required, self.allowed, self.one_dimension


def form(opcode: str) -> Form | None:
    """How to read the opcode; None for what is left to the grammar."""
    takes = signature(opcode) if opcode in OPCODES and opcode not in _GRAMMAR_ONLY else None
    if takes is None:
        return None
    operands = 2 if opcode == "dot" else takes.operands
    if operands == VARIADIC and opcode not in _MAY_LACK_OPERANDS:
        operands = AT_LEAST_ONE
    check = _CHECKS.get(opcode)
    kind = _KINDS.get(opcode, OTHER if check else PLAIN)
    required, allowed = takes.required, takes.allowed
    if opcode == "broadcast":
        required = required | {"dimensions"}
    if opcode == "conditional":
        required = required | {"branch_computations"}
    if opcode == "collective-permute":
        allowed = allowed - {"slice_sizes"}
    return Form(opcode, kind, operands, required, allowed, check, opcode in _ONE_DIMENSION)


def _keeps_element_count(operands: Sequence[Instruction], shape: Shape) -> bool:
    before = operands[0].shape
    return shape.is_array and before.is_array and shape.element_count == before.element_count


def _is_even(operands: Sequence[Instruction], shape: Shape) -> bool:
    return len(operands) % 2 == 0


def _indexes_by_scalars(fixed: int, operands: Sequence[Instruction]) -> bool:
    return len(operands) == fixed + len(operands[0].shape.dimensions) and (
        len(operands) != fixed + 1 or not operands[-1].shape.dimensions
    )


def _chooses_by_number(operands: Sequence[Instruction], shape: Shape) -> bool:
    index = operands[0].shape
    return index.element_type == "s32" and not index.dimensions


_CHECKS: dict[str, Check] = {
    "tuple": lambda operands, shape: shape.is_tuple and len(shape.tuple_shapes) == len(operands),
    "reshape": _keeps_element_count,
    "reduce": _is_even,
    "reduce-window": _is_even,
    "scatter": lambda operands, shape: len(operands) % 2 == 1,
    "dynamic-slice": lambda operands, shape: _indexes_by_scalars(1, operands),
    "dynamic-update-slice": lambda operands, shape: len(operands) > 1 and _indexes_by_scalars(2, operands),
    "conditional": _chooses_by_number,
}
