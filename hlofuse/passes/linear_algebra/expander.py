"""Operations that become calls of what is written once for each shape (`op_expander_pass.cc`)."""

import re
from collections.abc import Sequence
from typing import ClassVar

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import NotRepresentable, Pass, expand_each, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.builder import Builder, Op
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
