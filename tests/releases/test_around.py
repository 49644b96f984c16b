"""The passes around fusion differ between releases: small modules, with XLA's answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hlofuse.compilation import CompilationInput, compile, replay_config
from hlofuse.ir.text.reader import parse_module
from hlofuse.pipelines.stage import Stage
from hlofuse.releases import behaviours, release_of

_SUM = "s {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
_LOOP = """HloModule m
cond {{
  s = (s32[], f32[{n}]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT less = pred[] compare(k, n), direction=LT
}}
body {{
  s = (s32[], f32[{n}]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(k, one)
  x = f32[{n}] get-tuple-element(s), index=1
  y = f32[{n}] sine(x)
  ROOT t = (s32[], f32[{n}]) tuple(next, y)
}}
ENTRY e {{
  x = f32[{n}] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[{n}]) tuple(zero, x)
  w = (s32[], f32[{n}]) while(t), condition=cond, body=body
  ROOT r = f32[{n}] get-tuple-element(w), index=1
}}"""

CASES = {
    "floats_reassociated": (
        """HloModule m
        ENTRY e {
          x = f32[] parameter(0)
          five = f32[] constant(5)
          three = f32[] constant(3)
          y = f32[] multiply(x, five)
          ROOT z = f32[] multiply(y, three)
        }""",
        {"multiply": 1},
        {"multiply": 2},
    ),
    "cpu_keeps_bf16": (
        """HloModule m
        ENTRY e {
          x = bf16[64,64] parameter(0)
          y = bf16[64,64] parameter(1)
          p = bf16[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT m = bf16[64,64] maximum(p, y)
        }""",
        {"fusion": 1, "convert": 5, "maximum": 1},
        {"fusion": 1, "maximum": 1},
    ),
    "ynn_ends_in_arithmetic": (
        "HloModule m\n"
        + _SUM
        + """ENTRY e {
          x = f32[64,128] parameter(0)
          zero = f32[] constant(0)
          y = f32[64] reduce(x, zero), dimensions={1}, to_apply=s
          ROOT b = f32[64,128] broadcast(y), dimensions={0}
        }""",
        {"fusion": 1},
        {"fusion": 1, "broadcast": 1},
    ),
}
_NOTHING = ("parameter", "constant")


def opcodes(text: str, release: str, flipped: str = "") -> dict[str, int]:
    """The operations of the entry at the fusion input."""
    config = replay_config("cpu", xla=release)
    if flipped:
        own = release_of(release)
        change: dict[str, Any] = {flipped: not getattr(own, flipped)}
        config = replace(config, mixed=replace(own, **change))
    before = compile(
        CompilationInput(parse_module(text), stage=Stage.BEFORE), config, until=Stage.INPUT
    ).before
    return dict(Counter(i.opcode for i in before.entry if i.opcode not in _NOTHING))


@pytest.mark.parametrize("name", CASES)
def test_each_release_as_xla_answered(name: str) -> None:
    text, earlier, later = CASES[name]
    assert opcodes(text, "0.11.1") == opcodes(text, "0.12.0.1", name) == earlier
    assert opcodes(text, "0.12.0.1") == opcodes(text, "0.11.1", name) == later


@pytest.mark.parametrize(
    ("release", "elements", "calls"),
    [
        ("0.4.38", 100, 0),
        ("0.11.1", 120, 1),
        ("0.11.1", 128, 0),
        ("0.12.0.1", 128, 1),
        ("0.12.0.1", 124_999_995, 1),
        ("0.12.0.1", 124_999_996, 0),
    ],
)
def test_a_loop_over_little_data_is_one_kernel(release: str, elements: int, calls: int) -> None:
    module = parse_module(_LOOP.format(n=elements))
    final = compile(
        CompilationInput(module, stage=Stage.BEFORE), replay_config("cpu", xla=release), until=Stage.SCHEDULED
    ).replayed_final
    assert sum(i.opcode == "call" for i in final.entry) == calls


def test_every_behaviour_around_fusion_has_a_case() -> None:
    assert behaviours(around=True).keys() == CASES.keys()
