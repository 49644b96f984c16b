"""XLA:GPU's fusion passes, for a pass ahead of them that asks what they would do (`FusionPipeline`)."""

from __future__ import annotations

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Module
from hlofuse.passes.registry import make_pass
from hlofuse.trace import Recorder

_PASSES = (
    "variadic-op-splitter",
    "sort-iota-fusion",
    "priority-fusion",
    "cse",
    "dce",
    "multi_output_fusion",
    "cse",
    "dce",
)


def fused(module: Module, device: DeviceDescription) -> None:
    """Run them on `module`."""
    recorder = Recorder()
    for name in _PASSES:
        make_pass(name, "gpu", device=device).run(module, recorder)
