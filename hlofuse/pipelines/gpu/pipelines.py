"""What XLA:GPU runs ahead of its fusion passes, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPreSPMDPartitionerPasses` to `OptimizeHloPostLayoutAssignment`, and what `nvptx_compiler.cc` puts before,
between and behind, with the options that are on by default, for one partition and compiled ahead of time.
Passes that concern several partitions, host memory or element types smaller than a byte are left out: here
they change nothing.
"""

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.base import Pipeline
from hlofuse.passes.control_flow.annotations import AllReduceSimplifier, ShardingRemover, ShardyXLA
from hlofuse.passes.control_flow.call_graph import FlattenCallGraph
from hlofuse.passes.copy_insertion.buffer_alias import OptimizeInputOutputBufferAlias
from hlofuse.passes.dot.dot_dimensions import DotDimensionMerger
from hlofuse.passes.gpu.custom_calls import TriangularSolveRewriter
from hlofuse.passes.gpu.dynamic_slice_annotator import DynamicSliceAnnotator
from hlofuse.passes.gpu.dynamic_slice_fusion_rewriter import DynamicSliceFusionRewriter
from hlofuse.passes.gpu.layout_assignment import GpuLayoutAssignment
from hlofuse.passes.gpu.names import RenameInstructions
from hlofuse.passes.loop.trip_count import WhileLoopTripCountAnnotator
from hlofuse.pipelines.gpu.after_layouts import (
    LAYOUT_NORMALIZATION,
    normalization,
    post_layout_assignment,
)
from hlofuse.pipelines.gpu.before_layouts import PRE_SPMD, convolutions, optimization
from hlofuse.pipelines.gpu.steps import DCE


def before_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. No flag changes the list."""
    if device is None or device.platform != "CUDA":
        return ()
    return (
        PRE_SPMD,
        Pipeline("spmd-partitioner", (ShardyXLA(),)),
        Pipeline("sharding-removal", (ShardingRemover(), DCE)),
        optimization(device),
        Pipeline(
            "collective-optimizations", (AllReduceSimplifier(), DCE, DCE, WhileLoopTripCountAnnotator())
        ),
        convolutions(device),
        Pipeline(
            "layout_assignment",
            (FlattenCallGraph(), GpuLayoutAssignment(device), OptimizeInputOutputBufferAlias()),
        ),
        LAYOUT_NORMALIZATION,
        Pipeline("nvptx_post-layout_assignment_part_1", (DotDimensionMerger(),)),
        normalization(device),
        post_layout_assignment(device),
        Pipeline("nvptx_post-layout_assignment_part_2", (TriangularSolveRewriter(),)),
        Pipeline("dynamic-slice", (DynamicSliceAnnotator(), DynamicSliceFusionRewriter())),
        Pipeline("pre-fusion", (RenameInstructions(),)),
    )
