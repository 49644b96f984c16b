"""Passes that make products calls of cuBLAS."""

from dataclasses import dataclass
from functools import partial

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Computation, Instruction, Module, Shape, replace, set_attribute
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.opcodes import values
from hlofuse.passes.base import (
    NotRepresentable,
    Pass,
    ReleasePass,
    VisitPass,
    any_change,
    attempt,
    find_each,
    replaced,
    visit,
)
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.make import added, reshaped, transposed
from hlofuse.passes.common.shapes import array, permute, permuted, with_dimensions, without
from hlofuse.passes.dot.dot_operands import BATCH, CONTRACTING, DotOperand
from hlofuse.passes.gpu.gemm.propagation import can_handle_gemm
from hlofuse.passes.gpu.layout_assignment import is_for_cublas, is_tiny
from hlofuse.rules.gpu_fusible import product_computations
from hlofuse.trace import Recorder
from .calls import (
    CUBLAS,
    CUBLAS_LT,
    called_instead,
    config_of,
    configure,
    is_call,
    is_lt,
    with_activation,
    with_factor,
    with_sum,
)


def with_one_batch(dot: Instruction) -> Instruction:
    """The value of `dot` as a reshaped product with one batch dimension (`NormalizeBatchDimensions`)."""
    operands, sides = [], []
    for number, operand in enumerate(dot.operands):
        side, laid = DotOperand.of(dot, number), operand.shape
        first, second = side.groups[BATCH]
        if second != first + 1:
            order = [d for d in range(len(side.sizes)) if d != second]
            order.insert(first if second < first else first + 1, second)
            shape = with_dimensions(operand.shape, permute(operand.shape.dimensions, order))
            operand, laid = transposed(operand, order, shape), permuted(laid, order)
            side = side.permuted(order)
        # The transpose is row-major; the reshape lies as the operand did.
        laid = without(laid, [side.groups[BATCH][1]])
        side = side.collapsed(BATCH)
        operands.append(reshaped(operand, replace(laid, dimensions=side.sizes)))
        sides.append(side)
    batch, contracting = ([side.groups[kind] for side in sides] for kind in (BATCH, CONTRACTING))
    new = new_dot(dot, operands, batch, contracting)
    return reshaped(new, dot.shape)


_TYPES = values("f16 bf16 f32 f64 c64 c128")
_SMALL_IN_KERNELS = values("f16 bf16 f32")
_WORKSPACE, _WORKSPACE_HOPPER = 4 * 1024 * 1024, 32 * 1024 * 1024
_HANDLED = values("dot multiply add maximum")


@dataclass(frozen=True)
class CublasGemmRewriter(ReleasePass):
    """`cublas-gemm-rewriter`, of products of one element type, and of bytes to integers
    (`xla/backends/gpu/transforms/gemm_rewriter.cc`). It leaves other products for cuBLAS alone."""

    name = "cublas-gemm-rewriter"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        target = CUBLAS_LT if self.release.products_in_cublaslt else CUBLAS
        handle = attempt(partial(_handle, target=target), recorder)
        computations = product_computations(module, self.release)
        return any_change(visit(c, handle, _HANDLED) | self._add_workspaces(c) for c in computations)

    def _add_workspaces(self, computation: Computation) -> bool:
        """`GemmWorkspaceRewriteVisitor`."""
        size = _WORKSPACE_HOPPER if self.device.compute_capability[0] >= 9 else _WORKSPACE

        def handle(call: Instruction) -> bool:
            return is_call(call) and _lacks_workspace(call) and _with_workspace(call, size)

        return visit(computation, handle, values("custom-call"))


class CublasGemmRewriterF8(VisitPass):
    """`cublas-gemm-rewriter` for floats of 8 bits, first: in all others it joins two batch dimensions."""

    name = "cublas-gemm-rewriter"
    opcodes = ("dot",)

    def handle(self, dot: Instruction) -> bool:
        has_two_batches = len(DotDimensions.of(dot).lhs_batch) == 2
        return has_two_batches and is_for_cublas(dot) and replaced(dot, with_one_batch(dot))


def _handle(x: Instruction, target: str) -> bool:
    if x.opcode == "dot":
        return _handle_dot(x, target)
    if x.opcode == "add":
        return with_sum(x)
    return with_activation(x) if x.opcode == "maximum" else with_factor(x) or with_activation(x)


def _handle_dot(dot: Instruction, target: str) -> bool:
    """`HandleDot`."""
    if not is_for_cublas(dot):
        return False
    of = dot.element_type
    types = {x.element_type for x in (dot, *dot.operands)}
    if of != "s32" and not (types <= _TYPES and len(types) == 1):
        raise NotRepresentable("a product of other element types")
    return not (is_tiny(dot) and of in _SMALL_IN_KERNELS) and replaced(dot, called_instead(dot, target))


def _lacks_workspace(call: Instruction) -> bool:
    results = 2 if config_of(call)["epilogue"].endswith("_AUX") else 1
    return call.shape.is_array or len(call.shape.tuple_shapes) == results


def _with_workspace(call: Instruction, size: int) -> bool:
    results = [call.shape] if call.shape.is_array else call.shape.tuple_shapes
    if not is_lt(call):  # as if it copied what it reads
        size = min(size, sum(o.shape.byte_size for o in call.operands))
    shape = Shape.tuple_of([*results, array("s8", [size])])
    given = call.attributes.given("custom_call_target", "metadata", "frontend_attributes", "backend_config")
    new = added(call, "custom-call", shape, call.operands, name=call.name, raw_attributes=given)
    if (aliasing := call.raw("output_to_operand_aliasing")) is not None:
        set_attribute(new, "output_to_operand_aliasing", aliasing.replace("{{}:", "{{0}:"))
    if call.shape.is_array:
        return replaced(call, make.get_tuple_element(call, new, 0))
    for user in list(call.users):
        replaced(user, make.get_tuple_element(call, new, user.tuple_index))
    return True


class GemmBroadcastFoldingRewriter(VisitPass):
    """`cublas-gemm-broadcast-folding-rewriter`: cuBLAS reads a matrix again for each of a batch
    (`xla/backends/gpu/transforms/gemm_broadcast_folding_rewriter.cc`)."""

    name = "cublas-gemm-broadcast-folding-rewriter"
    opcodes = ("custom-call",)

    def handle(self, x: Instruction) -> bool:
        return is_call(x) and _fold(x)


def _fold(call: Instruction) -> bool:
    for number, side in ((0, "lhs"), (1, "rhs")):
        broadcast = call.operands[number]
        if broadcast.opcode != "broadcast":
            continue
        config = config_of(call)
        numbers = config["dot_dimension_numbers"]
        new = broadcast.shape.rank - broadcast.operand.shape.rank
        batch = {int(d) for d in numbers[f"{side}_batch_dimensions"]}
        if new != len(numbers["lhs_batch_dimensions"]) or any(
            d < new or d in batch for d in broadcast.dimensions
        ):
            return False
        contracting = f"{side}_contracting_dimensions"
        numbers[contracting] = [str(int(numbers[contracting][0]) - new)]
        numbers[f"{side}_batch_dimensions"] = []
        call.replace_operand(number, broadcast.operand)
        configure(call, config)
        return True
    return False


_MULTIPLES = (("s8", 7, 4), ("f16", 7, 8), ("bf16", 8, 8))
"""Element types, since which compute capability, and to a multiple of what (`CublasPaddingRequirements`)."""


@dataclass(frozen=True)
class CublasPadForGemms(Pass):
    """`cublas-pad-for-gemms`, once for each element type that the device has tensor cores for: matrix
    products padded to the sizes that tensor cores take
    (`xla/backends/gpu/transforms/cublas_pad_for_gemms.cc`)."""

    name = "cublas-pad-for-gemms"
    element_type: str
    multiple: int
    triton_of: DeviceDescription | None = None  # Whose products of Triton keep their sizes

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(map(self._pad, find_each(module, lambda x: x.opcode == "dot")))

    def _pad(self, dot: Instruction) -> bool:
        """`PadForGemm`: the result is cut back."""
        lhs, rhs = dot.operands
        if lhs.element_type != self.element_type or not _is_padded(dot):
            return False
        if self.triton_of is not None and can_handle_gemm(dot, self.triton_of):
            return False
        old = (lhs.shape, rhs.shape)
        new = (self._pad_shape(lhs.shape), self._pad_shape(rhs.shape))
        if new == old or rhs.element_type != self.element_type:
            return False
        zero = make.scalar(dot, self.element_type, 0)
        pads = [
            make.pad(dot, shape, operand, zero, _missing(operand.shape, shape))
            for operand, shape in zip(dot.operands, new, strict=True)
        ]
        product = make.copy_of(dot, pads, self._pad_shape(dot.shape))
        return replaced(dot, make.slice_of(dot, product, [0] * dot.shape.rank, dot.shape.dimensions))

    def _pad_shape(self, shape: Shape) -> Shape:
        *batch, rows, columns = shape.dimensions
        padded = (-(-n // self.multiple) * self.multiple for n in (rows, columns))
        return replace(shape, dimensions=(*batch, *padded))


def paddings(device: DeviceDescription, with_triton: bool = False) -> tuple[CublasPadForGemms, ...]:
    """The passes that a device asks for (`AddGemmPadding`)."""
    major = device.compute_capability[0]
    triton_of = device if with_triton else None
    return tuple(CublasPadForGemms(of, n, triton_of) for of, since, n in _MULTIPLES if major >= since)


def _is_padded(dot: Instruction) -> bool:
    """A product of matrices for cuBLAS, batch dimensions first (`GetRelevantDots`)."""
    dims = DotDimensions.of(dot)
    batch = tuple(range(len(dims.lhs_batch)))
    rank = len(batch) + 2
    if any(dims.batch(n) != batch or o.shape.rank != rank for n, o in enumerate(dot.operands)):
        return False
    return is_for_cublas(dot, of_vectors=False)


def _missing(old: Shape, new: Shape) -> PaddingConfig:
    return PaddingConfig(
        PaddingDimension(0, n - o) for o, n in zip(old.dimensions, new.dimensions, strict=True)
    )
