"""XLA:GPU's layout constraints (`xla/backends/gpu/transforms/layout_assignment.cc`)."""

import math
from functools import partial

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import COMPLEX_TYPES, FLOATING_TYPES, Instruction, Ints, Module, Shape, values, with_trait
from hlofuse.passes.base import DevicePass
from hlofuse.passes.common.dots import DotDimensions, free_dimensions, free_sizes
from hlofuse.passes.common.shapes import aligned, descending, is_sorted, permute, relaid, without_ones
from hlofuse.passes.layout.assignment import ComputationConstraint, LayoutAssignment, Order
from hlofuse.passes.layout.rounds import assign_layouts
from hlofuse.releases import Release
from hlofuse.trace import Recorder
from .convolutions.rewriter import constrain_convolution, is_convolution_call

_BATCH = 0
_TINY_DOT_ELEMENTS = 100  # `xla_gpu_gemm_rewrite_size_threshold`


def is_matrix(
    shape: Shape,
    batch: Ints,
    rows: Ints,
    columns: Ints,
) -> bool:
    """True if batch, rows, columns are contiguous, batch not minor-most (`MatrixLayout::For`)."""
    order = shape.minor_to_major
    groups = []
    at = 0
    while at < len(order):
        for number, dims in ((1, rows), (2, columns), (0, batch)):
            if dims and order[at] == dims[-1]:
                if tuple(order[at : at + len(dims)]) != tuple(reversed(dims)):
                    return False
                groups.append(number)
                at += len(dims)
                break
        else:
            return False
    groups += [number for number, dims in ((2, columns), (1, rows), (0, batch)) if not dims]
    return len(groups) == 3 and groups[0] != _BATCH


def is_matrix_of_dot(shape: Shape, dot: Instruction) -> bool:
    """True if the dot can write its result in this layout (`DotCanSupportShapeWithLayout`)."""
    batch = len(DotDimensions.of(dot).lhs_batch)
    rows = len(free_dimensions(dot)[0])
    every = tuple(range(shape.rank))
    return is_matrix(shape, every[:batch], every[batch : batch + rows], every[batch + rows :])


def can_fold_transpose(dot: Instruction, number: int) -> bool:
    """True if the dot can read what the transpose at `number` reads (`CanFoldTransposeOperandIntoDot`)."""
    transpose = dot.operands[number]
    dims = DotDimensions.of(dot)
    mapping = transpose.dimensions
    free = dims.free(number, transpose.rank)
    batch, contracting = (permute(mapping, own) for own in dims.fixed(number))
    moved = permute(mapping, free)
    return is_sorted(moved) and is_matrix(transpose.operand.shape, batch, contracting, moved)


def is_for_cublas(dot: Instruction, of_vectors: bool = True) -> bool:
    """`IsCublasSupportedMatMul`; `of_vectors`: also where only one operand is a matrix."""
    dims = DotDimensions.of(dot)
    matrices = 0
    for number, free in enumerate(free_sizes(dot)):
        last = dot.operands[number].rank - 1
        if len(free) > 1 or len(dims.contracting(number)) != 1 or last in dims.batch(number):
            return False
        matrices += free not in ([], [1])
    of = dot.element_type
    if matrices == 0 or (matrices == 1 and (not of_vectors or of == "c128")):
        return False
    if of == "s32":
        return all(o.element_type == "s8" for o in dot.operands)
    return of in FLOATING_TYPES or of in COMPLEX_TYPES


def is_tiny(dot: Instruction, threshold: int = _TINY_DOT_ELEMENTS) -> bool:
    """`IsMatrixMultiplicationTooSmallForRewriting`."""
    free, sizes = sum(map(math.prod, free_sizes(dot))), dot.operand.sizes
    return free * math.prod(sizes[d] for d in DotDimensions.of(dot).lhs_contracting) < threshold


# What is not laid out here: hosts, calls and fusions, arrays that a library packs.
_LEFT_OUT = with_trait("not-laid-out")
_MAJOR = ("reduce-scatter", "all-gather", "all-to-all")
"""Collectives that a GPU runs along the most major dimension only."""


class GpuLayoutAssignment(DevicePass):
    """`layout-assignment`; a module with operations or layouts of other kinds is left as it is."""

    name = "layout-assignment"

    def run(self, module: Module, recorder: Recorder) -> bool:
        layouts = partial(_GpuLayouts, device=self.required_device(), release=self.release)
        return assign_layouts(module, layouts, recorder, _is_left_out)


def _is_left_out(instruction: Instruction) -> bool:
    if instruction.opcode in _LEFT_OUT:
        return True
    if instruction.opcode == "bitcast-convert" and instruction.rank != instruction.operand.rank:
        return True
    special = any(s.layout is not None and s.layout.suffix for _, s in instruction.shape.subshapes())
    if special or instruction.opcode != "conditional":
        return special
    return any(sum(c.callers.values()) > 1 for c in instruction.called_computations)


class _GpuLayouts(LayoutAssignment):
    def __init__(self, module: Module, device: DeviceDescription, release: Release) -> None:
        super().__init__(module)
        self._device = device
        self._release = release
        self.at_once = release.lays_out_at_once

    def aligned_order(self, source: Shape, result: Shape) -> Order | None:
        """The layout order of `result`; ones stay after the same neighbours (`AlignLayoutsGPU`)."""
        if not self._release.reshapes_keep_ones_in_place:
            return super().aligned_order(source, result)
        simple = aligned(without_ones(source), without_ones(result))
        if simple is None:
            return None
        remaining = [d for d in range(result.rank) if result.dimensions[d] != 1]
        matching_dimensions = dict[int, list[int]]()
        last = -1
        for d in result.minor_to_major:
            if result.dimensions[d] == 1:
                matching_dimensions.setdefault(last, []).append(d)
            else:
                last = d
        order = list(matching_dimensions.get(-1, ()))
        for k in simple.minor_to_major:
            order += [remaining[k], *matching_dimensions.get(remaining[k], ())]
        return tuple(order)

    def makes_rows(self, reduce: Instruction) -> bool:
        """Another layout is worth it only if the rows are long; at first, also if several fill a warp."""
        sizes = reduce.operand.sizes
        length = math.prod(sizes[d] for d in reduce.dimensions)
        fill_warps = not self._release.lays_out_long_rows_only and _MIN_ROW_ELEMENTS % max(length, 1) == 0
        return fill_warps or length >= _MIN_ROW_ELEMENTS

    def add_backend_constraints(self, constraint: ComputationConstraint) -> None:
        for instruction in reversed(constraint.computation.post_order()):
            opcode = instruction.opcode
            if is_convolution_call(instruction):
                constrain_convolution(self, instruction, self._device)
            elif opcode == "dot":
                self._constrain_dot(constraint, instruction)
            elif opcode == "transpose":
                self._constrain_transpose(instruction)
            elif opcode == "fft":
                self.set_operand_layout(instruction, 0, descending(instruction.operand.shape))
                self.set_instruction_layout(instruction, descending(instruction.shape))
            elif (
                opcode == "sort"
                or custom_call_target(instruction) == "__cub$DeviceRadixSortUnassignedScratchSize"
            ):
                self._constrain_sort(instruction)
            elif custom_call_target(instruction) == "__gpu$TopK":
                order = tuple(range(instruction.operand.rank - 1, -1, -1))
                for k in (0, 1):
                    self.set_buffer_layout(self.buffers.defined_by(instruction)[k,], order)
            elif opcode in _MAJOR and instruction.is_array and instruction.dimensions:
                self.set_major(instruction)
            elif opcode == "triangular-solve":
                for number in (0, 1):
                    self.set_operand_layout(instruction, number, _fortran(instruction.operands[number].shape))
                self.set_instruction_layout(instruction, _fortran(instruction.shape))

    def _constrain_sort(self, sort: Instruction) -> None:
        rank = sort.operand.rank
        if rank <= 1:
            return
        order = tuple(range(rank - 1, -1, -1))
        defined = self.buffers.defined_by(sort)
        for number in range(sort.operand_count):
            self.set_array_operand_layout(sort, number, order)
            self.set_buffer_layout(defined[()] if sort.is_array else defined[number,], order)

    def _constrain_transpose(self, transpose: Instruction) -> None:
        """If a dot can, it writes so that its transpose is a row-major bitcast."""
        dot = transpose.operand
        if not dot.is_dot or dot.user_count > 1:
            return
        shape = relaid(dot.shape, transpose.dimensions[::-1])
        if is_matrix_of_dot(shape, dot):
            self.set_operand_layout(transpose, 0, shape)

    def _constrain_dot(self, constraint: ComputationConstraint, dot: Instruction) -> None:
        """`AddDotBackendConstraints`."""
        dims = DotDimensions.of(dot)
        types = [o.element_type for o in dot.operands]
        minor = dot.element_type == "s32" and types == ["s8", "s8"]
        minor |= self._device.compute_capability[0] != 10 and all(t in _FP8 for t in types)
        needs_result = bool(dims.lhs_batch)
        for number, operand in enumerate(dot.operands):
            batch, contracting = dims.fixed(number)
            free = dims.free(number, operand.rank)
            needs_result |= len(free) > 1
            if minor:  # `SetDotOperandLayoutToMinorContracting`
                shape = operand.shape
                are_minor = set(shape.minor_to_major[: len(contracting)]) <= set(contracting)
                if not are_minor or not is_matrix(shape, batch, free, contracting):
                    shape = relaid(shape, (*batch, *free, *contracting)[::-1])
                self.set_operand_layout(dot, number, shape)
            elif batch or len(contracting) > 1 or len(free) > 1:
                self._set_dot_operand_layout(dot, number, batch, contracting, free)
        if needs_result:
            self._set_dot_layout(constraint, dot)

    def _set_dot_operand_layout(
        self, dot: Instruction, number: int, batch: Ints, rows: Ints, columns: Ints
    ) -> None:
        """`SetDotOperandLayout`: as it is, else row-major, else group by group."""
        shape = dot.operands[number].shape
        for choice in (shape, descending(shape)):
            if is_matrix(choice, batch, rows, columns):
                self.set_operand_layout(dot, number, choice)
                return
        self.set_operand_layout(dot, number, relaid(shape, (*batch, *rows, *columns)[::-1]))

    def _set_dot_layout(self, constraint: ComputationConstraint, dot: Instruction) -> None:
        """`SetDotLayout`: what a user wants if that is possible, else row-major."""
        for user in dot.users:
            for number, operand in enumerate(user.operands):
                wanted = constraint.operand_shape(user, number) if operand is dot else None
                if wanted is not None and is_matrix_of_dot(wanted, dot):
                    self.set_instruction_layout(dot, wanted)
                    return
        self.set_instruction_layout(dot, descending(dot.shape))


_MIN_ROW_ELEMENTS = 32
_FP8 = values("f8e4m3fn f8e5m2fnuz")


def _fortran(shape: Shape) -> Shape:
    """Row-major but for the two most minor dimensions (`SetFortranLayout`)."""
    order = list(range(shape.rank - 1, -1, -1))
    order[0], order[1] = order[1], order[0]
    return relaid(shape, tuple(order))
