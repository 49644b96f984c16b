"""A what-if run: another value for a knob, a rule switched off; and the pipelines themselves."""

from __future__ import annotations

import pytest

from hlofuse.compilation import compile, replay_config
from hlofuse.ir import parse_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.passes import make_pass
from hlofuse.pipelines import TARGETS, passes_of
from hlofuse.releases import AROUND_FUSION as RELEASE

SOFTMAX = """HloModule m
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}
ENTRY e {
  p = f32[64,16] parameter(0)
  low = f32[] constant(-inf)
  n = f32[64,16] negate(p)
  m = f32[64] reduce(n, low), dimensions={1}, to_apply=most
  b = f32[64,16] broadcast(m), dimensions={0}
  s = f32[64,16] subtract(n, b)
  ROOT x = f32[64,16] exponential(s)
}
"""


def kernels(*, disable: tuple[str, ...] = (), overrides: tuple[str, ...] = ()) -> int:
    after = compile(parse_module(SOFTMAX), replay_config("cpu", overrides=overrides, disable=disable)).after
    return sum(i.opcode == "fusion" for i in after.entry)


def test_a_device_for_a_target_without_devices_is_a_mistake() -> None:
    with pytest.raises(HlofuseError, match="target cpu fuses the same on every device; --device needs"):
        compile(parse_module(SOFTMAX), device="h100_sxm")


def test_a_rule_switched_off_lets_the_next_one_decide() -> None:
    # Input, row maximum and shifted exponential; without the softmax rule the input is copied.
    assert kernels() == 3
    assert kernels(disable=("CPU017",)) == 2
    assert kernels(disable=("CPU017", "CPU007")) == 1


def test_a_knob_moves_the_limit() -> None:
    text = """HloModule m
ENTRY e {
  p = f32[8,64] parameter(0)
  q = f32[8,64] parameter(1)
  c = f32[8,128] concatenate(p, q), dimensions={1}
  ROOT n = f32[8,128] negate(c)
}
"""

    def fused(*overrides: str) -> list[str]:
        result = compile(parse_module(text), replay_config("cpu", overrides=overrides))
        return [e.event for e in result.passes[0].events]

    assert "fuse" not in fused()
    assert "fuse" in fused("cpu-min-minor-concatenate=129")


def test_a_pass_prints_as_it_is_written() -> None:
    for target in TARGETS.values():
        for steps in (target.steps, *target.options.values()):
            texts = [step.text for step in steps]
            assert [str(make_pass(p, target.name, RELEASE)) for p in texts] == texts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fusions", "target cpu has no pass 'fusions'; expected one of cpu_multi_output_fusion"),
        ("fusion(may_duplicates=false)", "no option 'may_duplicates'; expected one of may_duplicate"),
    ],
)
def test_a_wrong_pass_is_said_to_be_one(text: str, message: str) -> None:
    with pytest.raises(HlofuseError, match=message.replace("(", r"\(")):
        make_pass(text, "cpu", RELEASE)


def test_a_wrong_target_or_option_is_said_to_be_one() -> None:
    with pytest.raises(HlofuseError, match="no target 'tpu'; expected one of cpu, gpu"):
        passes_of("tpu", RELEASE)
    with pytest.raises(HlofuseError, match="target cpu has no option 'mof'; expected one of multi-output"):
        passes_of("cpu", RELEASE, "mof")
