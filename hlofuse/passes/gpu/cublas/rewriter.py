"""Matrix products that cuBLAS computes, with what it does beside
(`xla/backends/gpu/transforms/gemm_rewriter.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import set_attribute
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added
from hlofuse.passes.common.rewriting import NotRepresentable, attempt, replaced, visit, visit_module
from hlofuse.passes.common.shapes import array
from hlofuse.passes.gpu.cublas.batches import has_two_batches, with_one_batch
from hlofuse.passes.gpu.cublas.calls import called_instead, config_of, is_call
from hlofuse.passes.gpu.cublas.epilogues import with_activation, with_factor, with_sum
from hlofuse.passes.gpu.matrix_layout import is_for_cublas, is_tiny
from hlofuse.trace import Recorder

_TYPES = frozenset({"f16", "bf16", "f32", "f64", "c64", "c128"})
_SMALL_IN_KERNELS = frozenset({"f16", "bf16", "f32"})
_WORKSPACE, _WORKSPACE_HOPPER = 4 * 1024 * 1024, 32 * 1024 * 1024
_HANDLED = frozenset({"dot", "multiply", "add", "maximum"})


@dataclass(frozen=True)
class CublasGemmRewriter(Pass):
    """`cublas-gemm-rewriter`, of products of one element type, and of bytes to integers.

    It leaves other products for cuBLAS alone.
    """

    name: ClassVar[str] = "cublas-gemm-rewriter"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            changed |= visit(computation, attempt(_handle, recorder), _HANDLED)
            changed |= self._add_workspaces(computation)
        return changed

    def _add_workspaces(self, computation: Computation) -> bool:
        """`GemmWorkspaceRewriteVisitor`."""
        size = _WORKSPACE_HOPPER if self.device.compute_capability[0] >= 9 else _WORKSPACE

        def handle(call: Instruction) -> bool:
            return is_call(call) and _lacks_workspace(call) and _with_workspace(call, size)

        return visit(computation, handle, frozenset({"custom-call"}))


@dataclass(frozen=True)
class CublasGemmRewriterF8(Pass):
    """`cublas-gemm-rewriter` for floats of 8 bits, which comes first: in all others it makes two batch
    dimensions one.
    """

    name: ClassVar[str] = "cublas-gemm-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["dot"], self._normalize, recorder)

    def _normalize(self, dot: Instruction) -> bool:
        if not is_for_cublas(dot) or not has_two_batches(dot):
            return False
        return replaced(dot, with_one_batch(dot))


def _handle(x: Instruction) -> bool:
    if x.opcode == "dot":
        return _handle_dot(x)
    if x.opcode == "add":
        return with_sum(x)
    return with_activation(x) if x.opcode == "maximum" else with_factor(x) or with_activation(x)


def _handle_dot(dot: Instruction) -> bool:
    """`HandleDot`."""
    if not is_for_cublas(dot):
        return False
    of = dot.shape.element_type
    types = {x.shape.element_type for x in (dot, *dot.operands)}
    if of != "s32" and not (types <= _TYPES and len(types) == 1):
        raise NotRepresentable("a product of other element types")
    return not (is_tiny(dot) and of in _SMALL_IN_KERNELS) and replaced(dot, called_instead(dot))


def _lacks_workspace(call: Instruction) -> bool:
    results = 2 if config_of(call)["epilogue"].endswith("_AUX") else 1
    return call.shape.is_array or len(call.shape.tuple_shapes) == results


def _with_workspace(call: Instruction, size: int) -> bool:
    results = [call.shape] if call.shape.is_array else call.shape.tuple_shapes
    shape = Shape.tuple_of([*results, array("s8", [size])])
    names = ("custom_call_target", "metadata", "frontend_attributes", "backend_config")
    said = {name: call.attributes.raw(name) for name in names}
    given = {n: v for n, v in said.items() if v is not None}
    new = added(call, "custom-call", shape, call.operands, name=call.name, said=given)
    aliasing = call.attributes.raw("output_to_operand_aliasing")
    if aliasing is not None:
        set_attribute(new, "output_to_operand_aliasing", aliasing.replace("{{}:", "{{0}:"))
    if call.shape.is_array:
        return replaced(call, added(call, "get-tuple-element", call.shape, [new], like=call, index="0"))
    for user in list(call.users):
        element = added(call, "get-tuple-element", user.shape, [new], like=call, index=str(user.tuple_index))
        replaced(user, element)
    return True
