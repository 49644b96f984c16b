"""What is filled up for a matrix product that was split, as the played passes leave it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.layouts.last_in_place import with_last_in_place_of_bitcast

from ...running import find
from .lists import HEAD, SPLIT, named, users_of


def _filled_up() -> str:
    """What a matrix product that was split reads, and a sum of it."""
    return f"""  %x = f32[120,64]{{1,0}} parameter(0)
  %y = f32[4,32,64]{{2,1,0}} parameter(1)
  %zero = f32[] constant(0)
  %add.1 = f32[120,64]{{1,0}} add(%x, %x){named("add")}
  %sum.1 = f32[64]{{0}} reduce(%add.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %pad.1 = f32[128,64]{{1,0}} pad(%add.1, %zero), padding=0_8x0_0
  %parts = f32[4,32,64]{{2,1,0}} bitcast(%pad.1)
  %gemm.1 = f32[4,64,64]{{2,1,0}} fusion(%parts, %y), kind=kCustom, calls=%gemm{named("dot_general")}
  ROOT %r = (f32[64]{{0}}, f32[4,64,64]{{2,1,0}}) tuple(%sum.1, %gemm.1)"""


def test_what_fills_a_split_product_up_was_not_laid_out_anew() -> None:
    ids = "x y zero add.1 sum.1 r parts pad.1 gemm.1"
    assert users_of("add.1", _filled_up(), head=SPLIT, ids=ids) == ["sum.1", "pad.1"]


def test_what_fills_a_split_product_up_read_what_was_laid_out_anew_first() -> None:
    x = find(parse_module(f"{HEAD}{SPLIT}\nENTRY %main {{\n{_filled_up()}\n}}\n"), "add.1")
    assert [u.name for u in with_last_in_place_of_bitcast(x, x.users)] == ["pad.1", "sum.1"]


_WHOLE = """
%whole (c: f32[120,64], d: f32[64,64]) -> f32[120,64] {
  %c = f32[120,64]{1,0} parameter(0)
  %d = f32[64,64]{1,0} parameter(1)
  ROOT %dot.2 = f32[120,64]{1,0} dot(%c, %d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_what_fills_a_split_product_up_is_older_than_grouped_reductions() -> None:
    """The derivative by the weights of a layer reads the one by its result, as that by its bias does."""
    dot = named("dot_general")
    body = f"""  %x = f32[2,60,64]{{2,1,0}} parameter(0)
  %w = f32[64,64]{{1,0}} parameter(1)
  %y = f32[4,32,64]{{2,1,0}} parameter(2)
  %zero = f32[] constant(0)
  %add.1 = f32[2,60,64]{{2,1,0}} add(%x, %x){named("add")}
  %flat = f32[120,64]{{1,0}} bitcast(%add.1){dot}
  %gemm.2 = f32[120,64]{{1,0}} fusion(%flat, %w), kind=kCustom, calls=%whole{dot}
  %sum.1 = f32[64]{{0}} reduce(%flat, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %pad.1 = f32[128,64]{{1,0}} pad(%flat, %zero), padding=0_8x0_0
  %parts = f32[4,32,64]{{2,1,0}} bitcast(%pad.1)
  %gemm.1 = f32[4,64,64]{{2,1,0}} fusion(%parts, %y), kind=kCustom, calls=%gemm{dot}
  ROOT %r = (f32[120,64], f32[64], f32[4,64,64]) tuple(%gemm.2, %sum.1, %gemm.1)"""
    assert users_of("flat", body, head=SPLIT + _WHOLE) == ["gemm.2", "pad.1", "sum.1"]
