"""What XLA:GPU runs after its fusion passes, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPostFusionPasses` to `RunPostSchedulingPipelines`, with the options that are on by default.
"""

from __future__ import annotations

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.base import Pipeline, UnimplementedPass
from hlofuse.pipelines.gpu.steps import DCE, TUPLES


def after_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. No flag changes the list."""
    if device is None or device.platform != "CUDA":
        return ()
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
        Pipeline("copy-insertion", (UnimplementedPass("copy-insertion"), UnimplementedPass("copy_fusion"))),
        Pipeline("post-scheduling-passes", (UnimplementedPass("sanitize-constant-names"),)),
    )
