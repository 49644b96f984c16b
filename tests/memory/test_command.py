"""`hlofuse memory`: the figures are those of the totals, and the list is what is alive at the peak."""

from __future__ import annotations

import json

import pytest

from ..conftest import ROOT
from ..running import Run

INPUTS = ["tutorial/slow/loss", "gpu/gpt2_block", "cartpole/cpu/scan", "cpu/softmax/before.hlo"]


@pytest.mark.parametrize("name", INPUTS)
def test_the_figures_are_those_of_explain(hlofuse: Run, name: str) -> None:
    path = ROOT / "samples" / name
    found = json.loads(hlofuse("memory", path, "--format", "json").out)
    totals = json.loads(hlofuse("explain", path, "--format", "json").out)["totals"]
    memory = found["memory"]
    assert (memory["temporary"], memory["total"]) == (totals["temporary_bytes"], totals["memory_bytes"])
    assert sum(a["bytes"] for a in found["alive"]) == memory["peak"] <= memory["temporary"]
    assert found["alive"] == sorted(found["alive"], key=lambda a: -a["bytes"])


def test_the_tutorial(hlofuse: Run) -> None:
    """XLA's own module lies there: 8,914,944 bytes by its `memory_analysis()`."""
    out = hlofuse("memory", ROOT / "samples/tutorial/slow/loss", columns=120).out
    assert "13.4 MB: arguments 4.46 MB, results 4 B, temporaries 8.91 MB, constants 4 B" in out
    assert "8.91 MB alive at the peak: 3 arrays" in out
    row = next(line for line in out.splitlines() if "8.39 MB" in line)
    assert row.split() == [
        *("8.39", "MB", "ynn_fusion.2", "f32[512,4096]", "loss.py:21"),
        *("broadcast_select_fusion", "at", "loss.py:22"),
    ]
    assert "1 more" in hlofuse("memory", ROOT / "samples/tutorial/slow/loss", "--limit", "2").out


def test_a_module_that_is_not_final_has_no_figures(hlofuse: Run) -> None:
    result = hlofuse("memory", ROOT / "samples/gpu/gpt2_block/after.hlo", "--device", "h100_sxm")
    assert result.status in (0, 2)
    assert result.status == 0 or "needs the module that runs" in result.err
