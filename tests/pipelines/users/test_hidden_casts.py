"""Users of results that were made narrow and wide again."""

from __future__ import annotations

import pytest

from .test_restored import named, users_of

_PLACES = """
FileNames
1 "model.py"

FunctionNames
1 "layer"
2 "optimizer"

FileLocations
1 {file_name_id=1 function_name_id=1 line=2 end_line=2 column=8 end_column=20}
2 {file_name_id=1 function_name_id=1 line=2 end_line=2 column=7 end_column=40}
3 {file_name_id=1 function_name_id=2 line=9 end_line=9 column=8 end_column=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}
3 {file_location_id=3 parent_frame_id=1}
"""


@pytest.mark.parametrize(
    ("wide", "listed"),
    [("convert_element_type", ["two.1", "one.1"]), ("jvp()/convert_element_type", ["one.1", "two.1"])],
)
def test_a_derivative_was_narrow_if_others_are_made_wide_outside(wide: str, listed: list[str]) -> None:
    """`(x + bias).astype(bf16)`: the derivative of `bias` has the place of that sum and may be wide."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %q = bf16[32]{{0}} parameter(1)
  %add.1 = f32[32]{{0}} add(%p, %p){named("jvp()/add", frame=1)}
  %narrow.1 = bf16[32]{{0}} convert(%add.1){named("jvp()/convert_element_type", frame=2)}
  %wide.1 = f32[32]{{0}} convert(%q){named(wide, frame=3)}
  %mul.1 = f32[32]{{0}} multiply(%p, %p){named("transpose(jvp())/mul", frame=1)}
  %one.1 = f32[32]{{0}} negate(%mul.1){named("one", frame=3)}
  %two.1 = f32[32]{{0}} exponential(%mul.1){named("two", frame=3)}
  %sum.1 = f32[32]{{0}} add(%two.1, %wide.1){named("sum", frame=3)}
  ROOT %r = (f32[32]{{0}}, bf16[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %narrow.1, %sum.1)"""
    assert users_of("mul.1", body, head=_PLACES) == listed
