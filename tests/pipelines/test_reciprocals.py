"""Where reciprocals of numbers stand among what one pass made."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.reciprocals import with_reciprocals_in_place

PROGRAM = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %a = f32[] constant(0.5)
  %b = f32[] constant(0.25)
  %broadcast.2.0 = f32[8]{0} broadcast(%a), dimensions={}
  %multiply.9.0 = f32[8]{0} multiply(%p, %broadcast.2.0), DIV
  %multiply.1.0 = f32[8]{0} multiply(%p, %broadcast.2.0), DIV
  %broadcast.NUMBER.0 = f32[8]{0} broadcast(%b), dimensions={}
  %multiply.2.0 = f32[8]{0} multiply(%p, %broadcast.NUMBER.0), DIV
  %add.1.0 = f32[8]{0} add(%multiply.9.0, %multiply.1.0)
  ROOT %add.2.0 = f32[8]{0} add(%add.1.0, %multiply.2.0)
}
""".replace("DIV", 'metadata={op_name="jit(f)/div"}')

MADE = ["broadcast.NUMBER.0", "multiply.1.0", "multiply.2.0", "broadcast.2.0", "multiply.9.0"]


def in_place(number: int) -> list[str]:
    entry = parse_module(PROGRAM.replace("NUMBER", str(number))).entry
    made = {x.name.replace(f"broadcast.{number}.", "broadcast.NUMBER."): x for x in entry}
    order = [made[name] for name in MADE]
    return [x.name for x in with_reciprocals_in_place(order)]


def test_a_reciprocal_is_made_with_the_first_of_its_products() -> None:
    made = ["broadcast.2.0", "multiply.1.0", "broadcast.5.0", "multiply.2.0", "multiply.9.0"]
    assert in_place(5) == made


def test_it_stays_if_it_is_numbered_before_that_of_a_product_made_earlier() -> None:
    made = ["broadcast.1.0", "broadcast.2.0", "multiply.1.0", "multiply.2.0", "multiply.9.0"]
    assert in_place(1) == made
