"""Buffers that are the same buffer."""

from __future__ import annotations

from dataclasses import dataclass

ShapeIndex = tuple[int, ...]


def index_text(index: ShapeIndex) -> str:
    """A path into a tuple as XLA prints it (`ShapeIndex::ToString`)."""
    return "{" + ",".join(map(str, index)) + "}"


@dataclass(frozen=True, slots=True)
class InputAlias:
    """A result that shares a parameter's buffer (`HloInputOutputAliasConfig`)."""

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex
    kind: str = "may-alias"

    def __str__(self) -> str:
        where = index_text(self.parameter_index)
        return f"{index_text(self.output_index)}: ({self.parameter_number}, {where}, {self.kind})"


@dataclass(frozen=True, slots=True)
class DonorEntry:
    """A parameter whose buffer may be used for anything (`HloBufferDonorConfig`)."""

    parameter_number: int
    parameter_index: ShapeIndex

    def __str__(self) -> str:
        return f"({self.parameter_number}, {index_text(self.parameter_index)})"


@dataclass(frozen=True, slots=True)
class OutputAlias:
    """A result that shares an operand's buffer (`OutputOperandAliasing`)."""

    output_index: ShapeIndex
    operand_number: int
    operand_index: ShapeIndex

    def __str__(self) -> str:
        return f"{index_text(self.output_index)}: ({self.operand_number}, {index_text(self.operand_index)})"
