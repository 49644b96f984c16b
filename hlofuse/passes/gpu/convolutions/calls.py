"""Calls of cuDNN: targets, configurations, layouts."""

import json
from collections.abc import Sequence
from typing import Any

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.backend_config import gpu_config_text
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.fusing import clone_of, computation_of, module_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.removing import set_attribute
from hlofuse.ir.shape import FLOATING_TYPES, INTEGER_TYPES, Shape
from hlofuse.passes.common.make import added, bitcast
from hlofuse.passes.common.shapes import physical, relaid
from hlofuse.passes.layout.assignment import LayoutAssignment

# Calls of cuDNN, and what they are told (`CudnnConvBackendConfig`,
# `xla/service/gpu/backend_configs.proto`).


FORWARD = "__cudnn$convForward"
BACKWARD_INPUT = "__cudnn$convBackwardInput"
BACKWARD_FILTER = "__cudnn$convBackwardFilter"
BIAS_ACTIVATION = "__cudnn$convBiasActivationForward"
NAMES = {
    FORWARD: "cudnn-conv",
    BACKWARD_INPUT: "cudnn-conv-bw-input",
    BACKWARD_FILTER: "cudnn-conv-bw-filter",
    BIAS_ACTIVATION: "cudnn-conv-bias-activation",
}
FORWARD_GRAPH = "__cudnn$convForwardGraph"
"""Of dumps only: nothing here makes such a call."""
TARGETS = frozenset({*NAMES, FORWARD_GRAPH})
DEFAULT: dict[str, Any] = {
    "activation_mode": "kNone",
    "conv_result_scale": 1,
    "side_input_scale": 0,
    "leakyrelu_alpha": 0,
}


def config_of(call: Instruction) -> dict[str, Any]:
    """A copy of the call's configuration for the convolution."""
    text = call.attributes.raw("backend_config") or "{}"
    found: dict[str, Any] = json.loads(text)["cudnn_conv_backend_config"]
    return found


def configure(call: Instruction, config: dict[str, Any]) -> None:
    set_attribute(call, "backend_config", config_text(config))


def config_text(config: dict[str, Any]) -> str:
    """The backend config of such a call, as XLA prints it."""
    return gpu_config_text("cudnn_conv_backend_config", config)


def call_like(call: Instruction, operands: Sequence[Instruction], target: str) -> Instruction:
    """`call` with other operands, beside it: XLA adds a clone and then gives it its name."""
    raw = {**call.attributes.without("control-predecessors").raw_items, "custom_call_target": f'"{target}"'}
    name = call.name if call.attributes.get("custom_call_target") == target else NAMES[target]
    module_of(computation_of(call)).instruction_names.skip((call.name,))
    new = Instruction(name, call.shape, "custom-call", operands, Attributes(raw=raw))
    return computation_of(call).add_instruction(new)


# The layouts cuDNN's convolutions are called with: channels last, or behind the batch
# (`HeuristicLayoutAssignment`).


def is_convolution_call(instruction: Instruction) -> bool:
    """`IsCustomCallToDnnConvolution`."""
    return custom_call_target(instruction) in TARGETS


def constrain_convolution(layouts: LayoutAssignment, call: Instruction, device: DeviceDescription) -> None:
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
    layouts.set_operand_layout(call, 0, left(shapes[0]))
    layouts.set_operand_layout(call, 1, right(shapes[1]))
    buffer = layouts.buffers.defined_by(call)[(0,)]
    layouts.set_buffer_layout(buffer, result(call.shape.tuple_shapes[0]).minor_to_major)
    if target == BIAS_ACTIVATION and len(shapes) == 4:
        layouts.set_operand_layout(call, 3, output_shape(shapes[3]))
    elif target == FORWARD_GRAPH:
        for number in range(2, len(shapes)):
            if shapes[number].rank:
                layouts.set_operand_layout(call, number, output_shape(shapes[number]))


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


def normalized_call(call: Instruction) -> Instruction | None:
    """A tuple of bitcasts of the new call's results; None where nothing changes
    (`xla/service/gpu/conv_layout_normalization.cc`).

    The operands' bitcasts are made in either case, as by XLA.
    """
    if not is_convolution_call(call):
        return None
    operands = [bitcast(o, physical(o.shape)) for o in call.operands]
    shape = Shape.tuple_of([physical(s) if s.is_array else s for s in call.shape.tuple_shapes])
    labels = call.attributes["dim_labels"]
    source, weights, result = convolution_shapes(call)
    text = f"{_moved(labels.lhs, source)}_{_moved(labels.rhs, weights)}->{_moved(labels.output, result)}"
    if shape.key == call.shape.key and text == call.attributes.raw("dim_labels"):
        return None
    new = clone_of(call, operands)
    new.shape = shape
    new.attributes = new.attributes.without("sharding", "frontend_attributes", "operand_layout_constraints")
    set_attribute(new, "dim_labels", text)
    module_of(computation_of(call)).instruction_names.skip(("custom-call",))
    computation_of(call).add_instruction(new)
    parts = []
    for k, (part, was) in enumerate(zip(shape.tuple_shapes, call.shape.tuple_shapes, strict=True)):
        parts.append(bitcast(added(new, "get-tuple-element", part, [new], index=str(k)), was))
    return added(call, "tuple", call.shape, parts)


def _moved(labels: str, shape: Shape) -> str:
    return "".join(labels[d] for d in reversed(shape.minor_to_major))
