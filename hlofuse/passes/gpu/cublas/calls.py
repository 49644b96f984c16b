"""Calls of cuBLAS and their configuration (`GemmBackendConfig`, `xla/service/gpu/backend_configs.proto`)."""

import json
import math
from collections.abc import Sequence
from typing import Any

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.backend_config import gpu_config_text
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.removing import set_attribute
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.rewriting import NotRepresentable

TARGET = "__cublas$lt$matmul"
_UNSET = "ALG_UNSET"


def is_call(x: Instruction) -> bool:
    return custom_call_target(x) == TARGET


def config_of(call: Instruction) -> dict[str, Any]:
    """A copy of the call's configuration for the product."""
    text = call.attributes.raw("backend_config") or "{}"
    found: dict[str, Any] = json.loads(text)["gemm_backend_config"]
    return found


def called_instead(dot: Instruction) -> Instruction:
    """The call that does what `dot` does, beside it."""
    call = derived(dot, "custom-call", dot.shape, dot.operands, custom_call_target=f'"{TARGET}"')
    configure(call, _config(dot))
    return call


def call_like(
    call: Instruction, operands: Sequence[Instruction], config: dict[str, Any], shape: Shape
) -> Instruction:
    """`call` with other operands and another configuration, beside it."""
    attributes = Attributes(raw=dict(call.attributes.without("control-predecessors").raw_items))
    new = Instruction("cublas-lt-matmul", shape, "custom-call", operands, attributes, called=call.called)
    configure(new, config)
    return computation_of(call).add_instruction(new)


def configure(call: Instruction, config: dict[str, Any]) -> None:
    set_attribute(call, "backend_config", gpu_config_text("gemm_backend_config", config))


def _config(dot: Instruction) -> dict[str, Any]:
    dims = DotDimensions.of(dot)
    if dot.attributes.raw("algorithm") is not None:
        raise NotRepresentable("a product by a given algorithm")
    frontend = dot.attributes.get("frontend_attributes") or {}
    precision = dot.attributes.raw("operand_precision")
    precisions = precision.strip("{}").upper().split(",") if precision else ["DEFAULT", "DEFAULT"]
    numbers = {
        "lhs_contracting_dimensions": dims.lhs_contracting,
        "rhs_contracting_dimensions": dims.rhs_contracting,
        "lhs_batch_dimensions": dims.lhs_batch,
        "rhs_batch_dimensions": dims.rhs_batch,
    }
    strides = [
        math.prod(o.shape.dimensions[len(dims.lhs_batch) : len(dims.lhs_batch) + 2]) for o in dot.operands
    ]
    return {
        "alpha_real": 1,
        "beta": 0,
        "dot_dimension_numbers": {name: [str(d) for d in of] for name, of in numbers.items()},
        "alpha_imag": 0,
        "precision_config": {"operand_precision": precisions, "algorithm": _UNSET},
        "epilogue": "DEFAULT",
        "lhs_stride": str(strides[0]),
        "rhs_stride": str(strides[1]),
        "grad_x": frontend.get("grad_x") == "true",
        "grad_y": frontend.get("grad_y") == "true",
        "damax_output": False,
        "autotune_workspace_size": "0",
        "scale_mode": 0,
    }
