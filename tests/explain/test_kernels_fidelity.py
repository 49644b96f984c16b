"""Who runs a kernel, and its launch dimensions, as XLA's own dumps have them."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.reports.kernels import Choice, kernel_selection
from ..fixtures import texts_of

DATA = Path(__file__).parent.parent / "data" / "kernels.tar.xz"
GPU = ("h100_sxm", "v100", "b200")
THUNKS = {
    "memcpy": {"kCopy", "kDynamicSliceFusion"},
    "cuBLASLt": {"kCublasLtMatmul"},
    "cuDNN": {"kConvolution"},
    "cuFFT": {"kFft"},
    "CUB": {"kCustomCall"},
    "cuSOLVER": {"kCustomCall", "kTriangularSolve"},
    "custom call": {"kCustomCall"},
}
"""What XLA calls it; everything else is a kCustomKernel, code that XLA or Triton wrote."""
LIBRARIES = {"YNNPACK", "Eigen", "custom call", "memcpy", "sort"}


@cache
def answered() -> dict[str, tuple[str, dict[str, Any]]]:
    """DEVICE/NAME to the optimised module and what XLA made of it."""
    return {name: (f["after.hlo"], json.loads(f["answer.json"])) for name, f in texts_of(DATA).items()}


def kernels_of(name: str) -> tuple[Choice, ...]:
    device, _, _ = name.partition("/")
    module = parse_module(answered()[name][0])
    if device == "cpu":
        return kernel_selection(module, "cpu", RELEASE).kernels
    return kernel_selection(module, "gpu", RELEASE, device=load_device(device)).kernels


def named_after(kernel: Choice) -> str:
    """The heroes in the name that XLA's RenameFusions gave it."""
    stem = re.sub(r"[.\d]+$", "", kernel.name)
    return re.sub(r"^(loop|input|wrapped)_|_fusion.*$", "", stem)


@pytest.mark.parametrize("device", GPU)
def test_on_gpu(device: str) -> None:
    count: Counter[str] = Counter()
    differing: list[tuple[object, ...]] = []
    for name in sorted(n for n in answered() if n.startswith(device)):
        thunks = answered()[name][1]
        for k in kernels_of(name):
            count["kernels"] += 1
            ran = {kind for kind, _, _ in thunks.get(k.name, ())}
            if not ran & THUNKS.get(k.run_by, {"kCustomKernel"}):
                differing.append((name, k.name, k.run_by, ran))
            elif k.blocks is not None:
                count["launched"] += 1
                grids = {(blocks, threads) for _, blocks, threads in thunks[k.name]}
                if grids != {(k.blocks, k.threads)}:
                    differing.append((name, k.name, k.run_by, grids, k.blocks, k.threads))
            if k.kind in ("kLoop", "kInput"):
                count["named"] += 1
                if named_after(k) != "_".join(k.heroes).replace("-", "_"):
                    differing.append((name, k.name, k.heroes))
    # Copies that joined this kernel after XLA had named it.
    assert differing == [(f"{device}/lstm_scan", "loop_broadcast_fusion.1", ("broadcast", "copy"))]
    assert (count["kernels"], count["launched"], count["named"]) == {
        "h100_sxm": (424, 393, 231),
        "v100": (501, 336, 339),
        "b200": (421, 390, 228),
    }[device]


def test_on_cpu() -> None:
    """Whose code XLA made: the tiled emitter's files are named otherwise, libraries have none."""
    count: Counter[str] = Counter()
    for name in sorted(n for n in answered() if n.startswith("cpu/")):
        created = answered()[name][1]
        for k in kernels_of(name):
            files = created.get(k.name)
            if k.run_by in LIBRARIES:
                assert files is None, (name, k.name, k.run_by)
                count["library"] += 1
            elif files is not None:  # else it shares the code of a kernel like it
                assert (files == "tiled") == (k.run_by == "tiled emitter"), (name, k.name, k.run_by)
                count[files] += 1
    assert count == {"library": 311, "tiled": 93, "emitted": 286}
