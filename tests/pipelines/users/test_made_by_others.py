"""What bears the name of its opcode, but was not made by layout normalization."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.users.layouts.other_layouts import made_anew

from .lists import HEAD, named


@pytest.mark.parametrize(
    ("opcode", "maker", "is_told"),
    [
        ("multiply", Maker.SIMPLIFIER, True),
        ("multiply", Maker.LAYOUT_NORMALIZATION, False),
        ("negate", Maker.SIMPLIFIER, False),
        ("slice", Maker.SIMPLIFIER, False),
    ],
    ids=[
        "by numbers",
        "of that turn itself",
        "none of its own to compare with",
        "what moves tells nothing",
    ],
)
def test_what_others_made_all_of_was_not_made_anew(opcode: str, maker: Maker, is_told: bool) -> None:
    """Two values of one layout each, of which layout normalization made the second; ids are not known."""
    operands = {"multiply": "(%p, %p)", "negate": "(%p)", "slice": "(%p), slice={[0:8], [0:8]}"}[opcode]
    module = parse_module(f"""{HEAD}
ENTRY %main {{
  %p = f32[8,8]{{1,0}} parameter(0)
  %t = (f32[8,8]{{1,0}}, f32[]) custom-call(), custom_call_target="own"
  %q = f32[8,8]{{1,0}} get-tuple-element(%t), index=0
  %cos.1 = f32[8,8]{{1,0}} custom-call(%p), custom_call_target="own"
  %{opcode}.1 = f32[8,8]{{1,0}} {opcode}{operands.replace("%p", "%cos.1")}{named("div")}
  %multiply.2 = f32[8,8]{{1,0}} multiply(%q, %q){named("mul")}
  %slice.2 = f32[4,8]{{1,0}} slice(%multiply.2), slice={{[0:4], [0:8]}}{named("split")}
  %bitcast.1 = f32[32]{{0}} bitcast(%slice.2)
  ROOT %r = (f32[32]{{0}}, f32[8,8]{{1,0}}) tuple(%bitcast.1, %{opcode}.1)
}}
""")
    makers = {x: Maker.LAYOUT_NORMALIZATION for x in module.entry if x.name in {"multiply.2", "slice.2"}}
    makers |= {x: maker for x in module.entry if x.name == f"{opcode}.1"}
    found = {x.name for x in made_anew(module.entry, ids_known=False, makers=makers)}
    assert found == {"multiply.2", "slice.2"} | (set() if is_told else {f"{opcode}.1"})
