"""What library calls add to a product, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_ADDS = ', backend_config={"gemm_backend_config":{"alpha_real":1,"beta":1}}'
_SCALES = _ADDS.replace('"beta":1', '"beta":0')


def _product(side: str, *, attributes: str = _ADDS) -> str:
    return f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %x.1 = f32[8,8]{{1,0}} exponential(%p){named("x")}
  %inner.1 = f32[8,8]{{1,0}} negate(%x.1){named("inner")}
  %side.1 = f32[8,8]{{1,0}} {side}{named("side")}
  %call = (f32[8,8]{{1,0}}, s8[4]{{0}}) custom-call(%inner.1, %p, %side.1), \
custom_call_target="__cublas$lt$matmul"{attributes}
  ROOT %y.1 = f32[8,8]{{1,0}} get-tuple-element(%call), index=0{named("y")}"""


@pytest.mark.parametrize(
    ("ids", "attributes", "listed"),
    [
        ("p x.1 side.1 inner.1 y.1 call", _ADDS, "side.1 inner.1"),
        ("p x.1 inner.1 side.1 y.1 call", _ADDS, "inner.1 side.1"),
        ("p x.1 side.1 inner.1 y.1 call", _SCALES, "inner.1 side.1"),
    ],
    ids=["older", "younger", "it is a bias, or a scale"],
)
def test_what_is_added_to_a_product_was_met_first(ids: str, attributes: str, listed: str) -> None:
    assert users_of("x.1", _product("sine(%x.1)", attributes=attributes), ids=ids) == listed.split()


@pytest.mark.parametrize(
    ("call", "side", "scope", "listed"),
    [
        (1, 2, "", "inner.1 side.1"),
        (2, 1, "", "side.1 inner.1"),
        (1, 2, "transpose(jvp())/", "side.1 inner.1"),
        (2, 1, "transpose(jvp())/", "inner.1 side.1"),
    ],
)
def test_what_is_written_further_on_was_met_behind(call: int, side: int, scope: str, listed: str) -> None:
    """A derivative goes back. A pass made what is added, of which ages tell nothing."""
    made = f"""sine(%x.1){named("side")}
  %sqrt.1 = f32[8,8]{{1,0}} sqrt(%side.1){named(scope + "other", frame=side)}"""
    body = (
        _product("sine(%x.1)")
        .replace(f"sine(%x.1){named('side')}", made)
        .replace("%p, %side.1", "%p, %sqrt.1")
    )
    body = body.replace(_ADDS, named(scope + "dot_general", frame=call) + _ADDS)
    tables = places_in_source(("f", 1, 1, 9), ("f", 2, 1, 9))
    assert users_of("x.1", body, ids="p x.1 side.1 inner.1 y.1 sqrt.1 call", tables=tables) == listed.split()


def test_of_two_convolutions_the_first_adds_the_second() -> None:
    body = _product("sine(%x.1)").replace("%inner.1, %p, %side.1", "%inner.1, %p, %p, %other_0")
    body = body.replace("__cublas$lt$matmul", "__cudnn$convBiasActivationForward")
    other = """  %other = (f32[8,8]{1,0}, s8[4]{0}) custom-call(%side.1), \
custom_call_target="__cudnn$convForward"
  %other_0 = f32[8,8]{1,0} get-tuple-element(%other), index=0
  %call ="""
    body = body.replace("  %call =", other)
    ids = "p x.1 side.1 inner.1 y.1 other other_0 call"
    assert users_of("x.1", body, ids=ids) == ["inner.1", "side.1"]
    backward = body.replace("convForward", "convBackwardInput")
    assert users_of("x.1", backward, ids=ids) == ["side.1", "inner.1"]


def test_what_cse_merged_was_met_as_the_sum_had_it() -> None:
    body = _product("sine(%zeros)").replace("negate(%x.1)", "negate(%zeros)")
    zeros = """  %zero = f32[] constant(0)
  %zeros = f32[8,8]{1,0} broadcast(%zero), dimensions={}
  %inner.1 ="""
    body = (
        body.replace("  %inner.1 =", zeros)
        .replace("f)/inner", "f)/jit(g)/inner")
        .replace("f)/side", "f)/jit(h)/side")
    )
    ids = "p x.1 zero zeros y.1 inner.1 side.1 call"
    assert users_of("zeros", body, ids=ids) == ["side.1", "inner.1"]


def test_of_two_products_the_first_adds_the_second() -> None:
    body = _product("sine(%x.1)").replace("%inner.1, %p, %side.1", "%inner.1, %p, %other_0")
    other = """  %other = (f32[8,8]{1,0}, s8[4]{0}) custom-call(%side.1), custom_call_target="__cublas$gemm"
  %other_0 = f32[8,8]{1,0} get-tuple-element(%other), index=0
  %call ="""
    ids = "p x.1 side.1 inner.1 y.1 other other_0 call"
    assert users_of("x.1", body.replace("  %call =", other), ids=ids) == ["inner.1", "side.1"]


def test_the_bitcast_through_which_an_addend_is_read_stands_where_the_sum_was() -> None:
    body = _product("sine(%x.1)").replace("%side.1)", "%bitcast)")
    bitcast = (
        "  %bitcast = f32[8,8]{1,0} bitcast(%side.1)\n  %cos.1 = f32[8,8]{1,0} cosine(%side.1)\n  %call ="
    )
    body = body.replace("  %call =", bitcast).replace("%inner.1, %p", "%inner.1, %cos.1")
    ids = "p x.1 side.1 inner.1 cos.1 y.1 bitcast call"
    assert users_of("side.1", body, ids=ids) == ["cos.1", "bitcast"]
    assert users_of("x.1", body, ids=ids) == ["side.1", "inner.1"]


def test_what_is_spread_to_be_added_was_met_behind() -> None:
    body = _product("broadcast(%n.1), dimensions={}")
    scalar = f"""  %n.1 = f32[] multiply(%s.1, %s.1){named("n")}\n  %side.1 ="""
    body = body.replace("  %side.1 =", scalar).replace("negate(%x.1)", "broadcast(%m.1), dimensions={}")
    body = body.replace(
        "  %x.1 =", f"  %s.1 = f32[] parameter(1)\n  %m.1 = f32[] negate(%s.1){named('m')}\n  %x.1 ="
    )
    ids = "p s.1 n.1 side.1 m.1 inner.1 x.1 y.1 call"
    assert users_of("s.1", body, ids=ids) == ["m.1", "n.1"]


def test_what_is_added_was_made_anew_first_when_layouts_were_normalized() -> None:
    """Ids are of that, and the bitcast behind the value went with what had read it through that."""
    body = f"""  %m = f32[64,32]{{1,0}} parameter(0)
  %given.1.0 = (f32[64,32]{{1,0}}, s8[4]{{0}}) custom-call(%m), custom_call_target="__cublas$gemm"
  %given.2.0 = f32[64,32]{{1,0}} get-tuple-element(%given.1.0), index=0
  %bitcast.0.0 = f32[8,8,32]{{2,1,0}} bitcast(%given.2.0){named("dot_general")}
  %transpose.1.0 = f32[32,8,8]{{2,1,0}} transpose(%bitcast.0.0), dimensions={{2,0,1}}{named("dot_general")}
  %multiply.1.0 = f32[32,8,8]{{2,1,0}} multiply(%transpose.1.0, %transpose.1.0){named("mul")}
  %multiply.2.0 = f32[32,8,8]{{2,1,0}} multiply(%transpose.1.0, %transpose.1.0){named("mul")}
  %bitcast.1.0 = f32[32,64]{{1,0}} bitcast(%multiply.1.0)
  %bitcast.2.0 = f32[32,64]{{1,0}} bitcast(%multiply.2.0)
  %call = (f32[32,64]{{1,0}}, s8[4]{{0}}) custom-call(%bitcast.1.0, %m, %bitcast.2.0), \
custom_call_target="__cublas$lt$matmul"{_ADDS}
  ROOT %z.1 = f32[32,64]{{1,0}} get-tuple-element(%call), index=0{named("z")}"""
    made = "transpose.1.0 multiply.2.0 multiply.1.0 bitcast.1.0 bitcast.2.0 given.1.0 given.2.0 call"
    ids = f"m z.1 bitcast.0.0 {made}"
    assert users_of("transpose.1.0", body, ids=ids) == ["multiply.1.0", "multiply.2.0"]
    assert users_of("transpose.1.0", body.replace(_ADDS, _SCALES), ids=ids) == [
        "multiply.2.0",
        "multiply.1.0",
    ]


def test_a_reduction_was_normalized_when_the_product_read_the_addend_last() -> None:
    """Each of its users had a bitcast of its own until then; the last one met comes first."""
    body = f"""  %m = f32[64,32]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %given.1.0 = (f32[64,32]{{1,0}}, s8[4]{{0}}) custom-call(%m), custom_call_target="__cublas$gemm"
  %given.2.0 = f32[64,32]{{1,0}} get-tuple-element(%given.1.0), index=0
  %bitcast.0.0 = f32[8,8,32]{{2,1,0}} bitcast(%given.2.0){named("dot_general")}
  %transpose.1.0 = f32[32,8,8]{{2,1,0}} transpose(%bitcast.0.0), dimensions={{2,0,1}}{named("dot_general")}
  %broadcast.1.0 = f32[32,4,8,8]{{3,2,1,0}} broadcast(%transpose.1.0), dimensions={{0,2,3}}{named("mul")}
  %reduce.1.0 = f32[32,8,8]{{2,1,0}} reduce(%broadcast.1.0, %zero), dimensions={{1}}, to_apply=%sum
  %multiply.1.0 = f32[32,8,8]{{2,1,0}} multiply(%reduce.1.0, %transpose.1.0){named("mul")}
  %multiply.2.0 = f32[32,8,8]{{2,1,0}} multiply(%reduce.1.0, %transpose.1.0){named("mul")}
  %bitcast.1.0 = f32[32,64]{{1,0}} bitcast(%multiply.1.0)
  %bitcast.2.0 = f32[32,64]{{1,0}} bitcast(%multiply.2.0)
  %call = (f32[32,64]{{1,0}}, s8[4]{{0}}) custom-call(%bitcast.1.0, %m, %bitcast.2.0), \
custom_call_target="__cublas$lt$matmul"{_ADDS}
  ROOT %z.1 = f32[32,64]{{1,0}} get-tuple-element(%call), index=0{named("z")}"""
    made = "transpose.1.0 broadcast.1.0 multiply.2.0 multiply.1.0 bitcast.1.0 bitcast.2.0"
    ids = f"m zero z.1 bitcast.0.0 {made} reduce.1.0 given.1.0 given.2.0 call"
    assert users_of("reduce.1.0", body, ids=ids) == ["multiply.2.0", "multiply.1.0"]
