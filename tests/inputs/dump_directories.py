"""Dump directories made up for the purpose: their files have the names that XLA gives them."""

from __future__ import annotations

from pathlib import Path

PIPELINE = "HLO_passes_after_layout_assignment"
FULL = [
    "before_optimizations",
    "0000.simplification.after_pipeline-start.before_algsimp",
    f"0001.{PIPELINE}.after_pipeline-start.before_after_layout_assignment",
    "0002.after_layout_assignment.after_pipeline-start.before_pipeline-end",
    f"0003.{PIPELINE}.after_fusion.before_fusion-wrapper",
    f"0004.{PIPELINE}.after_fusion-wrapper.before_cpu-all-reduce-combiner",
    "0005.simplification_after_layout_assignment.after_pipeline-start.before_algsimp",
    f"0006.{PIPELINE}.after_copy-insertion.before_dce",
    "cpu_after_optimizations",
    "cpu_after_optimizations-buffer-assignment",
]


def module_text(name: str) -> str:
    return f"HloModule {name}\n\nENTRY %main () -> f32[] {{\n  ROOT %c = f32[] constant(1)\n}}\n"


def dump(
    folder: Path, stages: list[str], module: str = "jit_f", number: int = 0, ending: str = "txt"
) -> Path:
    for stage in stages:
        # The module is named after its stage, so that a test sees which one was taken.
        name = "s" + stage.split(".")[0]
        (folder / f"module_{number:04d}.{module}.{stage}.{ending}").write_text(module_text(name))
    return folder
