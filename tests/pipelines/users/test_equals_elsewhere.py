"""What reads a value that is written in several scopes, and was moved in front of reshapes."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.simplified.equals_elsewhere import written_elsewhere

from ...running import find
from .lists import named


def test_other_scopes_had_a_value_of_their_own() -> None:
    text = f"""HloModule m

ENTRY %main {{
  %p = f32[8]{{0}} parameter(0)
  %ge.1 = f32[8]{{0}} abs(%p){named("block_0/ge")}
  %and.1 = f32[8]{{0}} negate(%ge.1){named("block_0/attention/and")}
  %and.2 = f32[8]{{0}} negate(%ge.1){named("block_1/attention/and")}
  %mul.1 = f32[8]{{0}} negate(%ge.1){named("transpose(jvp(block_0))/mul")}
  ROOT %r = (f32[8], f32[8], f32[8]) tuple(%and.1, %and.2, %mul.1)
}}
"""
    module = parse_module(text)
    value, first, second, third = (find(module, name) for name in ("ge.1", "and.1", "and.2", "mul.1"))
    assert written_elsewhere(value, [first, second, third]) == [second]
    assert written_elsewhere(value, [second]) == []
