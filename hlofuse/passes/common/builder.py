"""Computations written operation by operation (`xla/hlo/builder/xla_builder.cc`, `lib/loops.cc`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import COMPLEX_TYPES, Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.literals import Value
from hlofuse.passes.common.shapes import array, permuted, without

COMPONENT = {"c64": "f32", "c128": "f64"}
Parts = list["Op"]


class Builder:
    """Writes a computation that has a parameter; what it calls is built before (`XlaBuilder`)."""

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.computation = module, Computation(name)

    @property
    def at(self) -> Instruction:
        return self.computation.parameters[0]

    def parameter(self, number: int, shape: Shape, name: str) -> Op:
        x = Instruction(name, shape, "parameter", payload=str(number))
        self.computation.append_parsed(x)
        return Op(self, x)

    def op(
        self,
        opcode: str,
        shape: Shape,
        operands: Sequence[Op] = (),
        called: Sequence[tuple[str, Computation]] = (),
        raw: Mapping[str, str] | None = None,
        **attributes: int | Sequence[int],
    ) -> Op:
        inputs = [o.x for o in operands]
        texts = {k: str(v) if isinstance(v, int) else make.numbers(v) for k, v in attributes.items()}
        raw = {**(raw or {}), **texts}
        return Op(self, make.add(self.at, opcode, shape, inputs, called=called, copied_attributes=raw))

    def constant(self, element_type: str, value: Value) -> Op:
        return Op(self, make.scalar(self.at, element_type, value))

    def full(self, element_type: str, sizes: Sequence[int], value: Value = 0) -> Op:
        return self.constant(element_type, value).prepended(sizes)

    def iota(self, element_type: str, sizes: Sequence[int], dimension: int = 0) -> Op:
        return self.op("iota", array(element_type, sizes), iota_dimension=dimension)

    def tuple_of(self, parts: Sequence[Op]) -> Op:
        return self.op("tuple", Shape.tuple_of([p.x.shape for p in parts]), parts)

    def build(self, root: Op) -> Computation:
        """The computation, in the post-order of XLA's copy (`XlaComputationToHloComputation`)."""
        computation = self.computation
        computation.root = root.x
        computation.reorder(computation.post_order())
        for i in computation:
            i.users.sort(key=lambda user: user.id)
        return self.module.add_computation(computation)

    def loop(
        self,
        init: Parts,
        condition: Callable[[Parts], Op],
        body: Callable[[Parts], Parts],
        names: Sequence[str],
    ) -> Parts:
        """`WhileLoopHelper`; `names` are those of the condition, the body and their parameters."""
        start = self.tuple_of(init)
        inner = [Builder(self.module, name) for name in names[:2]]
        values = [
            b.parameter(0, start.x.shape, name).parts() for b, name in zip(inner, names[2:], strict=True)
        ]
        called = [("condition", inner[0].build(condition(values[0])))]
        called.insert(0, ("body", inner[1].build(inner[1].tuple_of(body(values[1])))))
        return self.op("while", start.x.shape, [start], called, {"condition": "", "body": ""}).parts()

    def for_each(self, count: int, init: Parts, body: Callable[[Op, Parts], Parts], name: str) -> Parts:
        """`ForEachIndex`"""
        start, names = (
            self.constant("s32", 0),
            (f"{name}_condition", f"{name}_body", "parameter", "parameter"),
        )
        return self.loop(
            [start, *init],
            lambda values: values[0].compare("LT", count),
            lambda values: [values[0] + 1, *body(values[0], values[1:])],
            names,
        )[1:]


def _operator(opcode: str) -> Callable[[Op, Op | Value], Op]:
    return lambda x, other: x.binary(opcode, other)


class InsertingBuilder(Builder):
    """Writes into the computation of an instruction, with the metadata of that one."""

    def __init__(self, x: Instruction) -> None:
        self.computation = computation_of(x)
        self.module, self._x = module_of(self.computation), x

    @property
    def at(self) -> Instruction:
        return self._x


class Op:
    """A value (`XlaOp`). Numbers and scalars with arrays are broadcast; sizes of 1 are stretched."""

    def __init__(self, b: Builder, x: Instruction) -> None:
        self.b, self.x = b, x
        self.sizes, self.type = x.shape.dimensions, x.shape.element_type
        self.rank, self.is_complex = len(self.sizes), self.type in COMPLEX_TYPES

    # Elementwise operations.

    def unary(self, opcode: str) -> Op:
        of = COMPONENT.get(self.type, self.type) if opcode in ("abs", "imag", "real") else self.type
        return self.as_if(opcode, of)

    def as_if(self, opcode: str, element_type: str) -> Op:
        """The elements in another type."""
        return self.b.op(opcode, self.x.shape.with_element_type(element_type), [self])

    def binary(
        self,
        opcode: str,
        other: Op | Value,
        dimensions: Sequence[int] = (),
        element_type: str | None = None,
        raw: Mapping[str, str] | None = None,
    ) -> Op:
        """`dimensions` are those of the larger operand that the smaller one has."""
        other = self.scalar(other)
        smaller, larger = sorted((self, other), key=lambda o: o.rank)
        dimensions = dimensions if smaller.rank < larger.rank else range(smaller.rank)
        sizes = list(larger.sizes)
        for d, size in zip(dimensions, smaller.sizes, strict=False):
            sizes[d] = size if sizes[d] == 1 else sizes[d]
        operands = [o.stretched(sizes, dimensions) for o in (self, other)]
        shape = self.x.shape if self.sizes == other.sizes else array(self.type, sizes)
        return self.b.op(opcode, shape.with_element_type(element_type or self.type), operands, raw=raw)

    __add__, __sub__, __mul__ = _operator("add"), _operator("subtract"), _operator("multiply")
    __truediv__, __and__, __or__ = _operator("divide"), _operator("and"), _operator("or")
    __xor__, __lshift__ = _operator("xor"), _operator("shift-left")
    __rshift__ = _operator("shift-right-logical")

    def __neg__(self) -> Op:
        return self.unary("negate")

    def compare(self, direction: str, other: Op | Value, dimensions: Sequence[int] = ()) -> Op:
        return self.binary("compare", other, dimensions, "pred", {"direction": direction})

    def select(self, yes: Op, no: Op) -> Op:
        sizes = max((self, yes, no), key=lambda o: o.rank).sizes
        operands = [o.stretched(sizes, range(o.rank)) for o in (self, yes, no)]
        return self.b.op("select", array(yes.type, sizes), operands)

    def convert(self, element_type: str) -> Op:
        source = self.unary("real") if self.is_complex and element_type not in COMPLEX_TYPES else self
        return source.as_if("convert", element_type)

    def complex(self, imaginary: Op) -> Op:
        return self.binary("complex", imaginary, element_type="c64" if self.type == "f32" else "c128")

    def conjugate(self, *, always: bool = True) -> Op:
        """`MaybeConjugate`"""
        if not self.is_complex or not always:
            return self
        return self.unary("real").complex(-self.unary("imag"))

    def scalar(self, value: Op | Value) -> Op:
        """`ScalarLike`"""
        return value if isinstance(value, Op) else self.b.constant(self.type, value)

    def filled(self, value: Value = 0) -> Op:
        """`FullLike`, `ZerosLike`"""
        return self.b.full(self.type, self.sizes, value)

    # Operations on dimensions.

    def broadcast(self, sizes: Sequence[int], dimensions: Sequence[int]) -> Op:
        """`BroadcastInDim`"""
        given = list(sizes)
        for d, size in zip(dimensions, self.sizes, strict=True):
            given[d] = size
        wide = self.b.op("broadcast", array(self.type, given), [self], dimensions=dimensions)
        return wide.stretched(sizes, ())

    def stretched(self, sizes: Sequence[int], dimensions: Sequence[int]) -> Op:
        """`BroadcastToTargetRank`, `AddBroadcastSequence`"""
        if 0 < self.rank < len(sizes):
            return self.broadcast(sizes, dimensions)
        if self.sizes == tuple(sizes):
            return self
        same = [d for d, size in enumerate(self.sizes) if size == sizes[d]]
        narrow = self.reshape([sizes[d] for d in same]) if self.sizes else self
        return self.b.op("broadcast", array(self.type, sizes), [narrow], dimensions=same)

    def prepended(self, sizes: Sequence[int]) -> Op:
        """`Broadcast`"""
        return self.broadcast((*sizes, *self.sizes), range(len(sizes), len(sizes) + self.rank))

    def reshape(self, sizes: Sequence[int]) -> Op:
        return self.b.op("reshape", array(self.type, sizes), [self])

    def transpose(self, permutation: Sequence[int] | None = None) -> Op:
        """The transpose, by default of the last two dimensions."""
        order = permutation or (*range(self.rank - 2), self.rank - 1, self.rank - 2)
        return self.b.op("transpose", permuted(self.x.shape, order), [self], dimensions=order)

    def slice(self, starts: Sequence[int], limits: Sequence[int]) -> Op:
        """`SliceInMinorDims`"""
        major = self.sizes[: self.rank - len(starts)]
        return Op(self.b, make.slice_of(self.x, self.x, [*(0 for _ in major), *starts], [*major, *limits]))

    def updated(self, update: Op, starts: Sequence[int]) -> Op:
        """`UpdateSliceInMinorDims`"""
        whole = [*(0 for _ in range(self.rank - len(starts))), *starts]
        return self.dynamically_updated(update, [self.b.constant("s32", start) for start in whole])

    def dynamic_slice(self, starts: Parts, sizes: Sequence[int]) -> Op:
        operands = [self, *starts]
        return self.b.op("dynamic-slice", array(self.type, sizes), operands, dynamic_slice_sizes=sizes)

    def dynamically_updated(self, update: Op, starts: Parts) -> Op:
        return self.b.op("dynamic-update-slice", self.x.shape, [self, update, *starts])

    def minor_starts(self, starts: Parts) -> Parts:
        """Zeros for the other dimensions before them (`PrependZerosInMajorDims`)."""
        return [self.b.constant("s32", 0)] * (self.rank - len(starts)) + starts

    def pad(self, low: Mapping[int, int], high: Mapping[int, int], value: Op | None = None) -> Op:
        """Zeros before and after, by dimension."""
        rows = [(low.get(d, 0), high.get(d, 0)) for d in range(self.rank)]
        shape = array(self.type, [size + sum(row) for size, row in zip(self.sizes, rows, strict=True)])
        raw, value = {"padding": "x".join(f"{a}_{b}" for a, b in rows)}, value or self.scalar(0)
        return self.b.op("pad", shape, [self, value], raw=raw)

    def concatenated(self, others: Parts, dimension: int) -> Op:
        """`ConcatInDim`"""
        return Op(self.b, make.concatenate(self.x, [self.x, *(o.x for o in others)], dimension))

    def parts(self) -> Parts:
        return [Op(self.b, i) for i in make.elements(self.x, range(len(self.x.shape.tuple_shapes)))]

    def sum(
        self, dimensions: Sequence[int], start: Op | None = None, function: Computation | None = None
    ) -> Op:
        """Sum of numbers, disjunction of truth values."""
        opcode, name = ("or", "or") if self.type == "pred" else ("add", f"add_{self.type.upper()}")
        function = function or make.scalar_computation(self.b.module, name, opcode, self.type)
        operands, shape = [self, start or self.scalar(0)], without(self.x.shape, dimensions)
        return self.b.op("reduce", shape, operands, [("to_apply", function)], dimensions=dimensions)

    def dot(self, other: Op, *, transpose: bool = False, transpose_other: bool = False) -> Op:
        """`BatchDot` of the highest precision."""
        batch, rank = tuple(range(self.rank - 2)), self.rank
        summed = rank - 2 if transpose else rank - 1, rank - 1 if transpose_other else rank - 2
        raw = DotDimensions(batch, batch, summed[:1], summed[1:]).raw()
        raw |= {"operand_precision": "{highest,highest}"}
        raw |= {"frontend_attributes": '{grad_x="false",grad_y="false"}'}
        rows, columns = (o.sizes[2 * rank - 3 - d] for o, d in zip((self, other), summed, strict=True))
        shape = array(self.type, (*self.sizes[:-2], rows, columns))
        return self.b.op("dot", shape, [self, other], raw=raw).transpose(range(rank))
