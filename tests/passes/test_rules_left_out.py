"""PriorityFusion asks of a pair only the rules that can object: what it leaves out has nothing to say."""

from __future__ import annotations

from typing import Any

import pytest

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.rules.instruction_fusion import FusionState
from hlofuse.rules.priority_fusion import (
    OF_CONSUMER,
    OF_PRODUCER,
    STRUCTURE_RULES,
    Limits,
    PriorityPair,
    PriorityState,
    rules_of_one,
    structure_rules,
)
from hlofuse.rules.settings import Settings, first_verdict

TEXT = """HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (x: f32[512,512], y: f32[512,512], z: f32[512,512]) -> (f32[512], f32[512,512], f32[512,512]) {
  %x = f32[512,512]{1,0} parameter(0)
  %y = f32[512,512]{1,0} parameter(1)
  %z = f32[512,512]{1,0} parameter(2)
  %zero = f32[] constant(0)
  %product = f32[512,512]{1,0} multiply(%x, %y)
  %turned = f32[512,512]{1,0} transpose(%product), dimensions={1,0}
  %select = f32[512,512]{1,0} add(%turned, %z)
  %rows = f32[512]{0} reduce(%select, %zero), dimensions={1}, to_apply=%add
  %wide = f32[512,512]{1,0} broadcast(%rows), dimensions={0}
  %again = f32[512]{0} reduce(%wide, %zero), dimensions={0}, to_apply=%add
  %product2 = f32[512,512]{1,0} dot(%select, %wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %after = f32[512,512]{1,0} negate(%product2)
  %last = f32[512,512]{1,0} exponential(%after)
  ROOT %out = (f32[512]{0}, f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(%again, %last, %select)
}
"""


@pytest.mark.parametrize(
    ("knobs", "objecting"),
    [
        ({}, set()),
        ({"gpu-max-operands-and-outputs": 5.0}, set()),
        ({"gpu-max-operands-and-outputs": 4.0}, {"PF012"}),
        ({"gpu-max-unnested-reductions": 0.0}, {"PF011"}),
        ({"gpu-max-ir-size": 1.0}, {"PF013"}),
    ],
    ids=["as XLA", "parameters just fit", "parameters", "reductions", "code"],
)
def test_what_is_left_out_has_nothing_to_say(knobs: dict[str, float], objecting: set[str]) -> None:
    module = parse_module(TEXT)
    model, settings = CombinedModel(load_device("v100"), RELEASE), Settings(knobs=knobs)
    in_place = FusionState(True, RELEASE, settings, lambda _: False)
    state = PriorityState(model, settings, TritonSupport(model.device, RELEASE), model.tile, in_place)
    limits = Limits(model.device, settings)
    seen, small = set(), 0
    for consumer in module.entry:
        for producer in dict.fromkeys(consumer.operands):
            candidate = PriorityPair(producer, consumer, state)

            def verdict(rules: Any, candidate: PriorityPair = candidate) -> Any:
                return first_verdict(rules, candidate, settings)

            alone = [verdict(OF_PRODUCER), verdict(OF_CONSUMER)]
            assert [
                verdict(rules_of_one(producer, RELEASE)[0]),
                verdict(rules_of_one(consumer, RELEASE)[1]),
            ] == alone
            if alone == [None, None]:
                requested = verdict(structure_rules(producer, consumer, candidate.structure, limits))
                assert requested == verdict(STRUCTURE_RULES)
                both = (candidate.structure.producer, candidate.structure.consumer)
                if limits.admit_small and all(part.is_small for part in both):
                    assert requested is None
                    small += 1
                seen |= {requested.rule.code} if requested is not None else set()
    assert {code for code in seen if code in ("PF010", "PF011", "PF012", "PF013")} == objecting
    assert (small > 0) is limits.admit_small
