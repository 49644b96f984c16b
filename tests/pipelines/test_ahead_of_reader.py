"""Numbers that are spread for one operation stand ahead of it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.ahead_of_reader import with_numbers_ahead, with_spread_right_ahead

_TEXT = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %c = f32[] constant(3)
  %broadcast.2.0 = f32[8]{0} broadcast(%c), dimensions={}, metadata={op_name="jit(f)/mul"}
  %mul.1.0 = f32[8]{0} multiply(%p, %broadcast.2.0), metadata={op_name="jit(f)/mul"}
  %d = f32[] constant(5)
  %broadcast.1.0 = f32[8]{0} broadcast(%d), dimensions={}
  ROOT %add.1.0 = f32[8]{0} add(%mul.1.0, %broadcast.1.0), metadata={op_name="jit(f)/add"}
}
"""
_BY_NAME = {x.name: x for x in parse_module(_TEXT).entry}


def test_none_stands_behind_its_only_reader() -> None:
    order = [_BY_NAME[name] for name in ("mul.1.0", "broadcast.2.0", "broadcast.1.0", "add.1.0")]
    names = [x.name for x in with_numbers_ahead(order)]
    assert names == ["broadcast.2.0", "mul.1.0", "broadcast.1.0", "add.1.0"]


def test_what_bears_the_name_of_its_reader_was_made_with_it() -> None:
    order = [_BY_NAME[name] for name in ("broadcast.2.0", "broadcast.1.0", "mul.1.0", "add.1.0")]
    names = [x.name for x in with_spread_right_ahead(order)]
    assert names == ["broadcast.1.0", "broadcast.2.0", "mul.1.0", "add.1.0"]


_SPREAD = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %s = f32[] parameter(1)
  %broadcast.3.0 = f32[8]{0} broadcast(%s), dimensions={}, metadata={op_name="jit(f)/mul"}
  %mul.1.0 = f32[8]{0} multiply(%p, %broadcast.3.0), metadata={op_name="jit(f)/mul"}
  %sub.1.0 = f32[8]{0} broadcast(%s), dimensions={}, metadata={op_name="jit(f)/sub"}
  ROOT %sub.2.0 = f32[8]{0} subtract(%mul.1.0, %sub.1.0), metadata={op_name="jit(f)/sub"}
}
"""


def test_what_was_spread_of_an_array_for_its_reader_was_made_with_it() -> None:
    """One that took the place of the program's broadcast was not."""
    by_name = {x.name: x for x in parse_module(_SPREAD).entry}
    order = [by_name[name] for name in ("broadcast.3.0", "sub.1.0", "mul.1.0", "sub.2.0")]
    names = [x.name for x in with_spread_right_ahead(order)]
    assert names == ["sub.1.0", "broadcast.3.0", "mul.1.0", "sub.2.0"]


def test_in_a_clone_what_has_a_higher_number_was_made_again() -> None:
    lines = (
        "%p = f32[8]{0} parameter(0)",
        "%s = f32[] parameter(1)",
        '%broadcast.5.0 = f32[8]{0} broadcast(%s), dimensions={}, metadata={op_name="jit(f)/mul"}',
        '%mul.1.0 = f32[8]{0} multiply(%p, %broadcast.5.0), metadata={op_name="jit(f)/mul"}',
        '%broadcast.4.0 = f32[8]{0} broadcast(%s), dimensions={}, metadata={op_name="jit(f)/sub"}',
        'ROOT %sub.1.0 = f32[8]{0} subtract(%mul.1.0, %broadcast.4.0), metadata={op_name="jit(f)/sub"}',
    )
    order = [*parse_module("HloModule m\n\nENTRY %main {\n" + "\n".join(lines) + "\n}\n").entry][2:]
    names = [x.name for x in with_spread_right_ahead(order)]
    assert names == ["broadcast.5.0", "mul.1.0", "broadcast.4.0", "sub.1.0"]
    names = [x.name for x in with_spread_right_ahead(order, cloned=True)]
    assert names == ["mul.1.0", "broadcast.4.0", "broadcast.5.0", "sub.1.0"]


def test_what_spreads_a_number_tells_nothing_of_that() -> None:
    """It may be in the place of another broadcast."""
    lines = (
        "%p = f32[8]{0} parameter(0)",
        "%s = f32[] constant(3)",
        "%t = f32[] constant(5)",
        '%broadcast.5.0 = f32[8]{0} broadcast(%s), dimensions={}, metadata={op_name="jit(f)/mul"}',
        '%mul.1.0 = f32[8]{0} multiply(%p, %broadcast.5.0), metadata={op_name="jit(f)/mul"}',
        '%broadcast.4.0 = f32[8]{0} broadcast(%t), dimensions={}, metadata={op_name="jit(f)/sub"}',
        'ROOT %sub.1.0 = f32[8]{0} subtract(%mul.1.0, %broadcast.4.0), metadata={op_name="jit(f)/sub"}',
    )
    order = [*parse_module("HloModule m\n\nENTRY %main {\n" + "\n".join(lines) + "\n}\n").entry][3:]
    names = [x.name for x in with_spread_right_ahead(order, cloned=True)]
    assert names == ["broadcast.5.0", "mul.1.0", "broadcast.4.0", "sub.1.0"]
