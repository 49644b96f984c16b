"""Values that several operations broadcast alike, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_BODY = """  %p = f32[8,4]{1,0} parameter(0)
  %q = f32[2,8,4,1]{3,2,1,0} parameter(1)
  %k = f32[2,4,1,8]{3,2,1,0} parameter(2)
  %cos.1 = f32[8,4]{1,0} cosine(%p)NAME_X
  %broadcast.1 = f32[2,8,4,1]{3,2,1,0} broadcast(%cos.1), dimensions={1,2}NAME_B
  %multiply.1 = f32[2,8,4,1]{3,2,1,0} multiply(%q, %broadcast.1)NAME_M
  %transpose.1 = f32[4,8]{1,0} transpose(%cos.1), dimensions={1,0}NAME_X
  %broadcast.2 = f32[2,4,1,8]{3,2,1,0} broadcast(%transpose.1), dimensions={1,3}NAME_B
  %multiply.2 = f32[2,4,1,8]{3,2,1,0} multiply(%k, %broadcast.2)NAME_M
  ROOT %r = (f32[2,8,4,1]{3,2,1,0}, f32[2,4,1,8]{3,2,1,0}) tuple(%multiply.1, %multiply.2)"""
_IDS = "p q k cos.1 r broadcast.1 multiply.1 transpose.1 broadcast.2 multiply.2"


def _listed(reader: str) -> list[str]:
    names = {"NAME_X": named("jvp()/cos"), "NAME_B": named("jvp()/mul"), "NAME_M": named(reader)}
    body = _BODY
    for place, name in names.items():
        body = body.replace(place, name)
    return users_of("cos.1", body, ids=_IDS)


def test_a_broadcast_in_another_layout_may_be_of_the_same_expansion() -> None:
    """The last user takes the place of the reshape that put the dimensions in."""
    assert _listed("jvp()/mul") == ["transpose.1", "broadcast.1"]


def test_of_broadcasts_made_anew_for_a_derivative_as_well_the_first_stay() -> None:
    assert _listed("transpose(jvp())/mul") == ["broadcast.1", "transpose.1"]


@pytest.mark.parametrize("at", ["%zero, %zero", "%i, %zero"], ids=["known", "computed"])
def test_a_window_that_is_updated_by_a_scatter_comes_behind(at: str) -> None:
    """The loop that took it out of the array had the place of scatter, its body came behind."""
    is_known = at.startswith("%zero")
    window = (
        "slice(%x), slice={[0:1], [0:2]}"
        if is_known
        else f"dynamic-slice(%x, {at}), dynamic_slice_sizes={{1,2}}"
    )
    body = f"""  %p = f32[4,2]{{1,0}} parameter(0)
  %i = s32[] parameter(1)
  %update = f32[1,2]{{1,0}} parameter(2)
  %zero = s32[] constant(0)
  %x = f32[4,2]{{1,0}} tanh(%p)
  %window.1 = f32[1,2]{{1,0}} {window}
  %slice.1 = f32[2,2]{{1,0}} slice(%x), slice={{[0:2], [0:2]}}{named("slice")}
  %sum.1 = f32[1,2]{{1,0}} add(%window.1, %update)
  %new.1 = f32[4,2]{{1,0}} dynamic-update-slice(%x, %sum.1, {at}){named("scatter-add", frame=7)}
  %exp.1 = f32[4,2]{{1,0}} exponential(%x){named("exp")}
  ROOT %r = (f32[2,2]{{1,0}}, f32[4,2]{{1,0}}, f32[4,2]{{1,0}}) tuple(%slice.1, %new.1, %exp.1)"""
    assert users_of("x", body) == ["slice.1", "new.1", "exp.1", "window.1"]


def test_what_goes_on_from_the_ends_of_rows_comes_before_what_is_added_to_them() -> None:
    """ReduceWindowRewriter calls a function for each element, which is young as it was inlined."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %one = f32[] constant(1)
  %rows.1 = f32[8,16]{{1,0}} reduce-window(%p, %one), window={{size=1x16 pad=0_0x15_0}}, to_apply=%sum
  %ends.1 = f32[8,1]{{1,0}} slice(%rows.1), slice={{[0:8], [15:16]}}
  %end.1 = f32[8]{{0}} bitcast(%ends.1)
  %all.1 = f32[8]{{0}} reduce-window(%end.1, %one), window={{size=8 pad=7_0}}, to_apply=%sum
  %before.1 = f32[8,16]{{1,0}} broadcast(%all.1), dimensions={{0}}
  %mul.1 = f32[8,16]{{1,0}} multiply(%rows.1, %before.1){named("mul")}
  ROOT %r = (f32[8,16]{{1,0}}, f32[8,16]{{1,0}}) tuple(%mul.1, %p)"""
    ids = "p one r rows.1 ends.1 end.1 all.1 before.1 mul.1"
    assert users_of("rows.1", body, ids=ids) == ["ends.1", "mul.1"]
