"""The layouts cuDNN's convolutions are called with: channels last, or behind the batch
(`HeuristicLayoutAssignment`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import FLOATING_TYPES, INTEGER_TYPES, Shape
from hlofuse.passes.common.layout_shapes import relaid
from hlofuse.passes.gpu.convolutions.calls import (
    BACKWARD_FILTER,
    BACKWARD_INPUT,
    BIAS_ACTIVATION,
    FORWARD_GRAPH,
    TARGETS,
)
from hlofuse.passes.layout.assignment import LayoutAssignment


def is_convolution_call(instruction: Instruction) -> bool:
    """`IsCustomCallToDnnConvolution`."""
    return custom_call_target(instruction) in TARGETS


def ask_convolution(layouts: LayoutAssignment, call: Instruction, device: DeviceDescription) -> None:
    """`AddBackendConstraintsToDnnConvCustomCall`."""
    labels = call.attributes["dim_labels"]
    target = custom_call_target(call)
    last = _channels_last(call, device)

    def input_shape(shape: Shape) -> Shape:
        return relaid(shape, _order(labels.lhs, "b", "f", last))

    def filter_shape(shape: Shape) -> Shape:
        return relaid(shape, _order(labels.rhs, "o", "i", last))

    def output_shape(shape: Shape) -> Shape:
        return relaid(shape, _order(labels.output, "b", "f", last))

    left, right, result = {
        BACKWARD_INPUT: (output_shape, filter_shape, input_shape),
        BACKWARD_FILTER: (input_shape, output_shape, filter_shape),
    }.get(target, (input_shape, filter_shape, output_shape))
    shapes: list[Shape] = [o.shape for o in call.operands]
    layouts.ask_operand(call, 0, left(shapes[0]))
    layouts.ask_operand(call, 1, right(shapes[1]))
    made = layouts.buffers.made_by(call)[(0,)]
    layouts.ask_buffer(made, result(call.shape.tuple_shapes[0]).minor_to_major)
    if target == BIAS_ACTIVATION and len(shapes) == 4:
        layouts.ask_operand(call, 3, output_shape(shapes[3]))
    elif target == FORWARD_GRAPH:
        for number in range(2, len(shapes)):
            if shapes[number].rank:
                layouts.ask_operand(call, number, output_shape(shapes[number]))


def convolution_shapes(call: Instruction) -> tuple[Shape, Shape, Shape]:
    """Input, filter and output of the convolution, whichever of them the call computes."""
    left, right = (o.shape for o in call.operands[:2])
    result = call.shape.tuple_shapes[0]
    target = custom_call_target(call)
    if target == BACKWARD_INPUT:
        return result, right, left
    return (left, result, right) if target == BACKWARD_FILTER else (left, right, result)


def _order(labels: str, first: str, channels: str, last: bool) -> list[int]:
    """Dimension numbers, minor to major."""
    spatial = [labels.index(c) for c in sorted(c for c in labels if c.isdigit())]
    a, b = labels.index(first), labels.index(channels)
    return list(reversed([a, *spatial, b] if last else [a, b, *spatial]))


def _channels_last(call: Instruction, device: DeviceDescription) -> bool:
    """NHWC for integers and FP8, from Hopper on for most, on older devices for 16 bits in two dimensions."""
    element = call.operands[0].shape.element_type
    if element in INTEGER_TYPES or element.startswith("f8"):
        return True
    spatial = sum(c.isdigit() for c in call.attributes["dim_labels"].lhs)
    if device.compute_capability[0] >= 9:
        return element != "f64" and spatial <= 2
    half = element in FLOATING_TYPES and element in ("f16", "bf16")
    return half and device.compute_capability[0] >= 7 and call.shape.tuple_shapes[0].rank == 4
