"""The order of numbers of the program, as the ids in XLA's first dump have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.program_order import in_program_order

TEXT = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %constant.5.0 = f32[] constant(2)
  %constant.6.0 = f32[] constant(4)
  %constant.8.0 = f32[] constant(3)
  %broadcast.4.0 = f32[8]{0} broadcast(SOURCE), dimensions={}
  %mul.1.0 = f32[8]{0} multiply(%p, %broadcast.4.0)
  %gt.2.0 = f32[8]{0} broadcast(%constant.8.0), dimensions={}
  %gt.3.0 = pred[8]{0} compare(%mul.1.0, %gt.2.0), direction=GT
  %broadcast.3.0 = f32[4]{0} broadcast(%constant.5.0), dimensions={}
  %slice.1.0 = f32[4]{0} slice(%mul.1.0), slice={[0:4]}
  %mul.2.0 = f32[4]{0} multiply(%slice.1.0, %broadcast.3.0)
  ROOT %tuple.1.0 = (pred[8]{0}, f32[4]{0}) tuple(%gt.3.0, %mul.2.0)
}
"""


def numbers(source: str) -> list[str]:
    module = parse_module(TEXT.replace("SOURCE", source))
    operations = [x for x in module.entry.post_order() if x.opcode not in ("parameter", "tuple")]
    return [x.name for x in in_program_order(operations) if x.opcode == "broadcast"]


def test_of_equal_numbers_the_last_one_used_has_kept_its_constant() -> None:
    """What is used first stands behind all others; the constant that it had has a number that is gone."""
    assert numbers("%constant.5.0") == ["broadcast.3.0", "gt.2.0", "broadcast.4.0"]


def test_a_number_of_its_own_stands_where_its_constant_says() -> None:
    assert numbers("%constant.6.0") == ["broadcast.3.0", "broadcast.4.0", "gt.2.0"]


GONE = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %constant.5.0 = f32[] constant(2)
  %constant.8.0 = f32[] constant(3)
  %broadcast.6.0 = f32[8]{0} broadcast(%constant.8.0), dimensions={}
  %add.1.0 = f32[8]{0} add(%p, %broadcast.6.0)
  %broadcast.4.0 = f32[8]{0} broadcast(%constant.5.0), dimensions={}
  %mul.1.0 = f32[8]{0} multiply(%add.1.0, %broadcast.4.0)
  %broadcast.3.0 = f32[4]{0} broadcast(%constant.8.0), dimensions={}
  %slice.1.0 = f32[4]{0} slice(%mul.1.0), slice={[0:4]}
  ROOT %mul.2.0 = f32[4]{0} multiply(%slice.1.0, %broadcast.3.0)
}
"""


def test_a_number_older_than_one_before_was_that_of_something_gone() -> None:
    operations = [x for x in parse_module(GONE).entry.post_order() if x.opcode != "parameter"]
    order = [x.name for x in in_program_order(operations) if x.opcode == "broadcast"]
    assert order == ["broadcast.3.0", "broadcast.4.0", "broadcast.6.0"]
