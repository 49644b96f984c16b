"""What one replay has worked out of costs serves the next, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.compilation import compile
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.ir import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE

SAMPLES = Path(__file__).parents[3] / "samples" / "gpu"


@pytest.mark.parametrize("sample", ["gpt2_block", "softmax"])
def test_replays_that_share_costs_decide_alike(sample: str) -> None:
    module = parse_module((SAMPLES / sample / "before.hlo").read_text())
    alone = {name: compile(module, "gpu", device=name) for name in ("h100_sxm", "v100")}
    cached = SharedTables()
    for name in ("h100_sxm", "v100", "h100_sxm"):
        assert compile(module, "gpu", device=load_device(name), cache=cached).events == alone[name].events


def test_a_second_replay_tiles_nothing_anew() -> None:
    module = parse_module((SAMPLES / "gpt2_block" / "before.hlo").read_text())
    device, cached = load_device("h100_sxm"), SharedTables()
    evaluated = []
    for _ in range(2):
        compile(module, "gpu", device=device, cache=cached)
        tiling = cached.tables("CombinedModel", device, RELEASE).tiling
        assert tiling is not None
        evaluated.append(len(tiling._best) + len(tiling._fixed))
    assert evaluated[0] == evaluated[1] > 0


def test_a_tiling_that_was_found_best_costs_what_it_would_cost_anew() -> None:
    module = parse_module((SAMPLES / "gpt2_block" / "before.hlo").read_text())
    device, cached = load_device("h100_sxm"), SharedTables()
    after = compile(module, "gpu", device=device, cache=cached).after
    tiling = cached.tables("CombinedModel", device, RELEASE).tiling
    assert tiling is not None
    fusions = [x for x in after.entry if is_generic_triton_fusion(x)]
    assert fusions
    for fusion in fusions:
        assert tiling.run_time(fusion) == TilingModel(device, RELEASE).run_time(fusion)
