"""A dump directory made up for the purpose: what is in the dumps of a few passes is given."""

from __future__ import annotations

import os
from pathlib import Path

SECOND = 1_000_000_000
STAGES = (
    "before_optimizations",
    "0000.simplification.after_pipeline-start.before_algsimp",
    "0001.simplification.after_algsimp.before_dce",
    "0002.fusion.after_fusion.before_pipeline-end",
    "cpu_after_optimizations",
)


def text(*lines: str) -> str:
    return "\n".join(["HloModule m", "", "ENTRY e {", "  p = f32[8]{0} parameter(0)", *lines, "}", ""])


PLAIN = text("  d = f32[8]{0} divide(p, p)", "  n = f32[8]{0} negate(d)", "  ROOT s = f32[8]{0} sqrt(n)")
SIMPLER = PLAIN.replace("divide(", "multiply(").replace(" d ", " m ").replace("(d)", "(m)")
FUSED = (
    "HloModule m\n\nf {\n  q = f32[8]{0} parameter(0)\n  m = f32[8]{0} multiply(q, q)\n"
    "  n = f32[8]{0} negate(m)\n  ROOT s = f32[8]{0} sqrt(n)\n}\n\n"
    "ENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT x = f32[8]{0} fusion(p), kind=kLoop, calls=f\n}\n"
)


def write(folder: Path, texts: tuple[str, ...], module: str = "module_0000.jit_f") -> Path:
    for k, (stage, content) in enumerate(zip(STAGES, texts, strict=True)):
        path = folder / f"{module}.{stage}.txt"
        path.write_text(content)
        os.utime(path, ns=(0, 5 * SECOND + k * SECOND // 4 + 1))
    return folder


ALL = (PLAIN, PLAIN, SIMPLER, FUSED, FUSED)
