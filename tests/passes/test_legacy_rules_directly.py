"""Rules of gpu-legacy that no module reaches as XLA hands it to them: asked with modules of our own."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_expensive
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.merging import MergingModel
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.releases import release_of
from hlofuse.rules.fusion_heroes import heroes_verdict
from hlofuse.rules.gpu_instruction_fusion import (
    GpuFusionState,
    GpuPair,
    producer_has_several_results,
    producer_is_scatter,
)
from hlofuse.rules.settings import AS_XLA, Settings
from ..fixtures import companion_texts
from ..running import find

TEXTS = companion_texts(__file__)

RELEASE = release_of("0.4.35")


def pair(module: Module, producer: str, consumer: str) -> GpuPair:
    model = MergingModel(load_device("v100"), RELEASE)
    state = GpuFusionState(True, RELEASE, AS_XLA, is_expensive, model=model)
    p, c = find(module, producer), find(module, consumer)
    return GpuPair(p, c, c.operands.index(p), state)


SCATTER = TEXTS["scatter"]


def test_nothing_follows_a_scatter() -> None:
    module = parse_module(SCATTER)
    verdict = producer_is_scatter(pair(module, "s", "abs"))
    assert verdict is not None
    assert verdict.reason == "do not fuse into the output of scatter"
    assert producer_is_scatter(pair(module, "abs", "neg")) is None


SEVERAL = TEXTS["several"]


def test_a_multi_output_fusion_is_no_producer() -> None:
    module = parse_module(SEVERAL)
    assert producer_has_several_results(pair(module, "f", "g")) is not None
    assert producer_has_several_results(pair(module, "g", "e")) is None


UNTILED = TEXTS["untiled"]


def test_a_tiled_transpose_stays_at_the_end() -> None:
    module = parse_module(UNTILED)
    model = MergingModel(load_device("v100"), RELEASE)
    f, c, d = (find(module, name) for name in "fcd")
    assert heroes_verdict(f, c, model, Settings()) is None
    for first, second in ((f, d), (d, f)):
        verdict = heroes_verdict(first, second, model, Settings())
        assert verdict is not None
        assert verdict.reason == "tiled transpose would become untiled"
