"""Features of convolutions padded for tensor cores
(`xla/backends/gpu/transforms/cudnn_pad_for_convolutions.cc`).

Those of integers are left as they are: which of them cuDNN takes is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import custom_call_target, has_side_effect
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.reading import labels_of
from hlofuse.passes.common.shapes import array, with_dimensions
from hlofuse.passes.gpu.convolutions.calls import BACKWARD_FILTER, BACKWARD_INPUT, FORWARD
from hlofuse.trace import Recorder

_MULTIPLE = 8
_MOST_BYTES = 1.35


@dataclass(frozen=True)
class CudnnPadForConvolutions(Pass):
    """`cudnn_pad_for_convolutions`."""

    name: ClassVar[str] = "cudnn_pad_for_convolutions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for call in computation.instructions:
                if custom_call_target(call) in (FORWARD, BACKWARD_INPUT, BACKWARD_FILTER):
                    changed |= _pad_for_tensor_cores(call)
        return changed


def _pad_for_tensor_cores(call: Instruction) -> bool:
    old = [*(o.shape for o in call.operands), call.shape.tuple_shapes[0]]
    new = _padded_shapes(call, old)
    if new is None or new[:2] == old[:2]:
        return False
    _pad(call, new[:2], new[2])
    return True


def _padded_shapes(call: Instruction, old: list[Shape]) -> list[Shape] | None:
    """Of both operands and the result (`TryResolvePaddedShapesForTensorCore`)."""
    groups = (call.attributes.raw(name) for name in ("feature_group_count", "batch_group_count"))
    if old[2].element_type != "f16" or any(int(n or 1) > 1 for n in groups):
        return None
    # where the input, the kernel and the output are among the operands and the result
    at = {FORWARD: (0, 1, 2), BACKWARD_INPUT: (2, 1, 0), BACKWARD_FILTER: (0, 2, 1)}
    source, kernel, out = at[custom_call_target(call) or ""]
    labels = labels_of(call)
    sizes = [list(shape.dimensions) for shape in old]
    into, result = labels.input_feature_dimension, labels.output_feature_dimension
    if sizes[source][into] == 3 and sizes[out][result] in (32, 64):
        sizes[source][into] = sizes[kernel][labels.kernel_input_feature_dimension] = 4
        return [with_dimensions(shape, n) for shape, n in zip(old, sizes, strict=True)]
    for which, dimension in (
        (source, into),
        (kernel, labels.kernel_input_feature_dimension),
        (kernel, labels.kernel_output_feature_dimension),
        (out, result),
    ):
        sizes[which][dimension] = -(-sizes[which][dimension] // _MULTIPLE) * _MULTIPLE
    new = [with_dimensions(shape, n) for shape, n in zip(old, sizes, strict=True)]
    small = all(n.byte_size <= o.byte_size * _MOST_BYTES for n, o in zip(new, old, strict=True))
    return new if small else None


def _pad(call: Instruction, operands: list[Shape], result: Shape) -> None:
    """`PadConv`: the result is cut back."""
    padded = [_padded(o, shape) for o, shape in zip(call.operands, operands, strict=True)]
    old, scratch = call.shape.tuple_shapes
    new = make.copy_of(call, padded, Shape.tuple_of([result, scratch]))
    if result != old:
        whole = make.get_tuple_element(call, new, 0)
        nothing = make.constant(call, array("u8", [0]), [])
        piece = make.slice_of(call, whole, [0] * old.rank, old.dimensions)
        new = make.tuple_of(call, [piece, nothing])
    replace_instruction(call, new, has_side_effect)


def _padded(operand: Instruction, shape: Shape) -> Instruction:
    """`PadInstruction`, at the end of each dimension."""
    if operand.shape == shape:
        return operand
    missing = [n - o for n, o in zip(shape.dimensions, operand.shape.dimensions, strict=True)]
    zero = make.zero(operand, shape.element_type)
    config = PaddingConfig(tuple(PaddingDimension(0, n) for n in missing))
    return make.pad(operand, shape, operand, zero, config)
