"""The passes that XLA:GPU runs after fusion, in order (`xla/service/gpu/gpu_compiler.cc`).
`RunPostFusionPasses` to `RunPostSchedulingPipelines`, with the options that are on by default and compiled
ahead of time. Left out are passes that change no program by default, such as those for double buffering and
asynchronous dots, and passes that only write backend configs."""

from functools import partial

from hlofuse.cost.gpu.backend_config import is_tuned_product
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.passes.base import Pipeline, UnimplementedPass
from hlofuse.passes.collectives import DEFAULT_BYTES, DEFAULT_COUNT, CollectiveCombiner, overlapping
from hlofuse.passes.copy_insertion.buffer_alias import GpuAliasInfo
from hlofuse.passes.registry import since, until
from hlofuse.pipelines.flags import COMBINED_COUNT, number_of, value_of
from hlofuse.releases import AROUND_FUSION, Release
from .before_fusion import ALGSIMP_AFTER_FUSION, pass_lists

_COMBINERS = {
    "all-gather": "gpu-all-gather-combiner",
    "all-reduce": "gpu-all-reduce-combiner",
    "reduce-scatter": "gpu-reduce-scatter-combiner",
    "collective-permute": "collective-permute-combiner",
}


def combiners(flags: tuple[str, ...]) -> list[CollectiveCombiner]:
    """`AddCollectiveCombinerPasses`, with the thresholds that flags set."""
    count = number_of(flags, COMBINED_COUNT, DEFAULT_COUNT)
    found = []
    for opcode, name in _COMBINERS.items():
        kind = opcode.replace("-", "_")
        found.append(
            CollectiveCombiner(
                name=name,
                opcode=opcode,
                max_bytes=number_of(flags, f"xla_gpu_{kind}_combine_threshold_bytes", DEFAULT_BYTES),
                max_count=count,
                by_dimension=value_of(flags, f"xla_gpu_enable_{kind}_combine_by_dim") == "true",
            )
        )
    return found


def _is_loop_transpose(x: Instruction) -> bool:
    """True for what the rewriter may take until 0.6, where it takes slow transposes alone."""
    return x.raw("kind") == "kLoop" and x.fused_root.is_transpose


def after_fusion(
    device: DeviceDescription | None, flags: tuple[str, ...] = (), release: Release = AROUND_FUSION
) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. Flags set the thresholds of combiners."""
    if device is None or device.platform != "CUDA":
        return ()
    lists = pass_lists(device, release, alias_info=partial(GpuAliasInfo, device, release))
    ampere = device.compute_capability[0] >= 8
    horizontal = lists.pipeline(
        "horizontal fusion",
        until("0.4.35", "horizontal_loop_fusion"),
        since("0.4.38", "horizontal_loop_fusion(in_loops=true)"),
        "horizontal_input_fusion",
        "cse",
        "dce",
    )
    blocks = (
        until("0.6", UnimplementedPass("fusion-block-level-rewriter", ("fusion",), _is_loop_transpose)),
        since("0.7", "fusion-block-level-rewriter"),
    )
    dispatch = ("dce", *blocks) if ampere else ()
    return (
        lists.pipeline("horizontal", until("0.6", horizontal)),
        lists.pipeline(
            "post-fusion_optimization",
            "rename_fusions",
            UnimplementedPass("dus-accumulator-zero-init-elimination"),
            "dce",
            "tuple-simplifier",
            *combiners(flags),
            "all-reduce-contiguous",
        ),
        lists.pipeline("async-collective-conversion", "async-collective-creator"),
        lists.pipeline(
            "post-fusion-simplification-pipeline_optimization",
            ALGSIMP_AFTER_FUSION,
            "computation-deduplicator(mark_fusions=true)",
        ),
        lists.pipeline(
            "autotuner",
            since("0.8", "fusion-wrapper"),
            # On a device it measures; without one it takes XLA's defaults.
            UnimplementedPass("autotuner", ("fusion",), is_tuned_product),
            UnimplementedPass("convert_triton_gemm_config"),
        ),
        lists.pipeline("propagate-call-metadata", "propagate-call-metadata"),
        lists.pipeline(
            "pre-scheduling-copy-insertion",
            "dce",
            "loop-schedule-linearizer",
            "copy-insertion",
            since("0.12", "constant-fill-copy-rewriter"),
            "copy_fusion",
            until("0.6", "horizontal_loop_fusion", "dce"),
            "sanitize-constant-names",
        ),
        lists.pipeline(
            "pre-scheduling-passes",
            "fusion-wrapper",
            *(("dynamic-slice-copy-fusion-async-wrapper",) if ampere else ()),
            UnimplementedPass("gpu-copy-async-wrapper"),
        ),
        lists.pipeline(
            "latency-hiding-scheduler",
            UnimplementedPass("latency-hiding-scheduler", ("async-start",), within=overlapping),
        ),
        # `RunPostSchedulingCopyInsertion`: what the order of execution spares.
        lists.pipeline("scheduled-gpu-module", "post-scheduling-copy-insertion"),
        lists.pipeline(
            "post-scheduling-passes",
            "gpu-convert-async-collectives-to-sync",
            UnimplementedPass("rematerialization"),
            "cse_barrier_expander",
            "fusion-wrapper",
            *dispatch,
            "sanitize-constant-names",
            UnimplementedPass("pdl-launch-annotation"),
        ),
    )
