"""What was narrow, converted for matrix products that want it in two layouts."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.floats.widened import users_of_widened


@pytest.mark.parametrize(
    ("target", "users"),
    [("__cublas$lt$matmul", ["transpose.1", "bitcast.1"]), ("other", ["bitcast.1", "transpose.1"])],
    ids=["a convert for each layout", "one for both"],
)
def test_products_that_read_it_in_two_layouts_had_a_convert_in_each(target: str, users: list[str]) -> None:
    """The last of them went first."""
    result = "(f32[4,4]{1,0}, s8[64]{0})"
    text = f"""HloModule m

ENTRY %main {{
  %p = f32[4,8]{{1,0}} parameter(0)
  %q = f32[8,4]{{1,0}} parameter(1)
  %add.1 = f32[4,8]{{1,0}} add(%p, %p)
  %transpose.1 = f32[8,4]{{1,0}} transpose(%add.1), dimensions={{1,0}}
  %bitcast.1 = f32[8,4]{{0,1}} bitcast(%add.1)
  %call.1 = {result} custom-call(%transpose.1, %q), custom_call_target="{target}"
  %call.2 = {result} custom-call(%bitcast.1, %q), custom_call_target="{target}"
  ROOT %r = ({result}, {result}) tuple(%call.1, %call.2)
}}
"""
    by_name = {x.name: x for x in parse_module(text).entry}
    value, given = by_name["add.1"], [by_name["transpose.1"], by_name["bitcast.1"]]
    place = {u: k for k, u in enumerate(given)}
    listed = users_of_widened(value, given, {}, frozenset([value]), place)
    assert [u.name for u in listed] == users
