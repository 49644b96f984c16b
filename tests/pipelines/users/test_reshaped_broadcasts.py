"""Broadcasts of a number that were reshaped, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_in, users_of


def _gradients(moved: str, shape: str) -> str:
    """Gradients are scaled by a number; two of them were reshaped before that."""
    return f"""  %p = f32[] parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %m = f32[2,4]{{1,0}} parameter(2)
  %n = f32[2,4]{{1,0}} parameter(3)
  %sqrt.1 = f32[] sqrt(%p){named("sqrt")}
  %mul.1 = f32[8]{{0}} broadcast(%sqrt.1), dimensions={{}}{named("mul")}
  %mul.2 = f32[8]{{0}} multiply(%q, %mul.1){named("mul")}
  %broadcast.3 = f32[2,4]{{1,0}} broadcast(%sqrt.1), dimensions={{}}{named("mul")}
  %abs.1 = f32[2,4]{{1,0}} abs(%m){named("abs")}
  %mul.50 = f32[2,4]{{1,0}} multiply(%{moved}, %broadcast.3){named("mul")}
  %bitcast.1 = {shape} bitcast(%mul.50){named("mul")}
  %mul.7 = f32[8]{{0}} multiply(%q, %mul.1){named("mul")}
  %mul.51 = f32[2,4]{{1,0}} multiply(%n, %broadcast.3){named("mul")}
  %bitcast.2 = {shape} bitcast(%mul.51){named("mul")}
  %mul.10 = f32[8]{{0}} multiply(%q, %mul.1){named("mul")}
  %mul.16 = f32[8]{{0}} multiply(%q, %mul.1){named("mul")}
  %mul.12 = f32[3]{{0}} broadcast(%sqrt.1), dimensions={{}}{named("mul")}
  %mul.14 = f32[5]{{0}} broadcast(%sqrt.1), dimensions={{}}{named("mul")}
  ROOT %r = tuple(%mul.2, %bitcast.1, %mul.7, %bitcast.2, %mul.10, %mul.16, %mul.12, %mul.14)""".replace(
        "%r = ", f"%r = (f32[8], {shape}, f32[8], {shape}, f32[8], f32[8], f32[3], f32[5]) "
    )


@pytest.mark.parametrize(
    ("shape", "users"),
    [
        ("f32[8]{0}", ["mul.1", "mul.14", "mul.12", "broadcast.3"]),
        ("f32[4,2]{1,0}", ["mul.1", "broadcast.3", "mul.14", "mul.12"]),
    ],
    ids=["what another is", "something else"],
)
def test_what_is_made_of_a_reshape_comes_last(shape: str, users: list[str]) -> None:
    assert users_of("sqrt.1", _gradients("m", shape)) == users


@pytest.mark.parametrize(
    ("moved", "users"),
    [("m", ["mul.2", "mul.16", "mul.7", "mul.10"]), ("abs.1", ["mul.2", "mul.10", "mul.7", "mul.16"])],
    ids=["as reshapes were one", "as they were not yet"],
)
def test_the_last_takes_the_place_of_the_reshape(moved: str, users: list[str]) -> None:
    assert users_of("mul.1", _gradients(moved, "f32[8]{0}")) == users


@pytest.mark.parametrize(
    ("name", "users"), [("ge", ["lt.1", "ne.1", "ge.1"]), ("gt", ["lt.1", "ge.1", "ne.1"])]
)
def test_bounds_of_an_index_stand_behind_where_a_call_brought_the_number_in(
    name: str, users: list[str]
) -> None:
    """The broadcast, of no operation that is told, is younger than the root; so are passes' others."""
    body = f"""  %p = s32[4]{{0}} parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %zero = s32[] constant(0)
  %zeros.1 = s32[4]{{0}} broadcast(%zero), dimensions={{}}
  %lt.1 = pred[4]{{0}} compare(%p, %zeros.1), direction=LT{named("lt")}
  %at.1 = s32[4]{{0}} negate(%p){named("neg")}
  %ge.1 = pred[4]{{0}} compare(%at.1, %zeros.1), direction=GE{named(name)}
  %index.1 = s32[4,1]{{1,0}} bitcast(%at.1){named("broadcast_in_dim")}
  %gather.1 = f32[4]{{0}} gather(%x, %index.1), offset_dims={{}}, collapsed_slice_dims={{0}},\
 start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}{named("gather")}
  %ne.1 = pred[4]{{0}} compare(%p, %zeros.1), direction=NE{named("ne")}
  ROOT %r = (pred[4]{{0}}, pred[4]{{0}}, f32[4]{{0}}, pred[4]{{0}}) tuple(%lt.1, %ge.1, %gather.1, %ne.1)"""
    ids = "p x zero at.1 index.1 gather.1 ne.1 lt.1 ge.1 r zeros.1"
    assert users_of("zeros.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("body", "made", "users"),
    [
        ("body.sunk.clone", "broadcast.9", ["sub.4", "sub.2", "sub.3"]),
        ("body", "broadcast.9", ["sub.2", "sub.3", "sub.4"]),
        ("body.sunk.clone", "sub.9", ["sub.2", "sub.3", "sub.4"]),
    ],
    ids=["moved in the clone", "not cloned", "not made of it"],
)
def test_in_a_cloned_body_the_last_stands_where_the_one_was_that_moved(
    body: str, made: str, users: list[str]
) -> None:
    """Rounds of random bits: the first was computed in front of the reshape that the others read."""
    inside = named("while/body/jit(g)/sub")
    program = f"""HloModule m

%{body} (i: (s32[2], s32[1,2], s32[])) -> (s32[2], s32[1,2], s32[]) {{
  %i = (s32[2]{{0}}, s32[1,2]{{1,0}}, s32[]) parameter(0)
  %e.1 = s32[2]{{0}} get-tuple-element(%i), index=0
  %n.1 = s32[] get-tuple-element(%i), index=2
  %{made}.0 = s32[2]{{0}} broadcast(%n.1), dimensions={{}}{inside}
  %sub.1 = s32[2]{{0}} subtract(%e.1, %{made}.0){inside}
  %bitcast.1.0 = s32[1,2]{{1,0}} bitcast(%sub.1){inside}
  %sub.5.0 = s32[1,2]{{1,0}} broadcast(%n.1), dimensions={{}}{inside}
  %sub.2 = s32[1,2]{{1,0}} subtract(%bitcast.1.0, %sub.5.0){inside}
  %neg.1 = s32[1,2]{{1,0}} negate(%sub.2){named("while/body/jit(g)/neg")}
  %sub.3 = s32[1,2]{{1,0}} subtract(%neg.1, %sub.5.0){inside}
  %sub.4 = s32[1,2]{{1,0}} subtract(%sub.3, %sub.5.0){inside}
  ROOT %tuple.1.0 = (s32[2]{{0}}, s32[1,2]{{1,0}}, s32[]) tuple(%e.1, %sub.4, %n.1)
}}

%cond (i: (s32[2], s32[1,2], s32[])) -> pred[] {{
  %i = (s32[2]{{0}}, s32[1,2]{{1,0}}, s32[]) parameter(0)
  ROOT %never = pred[] constant(false)
}}

ENTRY %main (i: (s32[2], s32[1,2], s32[])) -> (s32[2], s32[1,2], s32[]) {{
  %i = (s32[2]{{0}}, s32[1,2]{{1,0}}, s32[]) parameter(0)
  ROOT %while.1 = (s32[2]{{0}}, s32[1,2]{{1,0}}, s32[]) while(%i), condition=%cond, body=%{body}
}}
"""
    assert users_in(program, "sub.5.0", ids_known=True) == users


@pytest.mark.parametrize(
    ("second", "users"),
    [("q", ["mul.1", "mul.5", "mul.3"]), ("mul.2.0", ["mul.1", "mul.3", "mul.5"])],
    ids=["together", "one after the other"],
)
def test_the_last_takes_the_place_of_what_read_the_reshaped_broadcast_of_a_constant(
    second: str, users: list[str]
) -> None:
    """Gradients of which some were reshaped: the broadcast that was made for those is younger."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[2,4]{{1,0}} parameter(1)
  %c = f32[] constant(0.1)
  %broadcast.1 = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %mul.1 = f32[8]{{0}} multiply(%p, %broadcast.1){named("mul")}
  %broadcast.9.0 = f32[2,4]{{1,0}} broadcast(%c), dimensions={{}}
  %mul.2.0 = f32[2,4]{{1,0}} multiply(%q, %broadcast.9.0){named("mul")}
  %bitcast.1.0 = f32[8]{{0}} bitcast(%mul.2.0){named("mul")}
  %mul.3 = f32[8]{{0}} multiply(%mul.1, %broadcast.1){named("mul")}
  %mul.4.0 = f32[2,4]{{1,0}} multiply(%{second}, %broadcast.9.0){named("mul")}
  %bitcast.2.0 = f32[8]{{0}} bitcast(%mul.4.0){named("mul")}
  %mul.5 = f32[8]{{0}} multiply(%mul.3, %broadcast.1){named("mul")}
  ROOT %r = tuple(%mul.1, %bitcast.1.0, %mul.3, %bitcast.2.0, %mul.5)""".replace(
        "%r = ", "%r = (f32[8], f32[8], f32[8], f32[8], f32[8]) "
    )
    ids = "p q c broadcast.1 mul.1 - mul.3 - mul.5 r broadcast.9.0 mul.2.0 bitcast.1.0 mul.4.0 bitcast.2.0"
    assert users_of("broadcast.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("shape", "users"),
    [
        ("f32[1,8]{1,0}", ["mul.30.0", "mul.10.0", "mul.24.0", "mul.20.0"]),
        ("f32[9]{0}", ["mul.30.0", "mul.10.0", "mul.20.0", "mul.24.0"]),
    ],
    ids=["in another way", "not at all"],
)
def test_the_one_before_the_last_takes_the_place_of_what_was_reshaped_in_another_way(
    shape: str, users: list[str]
) -> None:
    """Parameters with dimensions of one are scaled by the number as well; operations on them were moved."""
    other = shape.partition("{")[0]
    body = f"""  %p = f32[] parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %a = f32[1,1,8]{{2,1,0}} parameter(2)
  %b = {shape} parameter(3)
  %sqrt.1 = f32[] sqrt(%p){named("sqrt")}
  %broadcast.1 = f32[1,1,8]{{2,1,0}} broadcast(%sqrt.1), dimensions={{}}{named("mul")}
  %mul.90.0 = f32[1,1,8]{{2,1,0}} multiply(%a, %broadcast.1){named("mul")}
  %mul.1.0 = f32[8]{{0}} broadcast(%sqrt.1), dimensions={{}}{named("mul")}
  %mul.10.0 = f32[8]{{0}} multiply(%q, %mul.1.0){named("mul")}
  %broadcast.2 = {shape} broadcast(%sqrt.1), dimensions={{}}{named("mul")}
  %mul.91.0 = {shape} multiply(%b, %broadcast.2){named("mul")}
  %mul.20.0 = f32[8]{{0}} multiply(%q, %mul.1.0){named("mul")}
  %mul.24.0 = f32[8]{{0}} multiply(%q, %mul.1.0){named("mul")}
  %mul.30.0 = f32[8]{{0}} multiply(%q, %mul.1.0){named("mul")}
  ROOT %r = (f32[1,1,8], f32[8], {other}, f32[8], f32[8], f32[8]) \
tuple(%mul.90.0, %mul.10.0, %mul.91.0, %mul.20.0, %mul.24.0, %mul.30.0)"""
    assert users_of("mul.1.0", body) == users
