"""Masks, diagonals and triangles (`xla/hlo/builder/lib/matrix.cc`)."""

from hlofuse.passes.common.builder import Builder, Op


def identity(b: Builder, element_type: str, rows: int, columns: int) -> Op:
    row, column = b.iota("u32", [rows]), b.iota("u32", [columns])
    return row.compare("EQ", column.prepended([rows]), [0]).convert(element_type)


def _compared(x: Op, direction: str, diagonal: int) -> Op:
    *batch, rows, columns = x.sizes
    column, row = x.b.iota("s32", [columns]), x.b.iota("s32", [rows]) + diagonal
    return row.compare(direction, column.prepended([rows]), [0]).prepended(batch)


def triangle_mask(x: Op, diagonal: int) -> Op:
    """True on that diagonal and below it (`TriangleMask`)."""
    return _compared(x, "GE", diagonal)


def diagonal_mask(x: Op) -> Op:
    return _compared(x, "EQ", 0)


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
