"""Loops over layers that `jax.checkpoint` makes again for the derivative, as XLA's records show them."""

from __future__ import annotations

from .lists import named, users_of

_LAYER = "jvp()/while/body/eval_jaxpr"
_AGAIN = "transpose(jvp())/while/body/eval_jaxpr/checkpoint/rematted_computation"


def _kept(value: str, stacked: str, *, first: str = "", kind: str = "f32") -> list[str]:
    """`value` is computed of `%x`; `stacked` is the op_name of what a loop writes of it."""
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %all = f32[3,8,4]{{2,1,0}} parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
{value}
{first}
  %read = f32[8,4]{{1,0}} negate(%value){named(f"{_LAYER}/neg")}
  %again = f32[8,4]{{1,0}} multiply(%value, %read){named(f"{_LAYER}/mul")}
  %piece = f32[1,8,4]{{2,1,0}} bitcast(%value){named(stacked) if stacked else ""}
  %write = f32[3,8,4]{{2,1,0}} dynamic-update-slice(%all, %piece, %i, %zero, %zero)
  ROOT %r = (f32[8,4]{{1,0}}, f32[3,8,4]{{2,1,0}}) tuple(%again, %write)"""
    return users_of("value", body.replace("f32", kind))


def test_users_of_what_a_policy_keeps_were_those_of_its_rounding() -> None:
    value = f"  %value = f32[8,4]{{1,0}} sine(%x){named(f'{_LAYER}/sin')}"
    assert _kept(value, f"{_LAYER}/reduce_precision") == ["piece", "read", "again"]
    assert _kept(value, f"{_LAYER}/broadcast_in_dim") == ["read", "again", "piece"]


def test_what_a_layer_was_given_and_what_counts_is_not_rounded() -> None:
    stacked = f"{_LAYER}/reduce_precision"
    given = "  %value = f32[8,4]{1,0} parameter(3)"
    assert _kept(given, stacked) == ["read", "again", "piece"]
    value = f"  %value = f32[8,4]{{1,0}} sign(%x){named(f'{_LAYER}/sign')}"
    assert _kept(value, stacked, kind="f32") == ["piece", "read", "again"]
    assert _kept(value, stacked, kind="s32") == ["read", "again", "piece"]


def test_a_rounding_of_the_program_that_is_left_was_not_rounded_again() -> None:
    """A bitcast that a pass puts behind it has its name, too."""
    value = "  %value = f32[8,4]{1,0} OPCODE(%x)" + named(f"{_LAYER}/reduce_precision")
    rounding = value.replace("OPCODE(%x)", "reduce-precision(%x), exponent_bits=5, mantissa_bits=7")
    assert _kept(rounding, f"{_LAYER}/reduce_precision") == ["read", "again", "piece"]
    assert _kept(value.replace("OPCODE", "sine"), f"{_LAYER}/reduce_precision") == ["piece", "read", "again"]


def test_two_reshapes_of_a_merged_product_were_moved_past_the_rounding() -> None:
    value = f"""  %matrix = f32[16,4]{{1,0}} concatenate(%x, %x), dimensions={{0}}
  %flat = f32[2,8,4]{{2,1,0}} bitcast(%matrix)
  %both = f32[16,4]{{1,0}} bitcast(%flat)
  %value = f32[8,4]{{1,0}} slice(%both), slice={{[0:8], [0:4]}}{named(f"{_LAYER}/dot_general")}"""
    assert _kept(value, f"{_LAYER}/reduce_precision") == ["read", "piece", "again"]
    assert _kept(value, f"{_LAYER}/broadcast_in_dim") == ["piece", "read", "again"]


def test_what_layout_normalization_stacks_stood_ahead_of_others() -> None:
    """It bears no name; that anything in the layer was rounded tells that this was."""
    value = f"  %value = f32[8,4]{{1,0}} sine(%x){named(f'{_LAYER}/sin')}"
    rounded = f"  %other = f32[4]{{0}} bitcast(%row){named(f'{_LAYER}/reduce_precision')}"
    row = "  %row = f32[4]{0} parameter(3)\n"
    assert _kept(value, "", first=row + rounded) == ["again", "piece", "read"]
    assert _kept(value, "", first=row + rounded.replace("reduce_precision", "cos")) == [
        "read",
        "again",
        "piece",
    ]


def test_the_tuple_of_a_call_made_again_gave_its_place_to_the_last() -> None:
    """The derivative needs what the call computes on the way."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %part = f32[8]{{0}} sine(%x){named(f"{_AGAIN}/jit(silu)/sin")}
  %more = f32[8]{{0}} negate(%part){named(f"{_AGAIN}/jit(silu)/neg")}
  %value = f32[8]{{0}} multiply(%x, %more){named(f"{_AGAIN}/jit(silu)/mul")}
  %read = f32[8]{{0}} negate(%value){named(f"{_AGAIN}/neg")}
  %again = f32[8]{{0}} multiply(%value, %y){named(f"{_AGAIN}/mul")}
  %derived = f32[8]{{0}} multiply(%part, %y)NAME
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%read, %again, %derived)"""
    within = named(f"{_AGAIN.rpartition('/')[0]}/jit(silu)/mul")
    assert users_of("value", body.replace("NAME", within)) == ["again", "read"]
    assert users_of("value", body.replace("NAME", named(f"{_AGAIN}/mul"))) == ["read", "again"]
