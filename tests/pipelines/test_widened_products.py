"""When FloatNormalization widened something, of products ahead of layouts or of all else behind fusions."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.widened_products import widened_for_products
from hlofuse.pipelines.users.floats.widened_products import is_read_through_pair

PROGRAM = """HloModule m

ENTRY %main {
  %p = bf16[8,8]{1,0} parameter(0)
  %q = bf16[8,8]{1,0} parameter(1)
  %convert.1.0 = f32[8,8]{1,0} convert(%p)
  %convert.2.0 = f32[8,8]{1,0} convert(%q)
  %product.1 = f32[8,8]{1,0} custom-call(%convert.1.0, %convert.2.0), custom_call_target="__cublas$gemm"
  %convert.3.0 = bf16[8,8]{1,0} convert(%product.1)
  %transpose.1.0 = bf16[8,8]{1,0} transpose(%convert.3.0), dimensions={1,0}
  %convert.5.0 = f32[8,8]{1,0} convert(%transpose.1.0)
  %transpose.2.0 = f32[8,8]{1,0} transpose(%convert.5.0), dimensions={1,0}
  %convert.7.0 = f32[8,8]{1,0} convert(%transpose.1.0)
  %neg.1.0 = f32[8,8]{1,0} negate(%convert.7.0)
  %convert.8.0 = bf16[8,8]{1,0} convert(%neg.1.0)
  ROOT %tuple.1.0 = (f32[8,8]{1,0}, bf16[8,8]{1,0}) tuple(%transpose.2.0, %convert.8.0)
}
"""


def told(text: str) -> dict[str, Maker]:
    makers = {x: Maker.FRONT_END for x in parse_module(text).entry if x.opcode != "parameter"}
    for x in makers:
        if x.opcode == "convert":
            makers[x] = Maker.FLOAT_NORMALIZATION
        elif x.opcode == "transpose":
            makers[x] = Maker.LAYOUT_NORMALIZATION
    return {x.name: maker for x, maker in widened_for_products(makers).items()}


def test_products_are_widened_first_then_layouts_then_all_else() -> None:
    early, layout, late = Maker.WIDENED_PRODUCTS, Maker.LAYOUT_NORMALIZATION, Maker.FLOAT_NORMALIZATION
    assert told(PROGRAM) == {
        "convert.1.0": early,
        "convert.2.0": early,
        "convert.3.0": early,
        "convert.5.0": layout,
        "convert.7.0": late,
        "convert.8.0": late,
    }


def test_numbers_set_right_what_is_beside_no_product_any_more() -> None:
    """Something else reads the same array, widened: CSE made one convert of both."""
    moved = PROGRAM.replace("custom-call(%convert.1.0, %convert.2.0)", "custom-call(%neg.0.0, %convert.2.0)")
    moved = moved.replace("  %product", "  %neg.0.0 = f32[8,8]{1,0} negate(%convert.1.0)\n  %product")
    assert told(moved)["convert.1.0"] == Maker.WIDENED_PRODUCTS


def test_where_the_device_has_narrow_products_all_are_of_the_late_turn() -> None:
    narrow = PROGRAM.replace("%product.1 = f32", "%product.1 = bf16")
    narrow = narrow.replace("custom-call(%convert.1.0, %convert.2.0)", "custom-call(%p, %q)")
    assert not told(narrow.replace("bf16[8,8]{1,0} convert(%product.1)", "f32[8,8]{1,0} convert(%product.1)"))


def test_what_is_read_in_another_layout_beside_a_product_was_made_anew_for_that() -> None:
    makers = {x: Maker.FRONT_END for x in parse_module(BESIDE).entry if x.opcode != "parameter"}
    for x in makers:
        if x.name == "select.1.0":
            makers[x] = Maker.LAYOUT_NORMALIZATION
        elif x.opcode == "convert":
            makers[x] = Maker.FLOAT_NORMALIZATION
    found = {x.name: maker for x, maker in widened_for_products(makers).items()}
    assert found == {
        "convert.1.0": Maker.WIDENED_PRODUCTS,
        "convert.4.0": Maker.LAYOUT_NORMALIZATION,
    }


BESIDE = """HloModule m

ENTRY %main {
  %p = bf16[8,8]{1,0} parameter(0)
  %q = pred[8,8]{1,0} parameter(1)
  %convert.1.0 = f32[8,8]{1,0} convert(%p)
  %product.1 = f32[8,8]{1,0} custom-call(%convert.1.0), custom_call_target="__cudnn$convForward"
  %convert.4.0 = bf16[8,8]{1,0} convert(%product.1)
  ROOT %select.1.0 = bf16[8,8]{1,0} select(%q, %convert.4.0, %p)
}
"""


@pytest.mark.parametrize(("name", "is_through_pair"), [("jit(f)/dot_general", True), ("", False)])
def test_a_bitcast_that_layouts_made_for_each_reader_is_not_read_through_a_pair(
    name: str, is_through_pair: bool
) -> None:
    metadata = f', metadata={{op_name="{name}"}}' if name else ""
    text = PROGRAM.replace(
        "%convert.3.0 =",
        f"%b = f32[64]{{0}} bitcast(%product.1){metadata}\n  %abs.1 = f32[64]{{0}} abs(%b)\n  %convert.3.0 =",
    )
    bitcast = next(x for x in parse_module(text).entry if x.name == "b")
    assert is_read_through_pair(bitcast, frozenset(), frozenset()) == is_through_pair
