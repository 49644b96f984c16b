"""The order in which a body comes in the place of its call."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.passes.common.calls import inline


def test_what_nobody_reads_comes_first_though_it_is_younger() -> None:
    module = parse_module(
        """HloModule m

%body (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %sine = f32[4]{0} sine(%x)
  %unread = f32[4]{0} cosine(%x)
}

ENTRY %main (y: f32[4]) -> f32[4] {
  %y = f32[4]{0} parameter(0)
  ROOT %call = f32[4]{0} call(%y), to_apply=%body
}
"""
    )
    inline(module.entry.root)
    assert [i.opcode for i in module.entry] == ["parameter", "cosine", "sine"]
    assert module.entry.root.opcode == "sine"
