"""Structured sparsity of an operand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorSparsity:
    """Non-zeros in blocks along one dimension (`SparsityConfig.TensorSparsityConfig`)."""

    num_non_zero: int = 0
    block_size: int = 0
    dimension: int = 0
    stride: int = 0

    def __str__(self) -> str:
        ratio = f"{self.num_non_zero}x{self.block_size}"
        return f"{{sparsity={ratio} dimension={self.dimension} stride={self.stride}}}"


@dataclass(frozen=True, slots=True)
class SparsityConfig:
    """Sparsity of both operands (`SparsityConfig`)."""

    lhs: TensorSparsity | None = None
    rhs: TensorSparsity | None = None

    def __str__(self) -> str:
        sides = (("lhs", self.lhs), ("rhs", self.rhs))
        return "{" + " ".join(f"{k}={v}" for k, v in sides if v is not None) + "}"


@dataclass(frozen=True, slots=True)
class SparsityDescriptor:
    """A sparse operand of a dot, `L.1@2:4`, as XLA wrote it until 2025 (`SparsityDescriptor`)."""

    operand: int
    dimension: int
    n: int
    m: int

    def __str__(self) -> str:
        return f"{'LR'[self.operand]}.{self.dimension}@{self.n}:{self.m}"
