"""Profiles that the tests share: one recorded on a CPU, one of a GPU as xprof writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.inputs import load
from ..fixtures import unpacked
from .writing import gpu_profile

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `record.py` recorded on a CPU: three programs, three runs each."""
    return unpacked(DATA / "profiles.tar.xz", tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `capture --run` wrote on an H200 with jaxlib 0.11.2: three programs, two runs each."""
    return unpacked(DATA / "h200.tar.xz", tmp_path_factory.mktemp("h200"))


def final_module(folder: Path) -> Path:
    """XLA's own final module of the GPT-2 block."""
    return next(folder.glob("*gpu_after_optimizations.txt"))


@pytest.fixture(scope="module")
def on_gpu(gpt2_whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile in which every kernel of XLA's final module takes as many microseconds as it has letters."""
    from hlofuse.account import Account

    module = load(final_module(gpt2_whole))
    names = [r.instruction.name for r in Account(module, backend="gpu").rows]
    kernels = [(n, n.replace(".", "_"), 100 * k, len(n)) for k, n in enumerate([*names, *names])]
    path = tmp_path_factory.mktemp("gpu") / "host.xplane.pb"
    path.write_bytes(gpu_profile(kernels, module.name))
    return path
