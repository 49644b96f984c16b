"""Slices that a scan takes of elements in another layout than row-major."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_SLICE = "while/body/jit(dynamic_index_in_dim)/dynamic_slice"
_IN_FUNCTION = "while/body/eval_jaxpr/jit(dynamic_index_in_dim)/dynamic_slice"
_UPDATE = "while/body/jit(dynamic_update_index_in_dim)/dynamic_update_slice"


@pytest.mark.parametrize(
    ("name", "users"),
    [
        (_SLICE, ["dynamic_slice.1.0", "dynamic-slice.1.0", "dynamic_slice.3.0", "dynamic_update_slice.1.0"]),
        (
            _IN_FUNCTION,
            ["dynamic_slice.1.0", "dynamic_slice.3.0", "dynamic_update_slice.1.0", "dynamic-slice.1.0"],
        ),
    ],
)
def test_a_slice_made_anew_stands_where_that_of_its_element_stood(name: str, users: list[str]) -> None:
    """A function that the scan calls may take slices in whatever order."""
    of = "dynamic_slice_sizes={1,4}"
    body = f"""  %p = (s32[], f32[8,4]{{1,0}}, f32[8,4]{{1,0}}, f32[8,4]{{0,1}}, f32[8,4]{{1,0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %to = f32[8,4]{{1,0}} get-tuple-element(%p), index=1
  %x = f32[8,4]{{1,0}} get-tuple-element(%p), index=2
  %y = f32[8,4]{{0,1}} get-tuple-element(%p), index=3
  %z = f32[8,4]{{1,0}} get-tuple-element(%p), index=4
  %zero = s32[] constant(0)
  %at = s32[] negate(%i){named("while/body/sub")}
  %dynamic_slice.1.0 = f32[1,4]{{1,0}} dynamic-slice(%x, %at, %zero), {of}{named(_SLICE)}
  %dynamic_slice.3.0 = f32[1,4]{{1,0}} dynamic-slice(%z, %at, %zero), {of}{named(_SLICE)}
  %bitcast.1.0 = f32[4,8]{{1,0}} bitcast(%y)
  %dynamic-slice.1.0 = f32[4,1]{{1,0}} dynamic-slice(%bitcast.1.0, %zero, %at), {of}{named(name)}
  %dynamic_update_slice.1.0 = f32[8,4]{{1,0}} dynamic-update-slice(%to, %x, %at, %zero){named(_UPDATE)}
  ROOT %r = (f32[8,4]{{1,0}}, f32[1,4]{{1,0}}, f32[4,1]{{1,0}}, f32[1,4]{{1,0}}) tuple(
    %dynamic_update_slice.1.0, %dynamic_slice.1.0, %dynamic-slice.1.0, %dynamic_slice.3.0)"""
    ids = "p i to x y z zero at dynamic_slice.1.0 dynamic_slice.3.0 dynamic_update_slice.1.0 r"
    ids += " bitcast.1.0 dynamic-slice.1.0"
    body = body.replace("tuple(\n    ", "tuple(")
    assert users_of("at", body, ids=ids, entry="body") == users
