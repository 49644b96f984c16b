"""Calls of cuDNN, and what they are told
(`CudnnConvBackendConfig`, `xla/service/gpu/backend_configs.proto`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hlofuse.cost.gpu.backend_config import gpu_config_text
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.removing import set_attribute

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
    """A copy of what the call is told about the convolution."""
    text = call.attributes.raw("backend_config") or "{}"
    found: dict[str, Any] = json.loads(text)["cudnn_conv_backend_config"]
    return found


def configure(call: Instruction, config: dict[str, Any]) -> None:
    set_attribute(call, "backend_config", config_text(config))


def config_text(config: dict[str, Any]) -> str:
    """The backend config of a call that is told this, as XLA prints it."""
    return gpu_config_text("cudnn_conv_backend_config", config)


def made_again(call: Instruction, operands: Sequence[Instruction], target: str) -> Instruction:
    """`call` with other operands, beside it."""
    raw = {**call.attributes.without("control-predecessors").raw_items, "custom_call_target": f'"{target}"'}
    new = Instruction(NAMES[target], call.shape, "custom-call", operands, Attributes(raw=raw))
    return computation_of(call).add_instruction(new)
