"""Roles of the dimensions of a product's operand, and passes that widen operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Dims, Instruction, Module, Predicate, Record, numbered, replace_instruction, values
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers
from hlofuse.ir.shape import BIT_WIDTH, COMPLEX_TYPES
from hlofuse.passes.base import (
    ExpandPass,
    Explained,
    Pass,
    RewritePass,
    VisitPass,
    accept_order,
    find_each,
    replaced,
    substituted,
)
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.shapes import array, is_identity, labels_of, permute, without
from hlofuse.rules.rewrites import WIDENED
from hlofuse.trace import Recorder


# Products with a vector as ones with a thin matrix (`xla/hlo/transforms/simplifiers/gemv_rewriter.cc`).
class GemvRewriter(VisitPass):
    name = "gemv-rewriter"
    opcodes = ("dot",)
    explained = Explained(WIDENED)
    layout_sensitive: bool = True

    def handle(self, dot: Instruction) -> bool:
        lhs, rhs = dot.operands
        dims = DotDimensions.of(dot)
        of_lhs, of_rhs = (len(dims.free(side, o.rank)) == 1 for side, o in enumerate((lhs, rhs)))
        vector = rhs if of_lhs else lhs
        # The matrix keeps its layout; unless bitcasts are made, it has to be the usual one, too.
        shapes = [i.shape for i in ((vector, dot) if self.layout_sensitive else (lhs, rhs, dot))]
        if of_lhs == of_rhs or any(s != array(s.element_type, s.dimensions) for s in shapes):
            return False
        opcode = "bitcast" if self.layout_sensitive else "reshape"
        wide = array(vector.element_type, (*vector.sizes, 1))
        matrix = make.added(dot, opcode, wide, [vector])
        sizes = list(dot.sizes)
        sizes.insert(len(sizes) if of_lhs else len(sizes) - 1, 1)
        operands = [lhs, matrix] if of_lhs else [matrix, rhs]
        given = {**dims.raw(), **dot.attributes.given("operand_precision", "algorithm")}
        product = make.added(dot, "dot", array(dot.element_type, sizes), operands, raw_attributes=given)
        return replaced(dot, make.added(dot, opcode, dot.shape, [product]))


_UNCONVERTED = values("f8e4m3fn f8e5m2 f8e4m3fnuz f8e5m2fnuz")
_TABLE = """
    f16 16 11 bf16 128 8 f32 128 24 f64 1024 53 f8e8m0fnu 128 1 f8e5m2 16 3 f8e5m2fnuz 16 3 f8e4m3fn 9 4
    f8e4m3 8 4 f8e4m3fnuz 8 4 f8e4m3b11fnuz 5 4 f8e3m4 4 5 f6e3m2fn 5 3 f6e2m3fn 3 4 f4e2m1fn 3 2""".split()
_ROWS = zip(_TABLE[::3], _TABLE[1::3], _TABLE[2::3], strict=True)
_FLOATS = {name: (int(a), int(b)) for name, a, b in _ROWS}
"""Exponent that overflows, and bits of the significand."""


class DotOperandConverter(RewritePass):
    """`operand_converter`, of integers and of floats wider than a byte: products of two element types are of
    the more precise one (`xla/backends/gpu/transforms/dot_operand_converter.cc`)."""

    name = "operand_converter"
    opcodes = ("dot",)

    def handle(self, dot: Instruction) -> bool:
        types = [o.element_type for o in dot.operands[:2]]
        if types[0] == types[1] or _UNCONVERTED.issuperset(types):
            return False
        wider = max(types, key=_precision)
        narrow = 1 if wider == types[0] else 0
        operand = dot.operands[narrow]
        dot.replace_operand(
            narrow, make.derived(dot, "convert", operand.shape.with_element_type(wider), [operand])
        )
        return True


def _precision(element_type: str) -> tuple[bool, int, int, int, bool]:
    """The properties that `HigherPrecisionType` compares."""
    is_complex = element_type in COMPLEX_TYPES
    component = {"c64": "f32", "c128": "f64"}.get(element_type, element_type)
    overflow, significand = _FLOATS.get(component, (-1, -1))
    return is_complex, overflow, significand, BIT_WIDTH[component], component.startswith("s")


class OperandUpcaster(RewritePass):
    """Operands of a wider result are converted to its type (`xla/hlo/transforms/operand_upcaster.cc`)."""

    name = "operand_upcaster"
    opcodes = ("dot", "convolution")
    is_skipped: Predicate = lambda _x: False  # Products that the target multiplies as they are

    def handle(self, x: Instruction) -> bool:
        types, of = [o.element_type for o in x.operands[:2]], x.element_type
        if {of} == {*types} or _wider(*types, of) != of or self.is_skipped(x):
            return False
        for k, operand in enumerate(x.operands[:2]):
            if types[k] != of:
                wide = operand.shape.with_element_type(of)
                x.replace_operand(k, make.derived(x, "convert", wide, [operand]))
        return True


class ResultCaster(OperandUpcaster):
    """A result narrower than its operands is computed in their type (`result_caster.cc`)."""

    name = "result_caster"

    def handle(self, x: Instruction) -> bool:
        of, wider = x.element_type, _wider(*(o.element_type for o in x.operands[:2]))
        if of in (wider, _wider(wider, of)) or self.is_skipped(x):
            return False
        product = make.copy_of(x, x.operands, x.shape.with_element_type(wider))
        return substituted(x, make.added(x, "convert", x.shape, [product]))


def _wider(*types: str) -> str:
    """`HigherPrecisionType`; the last of several that are as precise."""
    return max(reversed(types), key=_precision)


class BatchDotSimplifier(ExpandPass):
    """Products without batch dimensions of size 1 (`batch_dot_simplification.cc`)."""

    name = "batch-dot-simplification"

    def is_wanted(self, x: Instruction) -> object:
        return x.is_dot and _trivial(x)

    def handle(self, dot: Instruction) -> bool:
        trivial, numbers = _trivial(dot), DotDimensions.of(dot)
        operands = [make.reshaped(o, without(o.shape, trivial)) for o in dot.operands]
        batch = range(len(numbers.lhs_batch) - len(trivial))
        contracting = [[numbers.contracting(k)[0] - len(trivial)] for k in (0, 1)]
        new = new_dot(dot, operands, [batch, batch], contracting)
        return replace_instruction(dot, make.reshaped(new, dot.shape))


def _trivial(dot: Instruction) -> list[int]:
    """Batch dimensions of size 1, where all batch dimensions come first and one is summed over."""
    numbers = DotDimensions.of(dot)
    in_order = tuple(range(len(numbers.lhs_batch)))
    if numbers.lhs_batch != in_order or numbers.rhs_batch != in_order or len(numbers.lhs_contracting) != 1:
        return []
    return [d for d in in_order if dot.operand.sizes[d] == 1]


class TransposeFolding(Pass):
    """`transpose-folding`, for a target that multiplies rows with columns either way round: transposes of the
    operands of dots and convolutions become their dimension numbers (`xla/service/transpose_folding.cc`)."""

    name = "transpose-folding"
    can_fold: Callable[[Instruction, int], bool] | None = None
    """True for transposes that the target's products can fold; None: those of the last two dimensions."""
    into_convolutions: bool = False

    def run(self, module: Module, recorder: Recorder) -> bool:
        every = find_each(module, self._foldable, accept_order)
        found = [(x, self._foldable(x)) for x in sorted(every, key=lambda x: x.opcode, reverse=True)]
        for x, sides in found:
            fold = _fold if x.is_dot else _fold_into_convolution
            fold(x, sides)
        return bool(found)

    def _foldable(self, x: Instruction) -> list[int]:
        """The operands of a product whose transposes it can take in."""
        moved = [side for side, o in enumerate(x.operands) if o.is_transpose]
        if x.opcode == "convolution":
            return moved if self.into_convolutions else []
        if not x.is_dot or x.operand_count != 2 or any(o.rank < 2 for o in x.operands):
            return []
        can_fold = self.can_fold or _is_row_column
        return [side for side in moved if not is_identity(x.operands[side].dimensions) and can_fold(x, side)]


def _is_row_column(dot: Instruction, side: int) -> bool:
    """A transpose of the last two dimensions (`IsRowColumnTransposeDotOperand`)."""
    transpose = dot.operands[side]
    batch, contracting = DotDimensions.of(dot).fixed(side)
    return (
        len(batch) == transpose.rank - 2
        and len(contracting) == 1
        and all(transpose.dimensions[d] == d for d in batch)
    )


def _fold(dot: Instruction, sides: list[int]) -> None:
    is_folded = [side in sides for side in (0, 1)]
    pairs = list(zip(dot.operands, is_folded, strict=True))
    orders = (dict(enumerate(o.dimensions if fold else range(o.rank))) for o, fold in pairs)
    operands = [o.operand if fold else o for o, fold in pairs]
    batch, contracting = DotDimensions.of(dot).moved(*orders)
    new = new_dot(dot, operands, batch, contracting)
    new.shape = dot.shape
    replace_instruction(dot, new)


def _fold_into_convolution(convolution: Instruction, sides: list[int]) -> None:
    """`FoldTransposeIntoConvolution`."""
    operands, labels = list(convolution.operands), labels_of(convolution)
    texts = [labels.lhs, labels.rhs]
    for side in sides:
        operand = operands[side]
        operands[side] = operand.operand
        texts[side] = "".join(label for _, label in sorted(zip(operand.dimensions, texts[side], strict=True)))
    moved = ConvolutionDimensionNumbers(texts[0], texts[1], labels.output)
    replace_instruction(convolution, make.copy_of(convolution, operands, dim_labels=moved))


BATCH, FREE, CONTRACTING = range(3)
CATEGORIES = (BATCH, FREE, CONTRACTING)


class DotOperand(Record):
    """The sizes of the operand's dimensions, and its batch, non-contracting and contracting dimensions."""

    sizes: Dims
    groups: tuple[Dims, ...]

    @classmethod
    def of(cls, dot: Instruction, operand: int) -> DotOperand:
        dims = DotDimensions.of(dot)
        sizes = dot.operands[operand].sizes
        free = dims.free(operand, len(sizes))
        return cls(tuple(sizes), (dims.batch(operand), free, dims.contracting(operand)))

    def group_sizes(self, category: int) -> list[int]:
        return [self.sizes[d] for d in self.groups[category]]

    def total(self, category: int) -> int:
        return math.prod(self.group_sizes(category))

    def categories(self) -> Dims:
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

    def consecutive(self, category: int) -> Dims:
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
        if instruction.is_transpose:
            return self.permuted(inverse(tuple(instruction.dimensions)))
        return self.reshaped(instruction.operand.sizes)

    def _without(self, removed: Iterable[int]) -> DotOperand:
        dropped = set(removed)
        remaining = [d for d in range(len(self.sizes)) if d not in dropped]
        to = numbered(remaining)
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
