"""Kinds of operations in the tiled model, shared by equal operations. A kind has, for each operand, the map
from a result index to the operand's indices (`ComputeOutputToInputIndexing` in
`xla/hlo/analysis/indexing_analysis.cc`)."""

import re
from functools import cache
from math import prod
from typing import cast

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.op_costs import DEFAULT_FLOPS, op_profile, straddles_warps
from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import values, with_trait
from hlofuse.ir.shape import Dims, Ints, Shape
from hlofuse.releases import Release
from .expressions import ZERO, Expr, add, constant, floordiv, mod, mul, negate, substitute, subtract, variable
from .indexing_map import IndexingMap, identity, make_map, map_from_sizes, simplify_keeping_points
from .triton_support import DotDimensions, dot_dimensions

_LEAVES = values("parameter constant iota")
_SLICE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")


def indexing_key(instruction: Instruction) -> tuple[object, ...]:
    """The attributes that the maps of an operation depend on, in addition to shapes."""
    opcode = instruction.opcode
    if opcode in ("broadcast", "reduce", "transpose", "concatenate", "reverse"):
        return instruction.dimensions
    if opcode == "slice":
        return (instruction.raw("slice"),)
    if opcode == "dot":
        return dot_dimensions(instruction)
    return ()


def operand_maps(instruction: Instruction) -> tuple[IndexingMap | None, ...]:
    """One map for each operand, None where XLA has no map; empty without operands."""
    shape = instruction.shape
    operands = tuple(o.shape for o in instruction.operands)
    return _maps(instruction.opcode, shape, operands, indexing_key(instruction))


@cache
def _maps(
    opcode: str, shape: Shape, operands: tuple[Shape, ...], key: tuple[object, ...]
) -> tuple[IndexingMap | None, ...]:
    if opcode in _LEAVES:
        return ()
    dims = shape.dimensions
    if opcode in ELEMENTWISE_OPCODES or opcode in ("map", "all-reduce", "get-tuple-element"):
        # The predicate of a select may be a scalar.
        return tuple(
            identity(dims) if o.dimensions or not dims else map_from_sizes([], dims) for o in operands
        )
    if opcode == "bitcast":
        return (bitcast_map(operands[0], shape),)
    if opcode == "reshape":
        return (simplify_keeping_points(map_from_sizes(_reshape(operands[0].dimensions, dims), dims)),)
    numbers = [k for k in key if isinstance(k, int)]
    if opcode == "broadcast":
        return (map_from_sizes([variable(d) for d in numbers], dims),)
    if opcode == "transpose":
        results = [variable(numbers.index(d)) for d in range(len(numbers))]
        return (map_from_sizes(results, dims),)
    if opcode == "reverse":
        flip = [add(negate(variable(d)), n - 1) if d in numbers else variable(d) for d, n in enumerate(dims)]
        return (map_from_sizes(flip, dims),)
    if opcode == "slice":
        windows = _SLICE.findall(str(key[0]))
        starts = [add(mul(variable(d), int(s or 1)), int(a)) for d, (a, _, s) in enumerate(windows)]
        return (map_from_sizes(starts, dims),)
    if opcode == "reduce":
        return _reduce(shape, operands, set(numbers))
    if opcode == "concatenate":
        return _concatenate(shape, operands, numbers[0])
    if opcode == "dot":
        return _dot(dims, operands[0].dimensions, operands[1].dimensions, cast("DotDimensions", key))
    return (None,) * len(operands)


def _reduce(shape: Shape, operands: tuple[Shape, ...], reduced: set[int]) -> tuple[IndexingMap | None, ...]:
    dims = shape.tuple_shapes[0].dimensions if shape.is_tuple else shape.dimensions
    results = []
    sizes = list[int]()
    next_dimension = 0
    for d, size in enumerate(operands[0].dimensions):
        if d in reduced:
            results.append(variable(len(dims) + len(sizes)))
            sizes.append(size)
        else:
            results.append(variable(next_dimension))
            next_dimension += 1
    inputs = len(operands) // 2
    return (map_from_sizes(results, dims, sizes),) * inputs + (map_from_sizes([], dims),) * inputs


def _concatenate(shape: Shape, operands: tuple[Shape, ...], along: int) -> tuple[IndexingMap | None, ...]:
    maps, offset = [], 0
    for operand in operands:
        size = operand.dimensions[along]
        results = [variable(d) for d in range(shape.rank)]
        results[along] = subtract(results[along], constant(offset))
        bounds = [(0, n - 1) for n in shape.dimensions]
        bounds[along] = (offset, offset + size - 1)
        maps.append(make_map(results, bounds))
        offset += size
    return tuple(maps)


def _dot(dims: Dims, lhs: Dims, rhs: Dims, key: DotDimensions) -> tuple[IndexingMap | None, ...]:
    lhs_batch, rhs_batch, lhs_sum, rhs_sum = key
    number = len(lhs_batch)
    results = list[list[Expr]]()
    for shape, batch, contracted in ((lhs, lhs_batch, lhs_sum), (rhs, rhs_batch, rhs_sum)):
        exprs = []
        for d in range(len(shape)):
            if d in batch:
                exprs.append(variable(batch.index(d)))
            elif d in contracted:
                exprs.append(variable(len(dims) + contracted.index(d)))
            else:
                exprs.append(variable(number))
                number += 1
        results.append(exprs)
    sizes = [lhs[d] for d in lhs_sum]
    return tuple(map_from_sizes(r, dims, sizes) for r in results)


@cache
def bitcast_map(source: Shape, result: Shape) -> IndexingMap | None:
    """Result index to source index of a bitcast; None where XLA has none (`GetBitcastMap`)."""
    if source.element_count != result.element_count:
        return None
    permutation = _bitcast_permutation(result, source) if result.rank else None
    if permutation is not None:
        results = [variable(i) for i in permutation]
    elif reshape_is_bitcast(result, source, ignore_element_type=True):
        results = _reshape(source.dimensions, result.dimensions)
    else:
        # A transpose to memory order, a reshape there, a transpose to the source's order.
        to_memory = result.minor_to_major[::-1]
        physical_result = tuple(result.dimensions[d] for d in to_memory)
        from_memory = source.minor_to_major[::-1]
        physical_source = tuple(source.dimensions[d] for d in from_memory)
        physical = _reshape(physical_source, physical_result)
        logical = [variable(d) for d in to_memory]
        results = [ZERO] * source.rank
        for position, d in enumerate(from_memory):
            results[d] = substitute(physical[position], logical)
    return simplify_keeping_points(map_from_sizes(results, result.dimensions))


def _bitcast_permutation(a: Shape, b: Shape) -> list[int] | None:
    """Dimensions of a bitcast that is a transpose (`DeduceTransposeDimensionsForBitcast`)."""
    if a.rank != b.rank:
        return None
    permutation = [0] * b.rank
    for d_a, d_b in zip(a.minor_to_major, b.minor_to_major, strict=True):
        permutation[d_b] = d_a
    same = all(b.dimensions[d] == a.dimensions[p] for d, p in enumerate(permutation))
    return permutation if same else None


def _strides(dims: Ints) -> list[int]:
    return [prod(dims[d + 1 :]) for d in range(len(dims))]


def _reshape(source: Ints, result: Ints) -> list[Expr]:
    """An expression for each source dimension; neighbouring groups of equal size stay separate."""
    if prod(source) == 0:
        return [ZERO] * len(source)
    exprs = list[Expr]()
    i = j = 0
    while i < len(source) or j < len(result):
        first_i, first_j = i, j
        in_count = out_count = 1
        while True:
            if i < len(source) and (i == first_i or in_count < out_count):
                in_count *= source[i]
                i += 1
            elif j < len(result) and (j == first_j or out_count < in_count):
                out_count *= result[j]
                j += 1
            else:
                break
        exprs += _minimal_reshape(
            source[first_i:i], result[first_j:j], [variable(k) for k in range(first_j, j)]
        )
    return exprs


def _minimal_reshape(source: Ints, result: Ints, index: list[Expr]) -> list[Expr]:
    """An indivisible group: kept, expanded, collapsed, or both through a linear index."""
    if len(source) == 1 and len(result) == 1:
        return index
    if len(result) == 1:
        return _delinearize(source, index[0])
    linear = ZERO
    for expr, step in zip(index, _strides(result), strict=True):
        linear = add(linear, mul(expr, step))
    return [linear] if len(source) == 1 else _delinearize(source, linear)


def _delinearize(dims: Ints, linear: Expr) -> list[Expr]:
    rest, result = linear, []
    for step in _strides(dims):
        result.append(floordiv(rest, step))
        rest = mod(rest, step)
    return result


_FREE = with_trait("moves-index")  # Operations that only move an index (`FlopsPerElement`)


class OpKind:
    """One operation up to names and values, or an array read from memory."""

    def __init__(self, number: int, opcode: str, shape: Shape) -> None:
        self.number = number  # A unique number, for keys of structures
        self.opcode = opcode
        self.shape = shape
        self.dims = shape.dimensions
        self.minor_to_major = shape.minor_to_major
        self.element_bytes = (shape.bit_width + 7) // 8
        self.byte_size = shape.leaves_size
        self.maps: tuple[IndexingMap | None, ...] = ()
        """For each operand, the map from an index of the result."""
        self.operand_dims: tuple[Dims, ...] = ()
        self.instruction_key: tuple[object, ...] = ()
        self.flops = 0  # Per element of a tile


class OpKinds:
    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self._profile = op_profile(device, release)
        self._pads_reductions = release.reductions_padded_to_power_of_two
        self._inside = dict[Instruction, OpKind]()
        self._of_operand = dict[tuple[Shape, str], OpKind]()
        self._by_content = dict[object, OpKind]()
        self._count = 0

    def forget(self) -> None:
        """Drop the instructions of a finished module; kinds stay."""
        self._inside.clear()

    def operand_kind(self, instruction: Instruction) -> OpKind:
        # The analysis meets a dot earlier than other operands.
        """The kind of an array read by a fusion."""
        opcode = "dot" if instruction.opcode in ("dot", "scaled-dot") else ""
        key = (instruction.shape, opcode)
        kind = self._of_operand.get(key)
        if kind is None:
            kind = self._of_operand[key] = self._new(opcode, instruction.shape)
        return kind

    def inside(self, instruction: Instruction) -> OpKind:
        kind = self._inside.get(instruction)
        if kind is not None:
            return kind
        flops = self._flops(instruction)
        key = (
            instruction.opcode,
            instruction.shape,
            tuple(o.shape for o in instruction.operands),
            indexing_key(instruction),
            flops,
        )
        kind = self._by_content.get(key)
        if kind is None:
            kind = self._by_content[key] = self._new(instruction.opcode, instruction.shape)
            if not instruction.is_fusion:
                kind.maps = operand_maps(instruction)
            kind.operand_dims = tuple(o.sizes for o in instruction.operands)
            kind.instruction_key = key[3]
            kind.flops = flops
        if not instruction.is_parameter:  # which may yet become something else
            self._inside[instruction] = kind
        return kind

    def _new(self, opcode: str, shape: Shape) -> OpKind:
        self._count += 1
        return OpKind(self._count, opcode, shape)

    def _flops(self, instruction: Instruction) -> int:
        """`GpuPerformanceModelWithIndexingAnalysis::FlopsPerElement`."""
        opcode = instruction.opcode
        if opcode in _FREE:
            return 0
        if opcode == "concatenate":
            return 400 if straddles_warps(instruction) else 6
        if opcode != "fusion" and is_elementwise(instruction):
            return self._profile.get(opcode, {}).get(instruction.element_type, DEFAULT_FLOPS)
        if opcode == "reduce":
            region = sum(self._flops(i) for i in instruction.to_apply)
            factor = 1
            for d in instruction.dimensions:
                extent = instruction.operand.sizes[d]
                factor *= power_of_two_ceil(extent) if self._pads_reductions else extent
            return (factor - 1) * region
        if opcode == "dot":
            lhs = instruction.operand.sizes
            contracted = 1
            for d in dot_dimensions(instruction)[2]:
                contracted *= lhs[d]
            return 2 * contracted
        return 0


def power_of_two_ceil(value: int) -> int:
    """`llvm::PowerOf2Ceil`."""
    return 1 << (value - 1).bit_length() if value > 0 else 0
