"""Modules that no earlier pass of XLA would leave, but a user may write or cut out."""

from __future__ import annotations

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import parse_module, print_module
from hlofuse.ir.errors import HlofuseError

CONTROL = """HloModule m

ENTRY e {
  p = f32[64] parameter(0)
  a = f32[64] add(p, p)
  n = f32[64] negate(a)
  ROOT c = f32[64] custom-call(n), custom_call_target="f", control-predecessors={a}
}"""

ROOT_WITH_USER = """HloModule m

ENTRY e {
  p = f32[4,3] parameter(0)
  q = f32[4,3] multiply(p, p)
  ROOT a = f32[4,3] add(q, p)
  s = f32[4,3] subtract(p, a)
}"""

PARAMETER_AS_ROOT = """HloModule m

f {
  ROOT r = s32[] parameter(0)
}

ENTRY e {
  c = s32[] constant(1)
  ROOT x = s32[] fusion(c), kind=kLoop, calls=f
}"""

UNUSED_PARAMETER = """HloModule m

f {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  ROOT r = f32[8] negate(a)
}

ENTRY e {
  p = f32[8] parameter(0)
  s = f32[8] sine(p)
  t = f32[8] add(p, p)
  ROOT x = f32[8] fusion(s, t), kind=kLoop, calls=f
}"""

TARGETS = [("cpu", None), ("gpu", "h100_sxm"), ("gpu-legacy", "a100_sxm_40")]


def test_priority_fusion_stops_where_xla_stops_at_control_dependencies() -> None:
    with pytest.raises(HlofuseError, match="cannot remove instruction: a has been fused"):
        compile(parse_module(CONTROL), "gpu", device="h100_sxm")


def test_cpu_instruction_fusion_drops_control_dependencies() -> None:
    after = compile(parse_module(CONTROL), "cpu").after
    assert [x.opcode for x in after.entry.post_order()] == ["parameter", "fusion", "custom-call"]


@pytest.mark.parametrize(("target", "device"), TARGETS)
@pytest.mark.parametrize("text", [ROOT_WITH_USER, PARAMETER_AS_ROOT, UNUSED_PARAMETER])
def test_it_is_replayed_and_can_be_read_again(text: str, target: str, device: str | None) -> None:
    after = print_module(compile(parse_module(text), target, device=device).after)
    assert print_module(parse_module(after)) == after
