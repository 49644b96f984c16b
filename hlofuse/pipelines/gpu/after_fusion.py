"""What XLA:GPU runs after its fusion passes, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPostFusionPasses` to `RunPostSchedulingPipelines`, with the options that are on by default.
"""

from __future__ import annotations

from functools import partial

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.base import Pipeline, UnimplementedPass
from hlofuse.passes.copy_insertion.copy_insertion import CopyInsertion
from hlofuse.passes.copy_insertion.gpu_alias_info import GpuAliasInfo
from hlofuse.passes.copy_insertion.loop_schedule_linearizer import LoopScheduleLinearizer
from hlofuse.passes.copy_insertion.post_scheduling import PostSchedulingCopyInsertion
from hlofuse.pipelines.gpu.steps import DCE, TUPLES


def after_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. No flag changes the list."""
    if device is None or device.platform != "CUDA":
        return ()
    alias_info = partial(GpuAliasInfo, device)
    return (
        Pipeline(
            "post-fusion_optimization",
            (
                UnimplementedPass("rename_fusions"),
                UnimplementedPass("dus-accumulator-zero-init-elimination"),
                DCE,
                TUPLES,
            ),
        ),
        Pipeline(
            "post-fusion-simplification-pipeline_optimization",
            (UnimplementedPass("algsimp"), UnimplementedPass("computation-deduplicator")),
        ),
        Pipeline("autotuner", (UnimplementedPass("fusion-wrapper"), UnimplementedPass("autotuner"))),
        Pipeline(
            "pre-scheduling-copy-insertion",
            (DCE, LoopScheduleLinearizer(), CopyInsertion(alias_info), UnimplementedPass("copy_fusion")),
        ),
        Pipeline("scheduled-gpu-module", (PostSchedulingCopyInsertion(alias_info),)),
        Pipeline("post-scheduling-passes", (UnimplementedPass("sanitize-constant-names"),)),
    )
