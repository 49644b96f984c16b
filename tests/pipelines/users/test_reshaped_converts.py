"""Reductions of what a narrow value was converted and reshaped to."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("of", "to", "users"),
    [
        ("[8,4]", "[2,4,4]", ["sum.1", "wide.1"]),
        ("[8,4]", "[4,8]", ["wide.1", "sum.1"]),
    ],
    ids=["adds up the reshape", "adds up the value alone"],
)
def test_what_added_up_the_reshape_of_a_convert_stands_behind_it(of: str, to: str, users: list[str]) -> None:
    """FloatNormalization then has the last in front."""
    layout = "{2,1,0}" if to.count(",") > 1 else "{1,0}"
    body = f"""  %p = bf16{of}{{1,0}} parameter(0)
  %q = f32{to}{layout} parameter(1)
  %zero = f32[] constant(0)
  %convert.1 = f32{of}{{1,0}} convert(%p)
  %add.1 = f32{of}{{1,0}} add(%convert.1, %convert.1){named("add")}
  %sum.1 = f32[4]{{0}} reduce(%add.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %wide.1 = f32{to}{layout} bitcast(%add.1){named("convert_element_type")}
  %mul.1 = f32{to}{layout} multiply(%wide.1, %q){named("mul")}
  ROOT %r = (f32[4]{{0}}, f32{to}{layout}) tuple(%sum.1, %mul.1)"""
    assert users_of("add.1", body) == users
