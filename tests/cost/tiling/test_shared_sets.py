"""Fusions of one extent share what is worked out for its tilings; none may notice the others."""

from __future__ import annotations

import numpy as np

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.tiling.constraints import Tiling
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.tilings import all_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE

DEVICE = load_device("h100_sxm")


def fusion(body: str, parameter: str = "f32[64,96]{1,0}") -> Instruction:
    text = f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
c {{
  p = {parameter} parameter(0)
{body}
}}
ENTRY e {{
  p = {parameter} parameter(0)
  ROOT f = f32[64,96]{{1,0}} fusion(p), kind=kCustom, calls=c
}}"""
    return parse_module(text).entry.root


FUSIONS = [
    fusion("  ROOT r = f32[64,96]{1,0} negate(p)"),
    fusion("  ROOT r = f32[64,96]{1,0} convert(p)", "bf16[64,96]{1,0}"),
    fusion("  ROOT r = f32[64,96]{1,0} transpose(p), dimensions={1,0}", "f32[96,64]{1,0}"),
    fusion("  ROOT r = f32[64,96]{1,0} bitcast(p)", "f32[8,8,96]{2,1,0}"),
    fusion("  ROOT r = f32[64,96]{1,0} broadcast(p), dimensions={0}", "f32[64]{0}"),
    fusion("""  z = f32[] constant(0)
  s = f32[64]{0} reduce(p, z), dimensions={1}, to_apply=add
  b = f32[64,96]{1,0} broadcast(s), dimensions={0}
  ROOT r = f32[64,96]{1,0} subtract(p, b)"""),
]


def test_a_fusion_costs_the_same_after_others_of_its_extent() -> None:
    alone = [TilingModel(DEVICE, RELEASE).best_tiling(f) for f in FUSIONS]
    assert all(isinstance(tiling, Tiling) for tiling in alone)
    assert len({tiling.estimate.ticks for tiling in alone if isinstance(tiling, Tiling)}) > 3
    model = TilingModel(DEVICE, RELEASE)
    assert [model.best_tiling(f) for f in FUSIONS] == alone
    model = TilingModel(DEVICE, RELEASE)
    assert [model.best_tiling(f) for f in reversed(FUSIONS)] == alone[::-1]


def test_equal_masks_give_one_set() -> None:
    every = all_of((4, 6), 64)
    assert every.count == 3 * 4
    first = np.asarray(every.columns[0]) == 2
    part = every.where(first)
    assert part is every.where(first.copy())
    assert part.count == 4
    assert part.columns[1].tolist() == [1, 2, 4, 6]  # type: ignore[union-attr]
    assert every.where(True) is every
    assert every.where(first | True) is every
    assert every.where(False).count == 0
