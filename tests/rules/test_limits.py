"""Limits of PriorityFusion hold on both sides of their number."""

from __future__ import annotations

import pytest

from hlofuse.compilation import compile, replay_config
from hlofuse.ir import parse_module
from hlofuse.rules.priority_fusion.conditions import over_parameter_limit
from .test_rule_files import CASES

SHARED = """HloModule m

ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  p = f32[8] add(x, y)
  ROOT c = f32[8] multiply(p, x)
}
"""


@pytest.mark.parametrize(("limit", "fits"), [(4, True), (3, False)])
def test_the_two_are_no_inputs_of_their_fusion(limit: int, fits: bool) -> None:
    """Together they read x and y and have two results, as `FusionFitsInParameterLimit` counts."""
    module = parse_module(SHARED)
    consumer, producer = module.entry.root, module.entry.root.operands[0]
    settings = replay_config("gpu", "h100_sxm", overrides=[f"gpu-max-operands-and-outputs={limit}"]).settings
    verdict = over_parameter_limit(consumer, producer, settings, producer_consumer=False)
    assert (verdict is None) == fits


def test_code_of_the_allowed_size_is_fused() -> None:
    """Code above the limit is refused, code at it is not."""
    case = next(c for c in CASES if c.path.stem == "PF013" and "PF013" in c.values("applied"))

    def refused(*overrides: str) -> set[int]:
        config = replay_config("gpu", case.options["device"], overrides=overrides)
        events = compile(case.module(), config).events
        return {e.figures["instructions"] for e in events if e.rule == "PF013"}

    smallest = min(refused())
    assert smallest not in refused(f"gpu-max-ir-size={smallest}")
    assert smallest in refused(f"gpu-max-ir-size={smallest - 1}")
