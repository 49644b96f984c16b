"""What XLA:GPU runs after its fusion passes, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPostFusionPasses` to `RunPostSchedulingPipelines`, with the options that are on by default, for one
partition and compiled ahead of time. Left out are passes that change no program by default, such as those for
double buffering, asynchronous dots, rematerialization and collectives of several partitions that need no
combining, and passes that only write backend configs.
"""

from functools import partial

from hlofuse.cost.gpu.backend_config import is_tuned_product
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.base import Pass, Pipeline, UnimplementedPass
from hlofuse.passes.control_flow.annotations import OptimizationBarrierExpander
from hlofuse.passes.control_flow.call_graph import HloComputationDeduplicator, PropagateCallMetadata
from hlofuse.passes.copy_insertion.buffer_alias import GpuAliasInfo, LoopScheduleLinearizer
from hlofuse.passes.copy_insertion.copy_insertion import CopyInsertion, PostSchedulingCopyInsertion
from hlofuse.passes.fusion.fusion_wrapper import GpuFusionWrapper
from hlofuse.passes.gpu.copies import CopyFusion
from hlofuse.passes.gpu.dynamic_slice_annotator import DynamicSliceCopyFusionAsyncWrapper
from hlofuse.passes.gpu.names import RenameFusions, SanitizeConstantNames
from hlofuse.passes.gpu.triton_fusions import FusionBlockLevelRewriter
from hlofuse.pipelines.gpu.steps import ALGSIMP_AFTER_FUSION, DCE, TUPLES
from hlofuse.releases import AROUND_FUSION

_COLLECTIVES = tuple(
    (
        "all-gather all-reduce all-to-all collective-broadcast collective-permute ragged-all-to-all"
        " reduce-scatter"
    ).split()
)


def after_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. No flag changes the list."""
    if device is None or device.platform != "CUDA":
        return ()
    alias_info = partial(GpuAliasInfo, device, AROUND_FUSION)
    ampere = device.compute_capability[0] >= 8
    dispatch: tuple[Pass, ...] = (DCE, FusionBlockLevelRewriter(device)) if ampere else ()
    return (
        Pipeline(
            "post-fusion_optimization",
            (
                RenameFusions(device, AROUND_FUSION),
                UnimplementedPass("dus-accumulator-zero-init-elimination"),
                DCE,
                TUPLES,
                UnimplementedPass("gpu-all-gather-combiner", ("all-gather",)),
                UnimplementedPass("gpu-all-reduce-combiner", ("all-reduce",)),
                UnimplementedPass("gpu-reduce-scatter-combiner", ("reduce-scatter",)),
                UnimplementedPass("collective-permute-combiner", ("collective-permute",)),
            ),
        ),
        Pipeline(
            "async-collective-conversion", (UnimplementedPass("async-collective-creator", _COLLECTIVES),)
        ),
        Pipeline(
            "post-fusion-simplification-pipeline_optimization",
            (ALGSIMP_AFTER_FUSION, HloComputationDeduplicator(mark_fusions=True)),
        ),
        Pipeline(
            "autotuner",
            (
                GpuFusionWrapper(device, AROUND_FUSION),
                # On a device it measures; without one it takes XLA's defaults.
                UnimplementedPass("autotuner", ("fusion",), is_tuned_product),
                UnimplementedPass("convert_triton_gemm_config"),
            ),
        ),
        Pipeline("propagate-call-metadata", (PropagateCallMetadata(),)),
        Pipeline(
            "pre-scheduling-copy-insertion",
            (
                DCE,
                LoopScheduleLinearizer(),
                CopyInsertion(alias_info),
                CopyFusion(device, AROUND_FUSION),
                SanitizeConstantNames(),
            ),
        ),
        Pipeline(
            "pre-scheduling-passes",
            (
                GpuFusionWrapper(device, AROUND_FUSION),
                *((DynamicSliceCopyFusionAsyncWrapper(),) if ampere else ()),
                UnimplementedPass("gpu-copy-async-wrapper"),
            ),
        ),
        Pipeline("latency-hiding-scheduler", (UnimplementedPass("latency-hiding-scheduler"),)),
        # `RunPostSchedulingCopyInsertion`: what the order of execution spares.
        Pipeline("scheduled-gpu-module", (PostSchedulingCopyInsertion(alias_info),)),
        Pipeline(
            "post-scheduling-passes",
            (
                UnimplementedPass("gpu-convert-async-collectives-to-sync"),
                UnimplementedPass("rematerialization"),
                OptimizationBarrierExpander(),
                GpuFusionWrapper(device, AROUND_FUSION),
                *dispatch,
                SanitizeConstantNames(),
                UnimplementedPass("pdl-launch-annotation"),
            ),
        ),
    )
