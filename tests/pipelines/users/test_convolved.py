"""What reads results of convolutions and scatters that layout normalization made anew."""

from __future__ import annotations

from .lists import named, users_of

_CONVOLVED = f"""  %p = f32[4,8,3]{{2,1,0}} parameter(0)
  %q = f32[8,8,1]{{2,1,0}} parameter(1)
  %transpose.1 = f32[4,8,3]{{2,1,0}} transpose(%p), dimensions={{0,1,2}}
  %cudnn-conv.1 = (f32[4,8,3]{{2,1,0}}, u8[0]{{0}}) custom-call(%transpose.1, %q), \
dim_labels=bf0_oi0->bf0, custom_call_target="__cudnn$convForward"{named("conv")}
  %get-tuple-element.1 = f32[4,8,3]{{2,1,0}} get-tuple-element(%cudnn-conv.1), index=0
  %subtract.1 = f32[4,8,3]{{2,1,0}} subtract(%get-tuple-element.1, %transpose.1){named("sub")}
  %multiply.1 = f32[4,8,3]{{2,1,0}} multiply(%get-tuple-element.1, %subtract.1){named("mul")}
  %multiply.2 = f32[4,8,3]{{2,1,0}} multiply(%get-tuple-element.1, %multiply.1){named("mul")}
  %bitcast.1 = f32[4,24]{{1,0}} bitcast(%get-tuple-element.1)
  ROOT %r = (f32[4,8,3]{{2,1,0}}, f32[4,24]{{1,0}}) tuple(%multiply.2, %bitcast.1)"""


def test_the_result_was_read_through_a_bitcast_that_went() -> None:
    """The call has the second number: it was made again. The last of those behind took the first place."""
    ids = "p q r bitcast.1 transpose.1 cudnn-conv.1 get-tuple-element.1 subtract.1 multiply.1 multiply.2"
    users = ["multiply.2", "bitcast.1", "subtract.1", "multiply.1"]
    assert users_of("get-tuple-element.1", _CONVOLVED, ids=ids) == users


_SCATTERED = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %at = s32[2,1]{{1,0}} parameter(1)
  %new = f32[2,1,4]{{2,1,0}} parameter(2)
  %q = f32[8,4]{{1,0}} parameter(3)
  %scatter.1 = f32[8,4]{{1,0}} scatter(%p, %at, %new), update_window_dims={{1,2}}, \
inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, \
to_apply=%sum{named("scatter-add")}
  %bitcast.1 = f32[32]{{0}} bitcast(%q)
  %multiply.1 = f32[8,4]{{1,0}} multiply(%scatter.1, %q){named("mul")}
  %multiply.2 = f32[8,4]{{1,0}} multiply(%q, %scatter.1){named("mul")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}, f32[32]{{0}}) tuple(%multiply.1, %multiply.2, %bitcast.1)"""


def test_a_scatter_was_made_anew_with_what_reads_it() -> None:
    """Scatters are simplified later, and younger for it. The bitcast behind was read once more."""
    ids = "p at new q r bitcast.1 multiply.1 multiply.2 scatter.1"
    assert users_of("scatter.1", _SCATTERED, ids=ids) == ["multiply.2", "multiply.1"]
