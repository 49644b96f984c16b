"""The passes that XLA:GPU runs after fusion, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPostFusionPasses` to `RunPostSchedulingPipelines`, with the options that are on by default, for one
partition and compiled ahead of time. Left out are passes that change no program by default, such as those for
double buffering, asynchronous dots, rematerialization and collectives of several partitions that need no
combining, and passes that only write backend configs.
"""

from functools import partial

from hlofuse.cost.gpu.backend_config import is_tuned_product
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.opcodes import with_trait
from hlofuse.passes.base import Pipeline, UnimplementedPass
from hlofuse.passes.copy_insertion.buffer_alias import GpuAliasInfo
from hlofuse.pipelines.gpu.steps import ALGSIMP_AFTER_FUSION, pass_lists
from hlofuse.releases import AROUND_FUSION

_COLLECTIVES = tuple(sorted(with_trait("collective")))


def after_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. No flag changes the list."""
    if device is None or device.platform != "CUDA":
        return ()
    lists = pass_lists(device, alias_info=partial(GpuAliasInfo, device, AROUND_FUSION))
    ampere = device.compute_capability[0] >= 8
    dispatch = ("dce", "fusion-block-level-rewriter") if ampere else ()
    return (
        lists.pipeline(
            "post-fusion_optimization",
            "rename_fusions",
            UnimplementedPass("dus-accumulator-zero-init-elimination"),
            "dce",
            "tuple-simplifier",
            UnimplementedPass("gpu-all-gather-combiner", ("all-gather",)),
            UnimplementedPass("gpu-all-reduce-combiner", ("all-reduce",)),
            UnimplementedPass("gpu-reduce-scatter-combiner", ("reduce-scatter",)),
            UnimplementedPass("collective-permute-combiner", ("collective-permute",)),
        ),
        lists.pipeline(
            "async-collective-conversion", UnimplementedPass("async-collective-creator", _COLLECTIVES)
        ),
        lists.pipeline(
            "post-fusion-simplification-pipeline_optimization",
            ALGSIMP_AFTER_FUSION,
            "computation-deduplicator(mark_fusions=true)",
        ),
        lists.pipeline(
            "autotuner",
            "fusion-wrapper",
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
            "copy_fusion",
            "sanitize-constant-names",
        ),
        lists.pipeline(
            "pre-scheduling-passes",
            "fusion-wrapper",
            *(("dynamic-slice-copy-fusion-async-wrapper",) if ampere else ()),
            UnimplementedPass("gpu-copy-async-wrapper"),
        ),
        lists.pipeline("latency-hiding-scheduler", UnimplementedPass("latency-hiding-scheduler")),
        # `RunPostSchedulingCopyInsertion`: what the order of execution spares.
        lists.pipeline("scheduled-gpu-module", "post-scheduling-copy-insertion"),
        lists.pipeline(
            "post-scheduling-passes",
            UnimplementedPass("gpu-convert-async-collectives-to-sync"),
            UnimplementedPass("rematerialization"),
            "cse_barrier_expander",
            "fusion-wrapper",
            *dispatch,
            "sanitize-constant-names",
            UnimplementedPass("pdl-launch-annotation"),
        ),
    )
