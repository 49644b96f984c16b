"""What a dimension of a product's operand is for (`xla/service/matmul_indexing_utils.cc`: DotOperandDims)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.shapes import permute

BATCH, FREE, CONTRACTING = range(3)
CATEGORIES = (BATCH, FREE, CONTRACTING)


@dataclass(frozen=True)
class DotOperand:
    """The sizes of the operand's dimensions, and its batch, non-contracting and contracting dimensions."""

    sizes: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, dot: Instruction, operand: int) -> DotOperand:
        dims = DotDimensions.of(dot)
        sizes = dot.operands[operand].shape.dimensions
        free = dims.free(operand, len(sizes))
        return cls(tuple(sizes), (dims.batch(operand), free, dims.contracting(operand)))

    def group_sizes(self, category: int) -> list[int]:
        return [self.sizes[d] for d in self.groups[category]]

    def total(self, category: int) -> int:
        return math.prod(self.group_sizes(category))

    def categories(self) -> tuple[int, ...]:
        """Of every dimension."""
        found = {d: category for category in CATEGORIES for d in self.groups[category]}
        return tuple(found[d] for d in range(len(self.sizes)))

    def permuted(self, permutation: Sequence[int]) -> DotOperand:
        to = inverse(tuple(permutation))
        groups = tuple(tuple(to[d] for d in group) for group in self.groups)
        return DotOperand(permute(self.sizes, permutation), groups)

    def without_ones(self) -> DotOperand:
        """`RemoveDegenerateDimensions`."""
        return self._without({d for d, size in enumerate(self.sizes) if size == 1})

    def is_consecutive(self, category: int) -> bool:
        group = self.groups[category]
        return list(group) == list(range(group[0], group[0] + len(group))) if group else True

    def collapsed(self, category: int) -> DotOperand:
        """Consecutive dimensions of a category as one (`CollapseCategory`)."""
        group = self.groups[category]
        if not group:
            return self
        sizes = list(self.sizes)
        sizes[group[0]] = self.total(category)
        return DotOperand(tuple(sizes), self.groups)._without(group[1:])

    def consecutive(self, category: int) -> tuple[int, ...]:
        """The permutation that puts a category last, in its own order (`PermuteToConsecutive`)."""
        group = self.groups[category]
        return (*(d for d in range(len(self.sizes)) if d not in group), *group)

    def reshaped(self, target: Sequence[int]) -> DotOperand | None:
        """None where a dimension would have more than one category (`Reshape`)."""
        merged = self.without_ones()._neighbours_merged()
        groups: list[list[int]] = [[], [], []]
        if not merged.sizes:
            groups[FREE] = list(range(len(target)))
            return DotOperand(tuple(target), tuple(map(tuple, groups)))
        starts = []
        at = 0
        for size in merged.sizes:
            starts.append(at)
            covered = 1
            while covered < size and at < len(target):
                covered *= target[at]
                at += 1
            if covered != size:
                return None
        starts.append(len(target))
        for category in CATEGORIES:
            for d in merged.groups[category]:
                groups[category] += range(starts[d], starts[d + 1])
        return DotOperand(tuple(target), tuple(map(tuple, groups)))

    def of_operand(self, instruction: Instruction) -> DotOperand | None:
        """The same of the operand of a transpose or reshape (`MapBackward`)."""
        if instruction.opcode == "transpose":
            return self.permuted(inverse(tuple(instruction.dimensions)))
        return self.reshaped(instruction.operands[0].shape.dimensions)

    def _without(self, removed: Iterable[int]) -> DotOperand:
        dropped = set(removed)
        remaining = [d for d in range(len(self.sizes)) if d not in dropped]
        to = {d: k for k, d in enumerate(remaining)}
        groups = tuple(tuple(to[d] for d in group if d in to) for group in self.groups)
        return DotOperand(tuple(self.sizes[d] for d in remaining), groups)

    def _neighbours_merged(self) -> DotOperand:
        """`MergeAdjacentDimensions`."""
        out = self
        for category in CATEGORIES:
            for k in range(len(out.groups[category]) - 1, 0, -1):
                first, second = out.groups[category][k - 1 : k + 1]
                if first + 1 == second:
                    sizes = list(out.sizes)
                    sizes[first] *= sizes[second]
                    out = DotOperand(tuple(sizes), out.groups)._without([second])
        return out


def dimensions_of(lhs: DotOperand, rhs: DotOperand) -> DotDimensions:
    """`CreateDotDimensionNumbers`."""
    return DotDimensions(
        lhs.groups[BATCH], rhs.groups[BATCH], lhs.groups[CONTRACTING], rhs.groups[CONTRACTING]
    )


def product_sizes(lhs: DotOperand, rhs: DotOperand) -> list[int]:
    """`ComputeOutputShape`."""
    return [*lhs.group_sizes(BATCH), *lhs.group_sizes(FREE), *rhs.group_sizes(FREE)]
