"""Rules of the GPU passes that no module reaches as XLA hands it to them: asked with modules of our own."""

from __future__ import annotations

from hlofuse.analysis.components import MergedOrder
from hlofuse.compilation import compile
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.rules.gpu_multi_output_fusion import (
    LoneProducer,
    MultiOutputState,
    ProducerPair,
    producer_is_multi_output,
    too_much_code,
)
from hlofuse.rules.instruction_fusion import FusionState
from hlofuse.rules.priority_fusion.conditions import PriorityPair, PriorityState, consumer_is_bitcast
from hlofuse.rules.settings import Settings
from ..fixtures import companion_texts
from ..running import find

TEXTS = companion_texts(__file__)

DEVICE = "h100_sxm"


BITCAST = TEXTS["bitcast"]


def test_nothing_is_fused_into_a_single_bitcast() -> None:
    module = parse_module(BITCAST)
    model, settings = CombinedModel(load_device(DEVICE), RELEASE), Settings()
    in_place = FusionState(True, RELEASE, settings, lambda _: False)
    state = PriorityState(model, settings, TritonSupport(model.device, RELEASE), model.tile, in_place)
    into_bitcast = PriorityPair(find(module, "neg"), find(module, "view"), state)
    into_abs = PriorityPair(find(module, "neg"), find(module, "abs"), state)
    verdict = consumer_is_bitcast(into_bitcast)
    assert verdict is not None
    assert verdict.reason == "not fusing into a single bitcast as consumer"
    assert consumer_is_bitcast(into_abs) is None


SIBLINGS = TEXTS["siblings"]


def test_a_multi_output_fusion_is_no_producer() -> None:
    module = parse_module(SIBLINGS)
    state = MultiOutputState(KernelModel(load_device(DEVICE), RELEASE), Settings(), MergedOrder(module.entry))
    assert producer_is_multi_output(LoneProducer(find(module, "f"), state)) is not None
    assert producer_is_multi_output(LoneProducer(find(module, "sum"), state)) is None
    assert "GM020" in {e.rule for e in compile(module, "gpu", device=DEVICE).events}


def test_too_much_code_for_several_results() -> None:
    module = parse_module(BITCAST)
    model = KernelModel(load_device(DEVICE), RELEASE)
    for limit, refused in ((1, True), (2, False)):
        state = MultiOutputState(model, Settings({"gpu-max-ir-size": limit}), MergedOrder(module.entry))
        verdict = too_much_code(ProducerPair(find(module, "neg"), find(module, "abs"), state))
        assert (verdict is not None) == refused
