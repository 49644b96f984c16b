"""Backend configs of XLA:GPU, read and written (`xla/service/gpu/backend_configs.proto`)."""

import json
import math
import re
from functools import lru_cache
from typing import NamedTuple

from hlofuse.analysis.launches import parsed_fusion_config
from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import values
from hlofuse.ir.record import Json
from hlofuse.releases import AROUND_FUSION, Release, Span

CUSTOM = "__custom_fusion"
TRITON = "__triton"
CUDNN = "__cudnn$fusion"
_TRITON_KINDS = frozenset({TRITON, "__triton_gemm", "__triton_nested_gemm_fusion", "__triton_collective"})


class FusionConfig(NamedTuple):
    """Kind of the fusion, and its block-level parameters where it has some."""

    kind: str = ""
    tile_sizes: tuple[tuple[int, ...], ...] = ()
    num_warps: int = 0
    num_stages: int = 0  # The loop steps of a dot in flight at once; 0 where not given

    @property
    def is_triton(self) -> bool:
        """True for every kind that the Triton emitter takes."""
        return self.kind in _TRITON_KINDS


def fusion_config(instruction: Instruction) -> FusionConfig | None:
    """The config; None where the instruction has no backend config."""
    text = instruction.raw("backend_config")
    return None if text is None else _parse(text)


def is_generic_triton_fusion(instruction: Instruction) -> bool:
    """True where PriorityFusion may still fuse into and out of it (`IsGenericTritonFusion`)."""
    if instruction.fusion_kind != "kCustom":
        return False
    config = fusion_config(instruction)
    return config is not None and config.kind == TRITON


def is_tuned_product(instruction: Instruction) -> bool:
    """True for a Triton matrix product whose kernel and tile sizes the autotuner chooses."""
    config = fusion_config(instruction)
    return config is not None and config.kind == "__triton_gemm"


_AROUND: tuple[tuple[str, object, Span], ...] = (
    ("operation_queue_id", "0", Span()),
    ("wait_on_operation_queues", [], Span(until="0.9")),
    ("", None, Span()),  # the field that is set
    ("force_earliest_schedule", False, Span()),
    ("reification_cost", [], Span("0.6")),
    ("device_type", "DEVICE_TYPE_INVALID", Span("0.7")),
)


_NOT_SET: dict[str, Json] = {
    "gemm_backend_config": {"alpha_real": 0, "alpha_imag": 0, "beta": 0, "epilogue": "DEFAULT"}
    | {"dot_dimension_numbers": {"lhs_batch_dimensions": (), "rhs_batch_dimensions": ()}},
    "cudnn_conv_backend_config": {"activation_mode": "kNone", "conv_result_scale": 0},
}
"""Values that XLA reads where a configuration written by hand lacks them."""


def gpu_config(call: Instruction, field: str) -> Json:
    """A copy of one field of the `GpuBackendConfig` of a call."""
    config: Json = json.loads(call.raw("backend_config") or "{}")
    found: Json = _NOT_SET[field] | config.get(field, {}) if field in _NOT_SET else config[field]
    return found


def gpu_config_text(field: str, value: object, release: Release = AROUND_FUSION) -> str:
    """A `GpuBackendConfig` with one field set, as XLA of that release prints it."""
    config = {
        name or field: given if name else value
        for name, given, span in _AROUND
        if span.includes(release.name)
    }
    if field in _LAST:
        config[field] = config.pop(field)
    text = json.dumps(config, separators=(",", ":"), sort_keys=release.sorts_config_fields)
    return _FRACTION.sub(_printed_fraction, text)


_FRACTION = re.compile(r"(?<=[:,\[])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?=[,\]}])")


def _printed_fraction(match: re.Match[str]) -> str:
    """A number as protobuf writes it: with 15 digits, or 17 where those are not enough (never 16)."""
    text = match[0]
    if text.lstrip("-").isdecimal():
        return text
    value = float(text)
    short = f"{value:.15g}"
    return short if float(short) == value else f"{value:.17g}"


_LAST = values("dynamic_slice_config")  # fields with larger numbers than the always printed ones


@lru_cache(maxsize=1024)
def _parse(text: str) -> FusionConfig:
    fusion = parsed_fusion_config(text)
    block = fusion.get("block_level_fusion_config") or {}
    sizes = [tile.get("sizes", ()) for tile in block.get("output_tiles", ())]
    if "output_tile_sizes" in block:  # until 0.4.38, of the only output
        sizes = [block["output_tile_sizes"]]
    tiles = tuple(tuple(int(s) for s in tile) for tile in sizes)
    warps, stages = int(block.get("num_warps", 0)), int(block.get("num_stages", 0))
    return FusionConfig(str(fusion.get("kind", "")), tiles, warps, stages)


def printed_number(value: float) -> float:
    """A number that JSON writes as XLA does."""
    return int(value) if math.isfinite(value) and value == int(value) else value
