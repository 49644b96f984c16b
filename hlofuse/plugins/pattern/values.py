"""Values of a graph with its fusions seen through.

XLA has put much of a program into fusions before the fusion passes begin: matrix products for Triton,
softmaxes, what a library takes. A pattern speaks of operations, wherever they are; so a value here is an
instruction together with the fusion one has entered to get there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from hlofuse.ir.graph import Instruction

STEPS = 8
"""How many operations in a row are passed over between two of a pattern."""


class Value(NamedTuple):
    """An instruction, and the fusions it is in, outermost first."""

    instruction: Instruction
    fusions: tuple[Instruction, ...] = ()

    @property
    def outer(self) -> Instruction:
        """What stands for it in the computation itself."""
        return self.fusions[0] if self.fusions else self.instruction

    def operand(self, number: int) -> Value:
        """An operand, the fusion's own where it is a parameter of the fusion."""
        return settled(Value(self.instruction.operands[number], self.fusions))

    @property
    def operands(self) -> list[Value]:
        return [self.operand(k) for k in range(len(self.instruction.operands))]


def settled(value: Value) -> Value:
    """The value itself, not the parameter by which the inside of a fusion reads it."""
    instruction, fusions = value
    while fusions and instruction.opcode == "parameter":
        instruction, fusions = fusions[-1].operands[instruction.parameter_number], fusions[:-1]
    return Value(instruction, fusions)


def entered(value: Value) -> Value | None:
    """The result inside a fusion; None for what is no fusion, or one of several results."""
    instruction, fusions = value
    if instruction.opcode != "fusion" or instruction.is_multi_output_fusion:
        return None
    return settled(Value(instruction.fused_root, (*fusions, instruction)))


def candidates(value: Value, through: Collection[str]) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """The operations that may be meant by a value, with those passed over to get there.

    The value itself first, then the inside of a fusion, then what lies behind operations in `through`.
    """
    passed: tuple[Value, ...] = ()
    for _ in range(STEPS):
        yield value, passed
        inside = entered(value)
        if inside is not None:
            value = inside
        elif value.instruction.opcode in through and len(value.instruction.operands) == 1:
            passed = (*passed, value)
            value = value.operand(0)
        else:
            return


def origin(value: Value, through: Collection[str]) -> Value:
    """What a value is in the end, everything passed over: equal for two views of one value."""
    found = value
    for found, _ in candidates(value, through):  # noqa: B007
        pass
    return found
