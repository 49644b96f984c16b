"""Cholesky factors and triangular systems, block by block
(`xla/hlo/transforms/expanders/cholesky_expander.cc`, `xla/service/triangular_solve_expander.cc`)."""

import math
import re
from collections.abc import Sequence
from typing import ClassVar

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import NotRepresentable, Pass, expand_each, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.builder import Builder, Op, Parts
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


def identity(b: Builder, element_type: str, rows: int, columns: int) -> Op:
    row, column = b.iota("u32", [rows]), b.iota("u32", [columns])
    return row.compare("EQ", column.prepended([rows]), [0]).convert(element_type)


def _compare(x: Op, direction: str, diagonal: int) -> Op:
    *batch, rows, columns = x.sizes
    column, row = x.b.iota("s32", [columns]), x.b.iota("s32", [rows]) + diagonal
    return row.compare(direction, column.prepended([rows]), [0]).prepended(batch)


def triangle_mask(x: Op, diagonal: int) -> Op:
    """True on that diagonal and below it (`TriangleMask`)."""
    return _compare(x, "GE", diagonal)


def diagonal_mask(x: Op) -> Op:
    return _compare(x, "EQ", 0)


def triangle(x: Op, *, lower: bool) -> Op:
    if lower:
        return triangle_mask(x, 0).select(x, x.filled())
    return triangle_mask(x, -1).select(x.filled(), x)


def diagonal(x: Op) -> Op:
    """`GetMatrixDiagonal`"""
    rows, columns = x.sizes[-2:]
    return diagonal_mask(x).select(x, x.filled()).sum([x.rank - (2 if rows >= columns else 1)])


def with_diagonal(x: Op, values: Op) -> Op:
    """`SetMatrixDiagonal` of square matrices."""
    return diagonal_mask(x).select(values.broadcast(x.sizes, range(x.rank - 1)), x)


def symmetrized(x: Op, *, lower: bool) -> Op:
    """`Symmetrize`, of one triangle."""

    def mask(diagonal: int) -> Op:
        return triangle_mask(x, diagonal) if lower else triangle_mask(x, -1 - diagonal).unary("not")

    of = mask(0)
    if not x.is_complex:
        return of.select(x, x.transpose())
    real = of.select(x.unary("real"), x.unary("real").transpose())
    imaginary = mask(-1).select(x.unary("imag"), x.unary("imag").filled())
    return real.complex(of.select(imaginary, -imaginary.transpose()))


_TYPES = frozenset("f16 bf16 f32 f64 c64 c128".split())


class Expander(Pass):
    kinds: ClassVar[tuple[str, ...]]
    """Opcodes and targets of custom calls that are expanded."""
    names: ClassVar = ("a", "b")

    def key(self, x: Instruction, kind: str) -> list[str]:
        """The parts of the computation's name, which decide its content."""
        return [kind, *map(text_of, x.operands)]

    def root(self, x: Instruction, operands: list[Op]) -> Op:
        """The result; NotRepresentable for what XLA refuses."""
        raise NotImplementedError

    def run(self, module: Module, recorder: Recorder) -> bool:
        written: dict[str, Computation] = {}

        def expand(x: Instruction) -> None:
            if not 0 < len(x.operands) <= len(self.names):
                raise NotRepresentable("a call of other operands")
            of = x.operands[0].shape
            if of.element_type not in _TYPES or of.rank < 2:
                raise NotRepresentable("matrices of this type")
            name = "_".join(self.key(x, _kind(x)))
            if name not in written:
                b = Builder(module, re.sub(r"[^\w.-]", "_", f"xla.{name}"))
                operands = [b.parameter(k, o.shape, self.names[k]) for k, o in enumerate(x.operands)]
                written[name] = b.build(self.root(x, operands))
            called = [("to_apply", written[name])]
            substituted(x, make.added(x, "call", x.shape, x.operands, called=called))

        computations = module.non_fusion_computations()
        found = [i for c in computations for i in c.post_order() if _kind(i) in self.kinds]
        return expand_each(found, expand, recorder)


def _kind(x: Instruction) -> str:
    return custom_call_target(x) or x.opcode.replace("-", "_")


def text_of(x: Instruction) -> str:
    """The shape of `x` without a layout."""
    return f"{x.shape.element_type}[{','.join(map(str, x.shape.dimensions))}]"


def require(x: Instruction, *results: tuple[str, Sequence[int]]) -> None:
    """NotRepresentable unless the results of a call have these types and sizes."""
    shapes = [(s.element_type, s.dimensions) for s in x.shape.tuple_shapes or (x.shape,)]
    if shapes != [(of, tuple(sizes)) for of, sizes in results]:
        raise NotRepresentable("a call with results of other shapes")


def chosen(x: Instruction, attribute: str, yes: str, no: str) -> str:
    return yes if x.attributes.raw(attribute) == "true" else no


_BLOCK = 128
_Range = tuple[int, int]


class CholeskyExpander(Expander):
    name = "cholesky_expander"
    kinds = ("cholesky",)

    def key(self, x: Instruction, kind: str) -> list[str]:
        return [*super().key(x, kind), chosen(x, "lower", "lower", "upper")]

    def root(self, x: Instruction, operands: list[Op]) -> Op:
        (a,), is_lower = operands, x.attributes.raw("lower") == "true"
        return _cholesky(a) if is_lower else _cholesky(a.transpose()).transpose()


def _cholesky(a: Op) -> Op:
    """`BuildCholesky`; not a number where any matrix of a batch has no factor."""
    n = a.sizes[-1]
    factor, failed = a.filled(), a.b.full("pred", (*a.sizes[:-2], 1, 1))
    for i in range(0, n, _BLOCK):
        k = min(_BLOCK, n - i)
        panel = a.slice([i, i], [n, i + k])
        if i:
            left, right = factor.slice([i, 0], [n, i]), factor.slice([i, 0], [i + k, i])
            panel -= left.dot(right.conjugate(), transpose_other=True)
        corner = panel.slice([0, 0], [k, k])
        part, part_failed = _root(corner) if k == 1 else _factor_unblocked(corner)
        failed |= part_failed
        factor = factor.updated(part, [i, i])
        if i + k < n:
            below = panel.slice([k, 0], [n - i, k])
            options = {"lower": "true", "transpose_a": "ADJOINT"}
            below = a.b.op("triangular-solve", below.x.shape, [part, below], raw=options)
            factor = factor.updated(below, [i + k, i])
    failed = failed.broadcast(a.sizes, range(a.rank))
    return failed.select(factor.filled(complex(math.nan, 0) if a.is_complex else math.nan), factor)


def _root(x: Op) -> tuple[Op, Op]:
    """The square root of real numbers, and where there is none."""
    root = (x.unary("real") if x.is_complex else x).unary("sqrt")
    return root.complex(root.filled()) if x.is_complex else root, root.compare("NE", root)


def _factor_unblocked(a: Op) -> tuple[Op, Op]:
    """`CholeskyUnblocked`, a column in each iteration."""

    def column(i: Op, values: Parts) -> Parts:
        a, factor, failed = values
        rows, columns = (i.b.iota("s32", a.sizes, a.rank - d) for d in (2, 1))
        mask = rows.compare("GE", columns) & columns.compare("EQ", i)
        rest = a - factor.dot(factor.conjugate(), transpose_other=True)
        pivot, pivot_failed = _root(rest.dynamic_slice(rest.minor_starts([i, i]), (*a.sizes[:-2], 1, 1)))
        factor = mask.select(rest / pivot, a.filled()) + factor
        return [a, factor, failed | pivot_failed]

    init = [a, a.filled(), a.b.full("pred", (*a.sizes[:-2], 1, 1))]
    _, factor, failed = a.b.for_each(a.sizes[-1], init, column, "unblocked")
    return factor, failed


class TriangularSolveExpander(Expander):
    name = "triangular_solve_expander"
    kinds = ("triangular_solve",)

    def key(self, x: Instruction, kind: str) -> list[str]:
        sides = chosen(x, "left_side", "left", "right"), chosen(x, "lower", "lower", "upper")
        unit = chosen(x, "unit_diagonal", "unit", "nonunit")
        return [*super().key(x, kind), *sides, x.attributes.raw("transpose_a") or "", unit]

    def root(self, x: Instruction, operands: list[Op]) -> Op:
        solve = _Solve(x)
        (a, b), n = operands, operands[0].sizes[-1]
        if not math.prod(b.sizes):
            return b
        if n == 1:
            return b if solve.is_unit else b / a.conjugate(always=solve.is_conjugate)
        if math.prod(a.sizes[:-2]) > _BLOCK // 16 and n < _BLOCK // 4:
            return solve.directly(a, b)
        return solve.by_blocks(a, b)


class _Solve:
    def __init__(self, x: Instruction) -> None:
        self.on_left, self.is_lower, self.is_unit = (
            x.attributes.raw(name) == "true" for name in ("left_side", "lower", "unit_diagonal")
        )
        kind = x.attributes.raw("transpose_a")
        self.is_transposed, self.is_conjugate = kind != "NO_TRANSPOSE", kind == "ADJOINT"

    def _dot(self, matrix: Op, x: Op) -> Op:
        """The product on the side that the matrix is on."""
        if self.on_left:
            return matrix.dot(x, transpose=self.is_transposed)
        return x.dot(matrix, transpose_other=self.is_transposed)

    def _rows_of(self, b: Op, rows: _Range) -> Op:
        """Rows of what is solved for, columns if the matrix is on the right."""
        return _part(b, rows, (0, b.sizes[-1 if self.on_left else -2]), swapped=not self.on_left)

    def _part_of(self, a: Op, rows: _Range, columns: _Range) -> Op:
        return _part(a, rows, columns, swapped=(not self.on_left) ^ self.is_transposed)

    def directly(self, a: Op, b: Op) -> Op:
        """`SolveDirectly`, row by row."""
        n = a.sizes[-1]
        a = a.conjugate(always=self.is_conjugate)
        is_forward = self.is_transposed ^ self.is_lower ^ (not self.on_left)
        for j in range(n) if is_forward else reversed(range(n)):
            own, solved = (j, j + 1), (0, j) if is_forward else (j + 1, n)
            row = self._rows_of(b, own)
            row -= self._dot(self._part_of(a, own, solved), self._rows_of(b, solved))
            if not self.is_unit:
                row /= _part(a, own, own)
            b = b.updated(row, [j, 0] if self.on_left else [0, j])
        return b

    def by_blocks(self, a: Op, b: Op) -> Op:
        """`SolveByInvertingDiagonalBlocks`"""
        n, size = a.sizes[-1], min(_BLOCK, a.sizes[-1])
        if self.is_unit:
            mask, zeros = triangle_mask(a, -1 if self.is_lower else 0), a.filled()
            a = mask.select(a, zeros) if self.is_lower else mask.select(zeros, a)
            a = a.binary("add", identity(a.b, a.type, n, n), [a.rank - 2, a.rank - 1])
        else:
            a = triangle(a, lower=self.is_lower)
        inverted = self._invert(_diagonal_blocks(a, size))
        return self._solve(a, b, inverted, size)

    def _invert(self, blocks: Op) -> Op:
        """`InvertDiagonalBlocks`, a row of all of them in each iteration."""
        sizes, n = blocks.sizes, blocks.sizes[-1]
        count = math.prod(sizes) // n**2
        blocks = triangle(blocks.reshape([count, n, n]), lower=self.is_lower)
        b, diagonals = blocks.b, diagonal(blocks)
        scaled = blocks.binary("divide", diagonals, [0, 2])
        one = b.constant(blocks.type, 1).reshape([1, 1])
        start = b.constant("s32", 0 if self.is_lower else n - 1)
        first = (-identity(b, blocks.type, n, n)).dynamically_updated(one, [start, start])
        batch_dot = {**DotDimensions((0,), (0,), (2,), (1,)).raw(), "operand_precision": "{highest,highest}"}

        def row(values: Parts) -> Parts:
            i, out, given = values
            zero, j = i.b.constant("s32", 0), i if self.is_lower else i.scalar(n - 1) - i
            sliced = given.dynamic_slice([zero, j, zero], [count, 1, n])
            update = -i.b.op("dot", array(out.type, [count, 1, n]), [sliced, out], raw=batch_dot)
            return [i + 1, out.dynamically_updated(update, [zero, j, zero]), given]

        names = "InvertDiagCond", "InvertDiagBody", "InvertDiagCondTuple", "InvertDiagBodyTuple"
        init = [b.constant("s32", 1), first.prepended([count]), scaled]
        inverted = b.loop(init, lambda v: v[0].compare("LT", n), row, names)[1]
        return inverted.binary("divide", diagonals, [0, 1]).reshape(sizes)

    def _solve(
        self,
        a: Op,
        b: Op,
        inverted: Op,
        size: int,
    ) -> Op:
        """`SolveWithInvertedDiagonalBlocks`"""
        n, count = a.sizes[-1], -(-a.sizes[-1] // size)
        is_backward = self.on_left ^ self.is_lower ^ self.is_transposed
        x: Op | None = None
        for i in range(count):
            j = count - 1 - i if is_backward else i
            own = (j * size, min((j + 1) * size, n))
            block = own[1] - own[0]
            inverse = inverted.slice([j, 0, 0], [j + 1, block, block])
            inverse = inverse.reshape((*a.sizes[:-2], block, block)).conjugate(always=self.is_conjugate)
            rest = self._rows_of(b, own)
            if x is None:
                x = self._dot(inverse, rest)
                continue
            solved = ((count - i) * size, n) if is_backward else (0, min(i * size, n))
            rest -= self._dot(self._part_of(a, own, solved).conjugate(always=self.is_conjugate), x)
            parts = [x, self._dot(inverse, rest)]
            first, second = reversed(parts) if is_backward else parts
            x = first.concatenated([second], b.rank - (2 if self.on_left else 1))
        assert x is not None
        return x


def _part(x: Op, rows: _Range, columns: _Range, *, swapped: bool = False) -> Op:
    first, second = (columns, rows) if swapped else (rows, columns)
    return x.slice([first[0], second[0]], [first[1], second[1]])


def _diagonal_blocks(a: Op, size: int) -> Op:
    """`DiagonalBlocks`; the last one is filled up with the identity."""
    b, rank, (*batch, n, _) = a.b, a.rank, a.sizes
    if n == size:
        return a.prepended([1]).transpose([*range(1, rank - 1), 0, rank - 1, rank])
    starts = (b.iota("s32", [n // size]) * b.constant("s32", size)).prepended([2]).transpose([1, 0])
    sizes = (*batch, size, size)
    blocks = b.op(
        "gather",
        array(a.type, (*batch, n // size, size, size)),
        [a, starts],
        offset_dims=[*range(rank - 2), rank - 1, rank],
        collapsed_slice_dims=(),
        start_index_map=[rank - 2, rank - 1],
        index_vector_dim=1,
        slice_sizes=sizes,
    )
    left = n % size
    if not left:
        return blocks
    last = a.slice([n - left, n - left], [n, n]).pad({}, {rank - 2: size - left})
    eye = identity(b, a.type, size - left, size - left).pad({0: left}, {}).prepended(batch)
    last = last.concatenated([eye], rank - 1).reshape((*batch, 1, size, size))
    return blocks.concatenated([last], rank - 2)
