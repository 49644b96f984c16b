"""What was moved along with a reshape, by who made it, as XLA's dumps around ReshapeMover have it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.moved_reshapes import (
    converted_for_moved,
    moved_along,
    on_the_way_to_moved,
    split_behind_product,
    spread_for_moved,
    spread_for_moved_alone,
    spread_of_moved,
)

TEXT = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %c = f32[] constant(1)
  %spread.1 = f32[8]{0} broadcast(%c), dimensions={}
  %moved = f32[8]{0} add(%p, %spread.1)
  %spread.2 = f32[8]{0} broadcast(%c), dimensions={}
  %after = f32[8]{0} multiply(%moved, %spread.2)
  %elsewhere = f32[8]{0} sine(%spread.2)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%after, %elsewhere)
}
"""


def test_what_reads_what_was_moved_was_moved_and_a_number_that_nothing_else_reads_was_spread_for_it() -> None:
    entry = parse_module(TEXT).entry
    named = {x.name: x for x in entry}
    makers = {x: Maker.INLINER for x in entry if x.opcode not in ("parameter", "tuple")}
    makers[named["moved"]] = Maker.SIMPLIFIER_AGAIN
    along = moved_along(makers)
    assert [x.name for x in along] == ["after"]
    makers.update(dict.fromkeys(along, Maker.SIMPLIFIER_AGAIN))
    assert [x.name for x in spread_for_moved(makers)] == ["spread.1"]


def test_a_comparison_in_a_call_that_a_number_was_spread_for_once_more_was_moved() -> None:
    text = """HloModule m

ENTRY %main {
  %p = f32[1,8]{1,0} parameter(0)
  %c = f32[] constant(1)
  %broadcast.1.0 = f32[1,8]{1,0} broadcast(%c), dimensions={}, metadata={op_name="while/eq"}
  ROOT %eq.1.0 = pred[1,8]{1,0} compare(%p, %broadcast.1.0), direction=EQ, metadata={op_name="while/eq"}
}
"""
    entry = parse_module(text).entry
    named = {x.name: x for x in entry}
    makers = {named["broadcast.1.0"]: Maker.SIMPLIFIER, named["eq.1.0"]: Maker.INLINER}
    assert [x.name for x in moved_along(makers)] == ["eq.1.0"]
    makers[named["broadcast.1.0"]] = Maker.INLINER
    assert moved_along(makers) == []


_REDUCED = """HloModule m

%region {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main {
  %p = f32[8,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %reduce_sum.1.0 = f32[8]{0} reduce(%p, %zero), dimensions={1}, to_apply=%region
"""
NORM = (
    _REDUCED
    + """  %spread = f32[8]{0} broadcast(%zero), dimensions={}
  %multiply.1.0 = f32[8]{0} multiply(SOURCE, %spread)
  %add.4.0 = f32[8]{0} add(%multiply.1.0, %spread)
  %rsqrt.0.0 = f32[8]{0} rsqrt(%add.4.0)
  ROOT %mul.1.0 = f32[8,4]{1,0} broadcast(%rsqrt.0.0), dimensions={0}
}
"""
)


def test_a_mean_and_what_is_made_of_it_ahead_of_what_was_moved_were_moved() -> None:
    for source, expected in (("%reduce_sum.1.0", ["add.4.0", "multiply.1.0"]), ("%spread", [])):
        entry = parse_module(NORM.replace("SOURCE", source)).entry
        makers = {x: Maker.FRONT_END for x in entry if x.opcode != "parameter"}
        named = {x.name: x for x in entry}
        makers[named["multiply.1.0"]] = Maker.SIMPLIFIER
        makers[named["rsqrt.0.0"]] = Maker.SIMPLIFIER_AGAIN
        assert [x.name for x in on_the_way_to_moved(makers)] == expected


def test_what_spreads_what_was_moved_took_the_reshape_in() -> None:
    entry = parse_module(NORM.replace("SOURCE", "%reduce_sum.1.0")).entry
    named = {x.name: x for x in entry}
    makers = {x: Maker.FRONT_END for x in entry if x.opcode != "parameter"}
    assert spread_of_moved(makers) == []
    makers[named["rsqrt.0.0"]] = Maker.SIMPLIFIER_AGAIN
    assert [x.name for x in spread_of_moved(makers)] == ["mul.1.0"]


def test_a_number_that_nothing_reads_but_what_was_moved_was_not_spread_for_a_layout() -> None:
    entry = parse_module(TEXT).entry
    named = {x.name: x for x in entry}
    makers = {x: Maker.LAYOUT_NORMALIZATION for x in entry if x.opcode not in ("parameter", "tuple")}
    makers[named["moved"]] = makers[named["after"]] = Maker.SIMPLIFIER_AGAIN
    assert [x.name for x in spread_for_moved_alone(makers)] == ["spread.1"]


MEAN = (
    _REDUCED
    + """  %neg.1.0 = f32[8]{0} negate(%reduce_sum.1.0)
  %spread = f32[8]{0} broadcast(%zero), dimensions={}
  %multiply.1.0 = f32[8]{0} multiply(SOURCE, %spread)
  %sub.1.0 = f32[8,4]{1,0} broadcast(%multiply.1.0), dimensions={0}
  %square.1.0 = f32[8]{0} multiply(%READ, %READ)
  ROOT %t = (f32[8,4]{1,0}, f32[8]{0}) tuple(%sub.1.0, %square.1.0)
}
"""
)


@pytest.mark.parametrize("source", ["reduce_sum.1.0", "neg.1.0"])
@pytest.mark.parametrize(("read", "moved"), [("spread", True), ("multiply.1.0", False)])
def test_a_mean_that_is_only_spread_had_its_dimensions_kept(source: str, read: str, moved: bool) -> None:
    entry = parse_module(MEAN.replace("SOURCE", f"%{source}").replace("READ", read)).entry
    named = {x.name: x for x in entry}
    makers = {x: Maker.FRONT_END for x in entry if x.opcode not in ("parameter", "tuple")}
    makers[named["multiply.1.0"]] = Maker.SIMPLIFIER
    assert ([x.name for x in spread_for_moved(makers)] == ["multiply.1.0"]) == moved


def test_a_sum_that_keeps_its_dimensions_is_converted_behind_the_reshape() -> None:
    text = """HloModule m

%region {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %zero = f32[] constant(0)
  %total = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%region
  %convert_element_type.1.0 = f16[] convert(%total), metadata={op_name="jit(f)/convert_element_type"}
  ROOT %spread = f16[8]{0} broadcast(%convert_element_type.1.0), dimensions={}
}
"""
    entry = parse_module(text).entry
    converted = entry.root.operands[0]
    assert converted_for_moved({converted: Maker.FRONT_END, entry.root: Maker.SIMPLIFIER_AGAIN}) == [
        converted
    ]
    assert converted_for_moved({converted: Maker.FRONT_END, entry.root: Maker.FRONT_END}) == []


@pytest.mark.parametrize(("path", "shape"), [("add", "8,2,2"), ("reshape", "8,2,2"), ("add", "4,8")])
def test_what_is_split_behind_a_product_was_moved(path: str, shape: str) -> None:
    """A reshape of the program bears its own name, and a layout keeps the number of dimensions."""
    text = f"""HloModule m

ENTRY %main {{
  %p = f32[8,8]{{1,0}} parameter(0)
  %row = f32[8]{{0}} parameter(1)
  %call = (f32[8,4]{{1,0}}, s8[8]{{0}}) custom-call(%p), custom_call_target="x"
  %spread = f32[8,4]{{1,0}} broadcast(%row), dimensions={{0}}
  %add.9.0 = f32[8,4]{{1,0}} add(%call#0, %spread), metadata={{op_name="jit(f)/add"}}
  ROOT %b = f32[{shape}] bitcast(%add.9.0), metadata={{op_name="jit(f)/{path}"}}
}}
"""
    entry = parse_module(text).entry
    added = entry.root.operands[0]
    moved = split_behind_product({added: Maker.LAYOUT_NORMALIZATION}) == [added]
    assert moved == ((path, shape) == ("add", "8,2,2"))


def test_what_reads_an_element_beside_what_was_moved_was_moved_as_well() -> None:
    """The front end reads the number in it."""
    text = """HloModule m

ENTRY %main {
  %p = f32[5,1]{1,0} parameter(0)
  %k = s32[] parameter(1)
  %element = f32[1,1]{1,0} dynamic-slice(%p, %k, %k), dynamic_slice_sizes={1,1}
  %moved = f32[1,1]{1,0} negate(%element)
  %beside = f32[1,1]{1,0} cosine(%element)
  ROOT %t = (f32[1,1]{1,0}, f32[1,1]{1,0}) tuple(%moved, %beside)
}
"""
    entry = parse_module(text).entry
    named = {x.name: x for x in entry}
    makers = {x: Maker.FRONT_END for x in entry if x.opcode not in ("parameter", "tuple")}
    assert moved_along(makers) == []
    makers[named["moved"]] = Maker.SIMPLIFIER_AGAIN
    assert [x.name for x in moved_along(makers)] == ["beside"]
