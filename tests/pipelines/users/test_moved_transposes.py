"""Values that the program transposes for several operations or behind them, as XLA says (h100_sxm)."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.common.visits import uses_in_order
from hlofuse.pipelines.users.simplified.moved_reshapes import with_moved_in_front

from .lists import HEAD, named, places_in_source, users_of

_AHEAD = ((11, 42), (52, 75), (44, 76))
"""`x.transpose(0, 2, 1, 3) * 0.125, nn.relu(x.transpose(0, 3, 2, 1))`; a column has one place."""
_BEHIND = ((12, 21), (11, 44), (46, 56))
"""`(x * 0.125).transpose(0, 2, 1, 3), nn.relu(x).transpose(0, 3, 2, 1)`"""
_BEHIND_ONE = ((12, 21), (11, 44), (54, 77), (46, 78))
"""`(x * 0.125).transpose(0, 2, 1, 3), nn.relu(x.transpose(0, 3, 2, 1))`"""


@pytest.mark.parametrize(
    ("places", "users"),
    [
        (_AHEAD, ["transpose.2", "transpose.1"]),
        (_BEHIND, ["transpose.1", "transpose.2"]),
        (_BEHIND_ONE, ["transpose.1", "transpose.2"]),
    ],
)
def test_the_last_takes_the_place_of_transposes_that_were_moved_behind(
    places: tuple[tuple[int, int], ...], users: list[str]
) -> None:
    """The modules are equal but for the tables."""
    tables = places_in_source(*(("f", 6, start, end) for start, end in places))
    body = f"""  %x = f32[16,128,12,64]{{3,2,1,0}} parameter(0), metadata={{op_name="x"}}
  %c = f32[] constant(0.125)
  %zero = f32[] constant(0)
  %transpose.1 = f32[16,12,128,64]{{3,2,1,0}} transpose(%x), dimensions={{0,2,1,3}}, metadata={{op_name="x"}}
  %factor = f32[16,12,128,64]{{3,2,1,0}} broadcast(%c), dimensions={{}}{named("mul", frame=1)}
  %mul.1 = f32[16,12,128,64]{{3,2,1,0}} multiply(%transpose.1, %factor){named("mul", frame=1)}
  %transpose.2 = f32[16,64,12,128]{{3,2,1,0}} transpose(%x), dimensions={{0,3,2,1}}, metadata={{op_name="x"}}
  %bound = f32[16,64,12,128]{{3,2,1,0}} broadcast(%zero), dimensions={{}}{named("max", frame=len(places))}
  %max.1 = f32[16,64,12,128]{{3,2,1,0}} maximum(%transpose.2, %bound){named("max", frame=len(places))}
  ROOT %r = (f32[16,12,128,64]{{3,2,1,0}}, f32[16,64,12,128]{{3,2,1,0}}) tuple(%mul.1, %max.1)"""
    assert users_of("x", body, tables=tables) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [(2, ["transpose.1", "sub.2", "max.1", "max.2"]), (3, ["transpose.1", "max.1", "sub.2", "max.2"])],
)
def test_what_is_computed_of_an_argument_takes_the_place_of_the_transpose_given(
    frame: int, users: list[str]
) -> None:
    """`g(x), g(x.T)`, where `g` reduces as well; of the second the reduction was made anew before."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %low = f32[] parameter(1)
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %max.1 = f32[8]{{0}} reduce(%mul.1, %low), dimensions={{1}}, to_apply=%sum{named("jit(g)/max", frame=1)}
  %max.2 = f32[8]{{0}} reduce(%mul.1, %low), dimensions={{0}}, to_apply=%sum{named("jit(g)/max", frame=frame)}
  %spread.2 = f32[8,8]{{1,0}} broadcast(%max.2), dimensions={{0}}{named("jit(g)/sub", frame=2)}
  %sub.2 = f32[8,8]{{1,0}} subtract(%mul.1, %spread.2){named("jit(g)/sub", frame=2)}
  %exp.2 = f32[8,8]{{1,0}} exponential(%sub.2){named("jit(g)/exp", frame=2)}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%max.1, %exp.2, %transpose.1)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    by_name = {x.name: x for x in entry}
    listed = [by_name[name] for name in ("transpose.1", "max.1", "sub.2", "max.2")]
    passes = by_name["max.2"].id
    moved = with_moved_in_front(by_name["mul.1"], listed, passes, {}, uses_in_order(entry))
    assert [u.name for u in moved] == users
