"""Products that a library adds to what it computed before, each case as XLA's records show it."""

from __future__ import annotations

from .lists import named, users_of


def test_the_last_user_takes_the_place_of_a_sum_that_a_call_took_along() -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %first = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"
  %result = f32[8,8]{{1,0}} get-tuple-element(%first), index=0
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%result){named("add")}
  %sin.1 = f32[2,4,8]{{2,1,0}} sine(%bitcast.1){named("sin")}
  %flat = f32[8,8]{{1,0}} bitcast(%sin.1)
  %second = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(OPERANDS), custom_call_target="__cublas$lt$matmul"
  %sum = f32[8,8]{{1,0}} get-tuple-element(%second), index=0
  %cos.1 = f32[2,4,8]{{2,1,0}} cosine(%bitcast.1){named("cos")}
  %tan.1 = f32[2,4,8]{{2,1,0}} tan(%bitcast.1){named("tan")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[2,4,8]{{2,1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%sum, %cos.1, %tan.1)"""
    ids = "p sin.1 cos.1 tan.1 r first result bitcast.1 flat second sum"
    added = users_of("bitcast.1", body.replace("OPERANDS", "%flat, %p, %result"), ids=ids)
    assert added == ["sin.1", "tan.1", "cos.1"]
    multiplied = users_of("bitcast.1", body.replace("OPERANDS", "%flat, %result"), ids=ids)
    assert multiplied == ["sin.1", "cos.1", "tan.1"]


def test_the_call_may_add_to_what_no_call_computed() -> None:
    """It reads a bitcast of its own of the same source."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %source = f32[8,8]{{1,0}} negate(%p)
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%source){named("gather")}
  %sin.1 = f32[2,4,8]{{2,1,0}} sine(%bitcast.1){named("sin")}
  %bitcast.2 = f32[8,8]{{1,0}} bitcast(%source){named("gather")}
  %call = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p, %bitcast.2), custom_call_target="TARGET"
  %sum = f32[8,8]{{1,0}} get-tuple-element(%call), index=0
  %cos.1 = f32[2,4,8]{{2,1,0}} cosine(%bitcast.1){named("cos")}
  %tan.1 = f32[2,4,8]{{2,1,0}} tan(%bitcast.1){named("tan")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[2,4,8]{{2,1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%sum, %cos.1, %tan.1)"""
    ids = "p source sin.1 cos.1 tan.1 r bitcast.1 bitcast.2 call sum"
    assert users_of("bitcast.1", body.replace("TARGET", "__cublas$lt$matmul"), ids=ids) == [
        "sin.1",
        "tan.1",
        "cos.1",
    ]
    assert users_of("bitcast.1", body.replace("TARGET", "other"), ids=ids) == ["sin.1", "cos.1", "tan.1"]


def _sum_in_call(name: str) -> str:
    """A product added to another value, read by two operations as LayoutNormalization makes them."""
    return f"""  %m = f32[8,5]{{1,0}} parameter(0)
  %n = f32[5,4]{{1,0}} parameter(1)
  %o = f32[8,4]{{1,0}} parameter(2)
  %y = f32[8,4]{{1,0}} parameter(3)
  %bitcast.1.0 = f32[2,4,4]{{2,1,0}} bitcast(%y)
  %exponential.1.0 = f32[2,4,4]{{2,1,0}} exponential(%bitcast.1.0){named("exp")}
  %call.1.0 = (f32[8,4]{{1,0}}, s8[4]{{0}}) custom-call(%m, %n, %o), \
custom_call_target="__cublas$lt$matmul"{named("dot_general")}
  %product.1.0 = f32[8,4]{{1,0}} get-tuple-element(%call.1.0), index=0{named("dot_general")}
  %bitcast.2.0 = f32[2,4,4]{{2,1,0}} bitcast(%product.1.0){named(name)}
  %multiply.1.0 = f32[2,4,4]{{2,1,0}} multiply(%bitcast.2.0, %exponential.1.0){named("mul")}
  %multiply.2.0 = f32[2,4,4]{{2,1,0}} multiply(%exponential.1.0, %bitcast.2.0){named("mul")}
  ROOT %r = (f32[2,4,4]{{2,1,0}}, f32[2,4,4]{{2,1,0}}) tuple(%multiply.1.0, %multiply.2.0)"""


def test_of_readers_made_anew_of_a_sum_the_last_took_the_place_of_the_bitcast_behind_it() -> None:
    """LayoutNormalization had made the sum anew, before GemmRewriter took it into the call."""
    ids = "m n o y call.1.0 r product.1.0 bitcast.1.0 exponential.1.0 multiply.1.0 multiply.2.0 bitcast.2.0"
    assert users_of("bitcast.2.0", _sum_in_call("add_any"), ids=ids) == ["multiply.2.0", "multiply.1.0"]
    assert users_of("bitcast.2.0", _sum_in_call("reshape"), ids=ids) == ["multiply.1.0", "multiply.2.0"]
