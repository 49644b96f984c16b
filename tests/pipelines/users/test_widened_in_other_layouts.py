"""What was widened since LayoutNormalization made it anew."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.floats.swapped_broadcasts import swapped_broadcasts
from hlofuse.pipelines.users.floats.widened import is_widened_broadcast

from .lists import HEAD, named, users_normalized, users_of


def test_others_read_one_convert_of_the_program_made_anew_with_what_it_converts() -> None:
    """Its place is one, whichever of them leave a bitcast behind."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %add.1 = f32[8,8]{{1,0}} add(%transpose.1, %transpose.1){named("add")}
  %sum.1 = f32[8]{{0}} reduce(%add.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %mean.1 = f32[8,8]{{1,0}} broadcast(%sum.1), dimensions={{1}}{named("sub")}
  %subtract.1 = f32[8,8]{{1,0}} subtract(%add.1, %mean.1){named("sub")}
  %add.2 = f32[8,8]{{1,0}} add(%add.1, %subtract.1){named("add")}
  %bitcast.1 = f32[64]{{0}} bitcast(%add.2)
  ROOT %r = (f32[64]{{0}}) tuple(%bitcast.1)"""
    assert users_normalized("add.1", body, set()) == ["add.2", "sum.1", "subtract.1"]
    assert users_normalized("add.1", body, {"add.1", "add.2"}) == ["subtract.1", "sum.1", "add.2"]


_SPREAD = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %add.1 = f32[8,8]{{1,0}} add(%transpose.1, %transpose.1){named("add")}
  %negate.1 = f32[8,8]{{1,0}} negate(%add.1){named("neg")}
  %sum.1 = f32[8]{{0}} reduce(%negate.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %half.1 = bf16[8]{{0}} convert(%sum.1){named("convert_element_type")}
  %wide.1 = f32[8,4]{{1,0}} broadcast(%sum.1), dimensions={{0}}
  %narrow.1 = bf16[8,4]{{1,0}} broadcast(%half.1), dimensions={{0}}{named("mul")}
  %convert.1 = f32[8,4]{{1,0}} convert(%narrow.1)
  %q = f32[8,4]{{1,0}} parameter(1)
  %abs.1 = f32[8,8]{{1,0}} abs(%add.1){named("abs")}
  %bitcast.1 = f32[64]{{0}} bitcast(%abs.1)
  %mul.2 = f32[8,4]{{1,0}} multiply(%q, %wide.1){named("mul")}
  %mul.3 = f32[8,4]{{1,0}} multiply(%mul.2, %wide.1){named("mul")}
  ROOT %r = (f32[64]{{0}}, f32[8,4]{{1,0}}) tuple(%bitcast.1, %mul.3)"""


def test_no_walk_starts_from_a_convert_that_was_put_in_later() -> None:
    """It was swapped with its broadcast, and nobody reads it any more."""
    assert users_of("add.1", _SPREAD) == ["negate.1", "abs.1"]


def test_a_broadcast_of_what_the_program_had_converted_was_swapped_as_well() -> None:
    """SimplifyFPConversions took the convert put in away, together with that of the program."""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{_SPREAD}\n}}\n").entry
    (swapped,) = swapped_broadcasts(entry.post_order())
    assert [x.name for x in swapped] == ["narrow.1", "convert.1", "wide.1"]
    assert is_widened_broadcast(swapped.wide)
    assert not is_widened_broadcast(swapped.broadcast)


@pytest.mark.parametrize(
    ("wide", "users"), [({"add.2"}, ["slice.1", "slice.2"]), (set(), ["slice.2", "slice.1"])]
)
def test_what_was_widened_read_the_programs_convert_before(wide: set[str], users: list[str]) -> None:
    """As it does one put in: what stood behind both slices reads past it since, and leaves nothing behind."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %add.1 = f32[8,8]{{1,0}} add(%transpose.1, %transpose.1){named("add_any")}
  %convert.2 = bf16[8,8]{{1,0}} convert(%add.1){named("convert_element_type")}
  %slice.1 = bf16[8,4]{{1,0}} slice(%convert.2), slice={{[0:8], [4:8]}}{named("slice")}
  %slice.2 = bf16[8,4]{{1,0}} slice(%convert.2), slice={{[0:8], [0:4]}}{named("slice")}
  %concatenate.1 = bf16[8,8]{{1,0}} concatenate(%slice.1, %slice.2), dimensions={{1}}{named("concatenate")}
  %convert.3 = f32[8,8]{{1,0}} convert(%concatenate.1)
  %add.2 = f32[8,8]{{1,0}} add(%add.1, %convert.3){named("add_any")}
  %bitcast.1 = f32[64]{{0}} bitcast(%add.2)
  ROOT %r = (f32[64]{{0}}) tuple(%bitcast.1)"""
    assert users_normalized("convert.2", body, wide) == users


@pytest.mark.parametrize(
    ("read", "users"),
    [("%convert.1, %each", ["convert.1", "flat.1"]), ("%convert.1, %convert.1", ["flat.1", "convert.1"])],
    ids=["beside what comes of the value", "alone"],
)
def test_a_walk_comes_to_who_was_widened_once_both_its_operands_are_done(read: str, users: list[str]) -> None:
    """What read the value by way of the other operand found the bitcast back, which it left for both."""
    body = f"""  %p = bf16[8,8]{{1,0}} parameter(0)
  %exp.1 = bf16[8,8]{{1,0}} exponential(%p){named("exp")}
  %transpose.1 = bf16[8,8]{{1,0}} transpose(%exp.1), dimensions={{1,0}}{named("exp")}
  %less = pred[8,8]{{1,0}} parameter(1)
  %select.1 = bf16[8,8]{{1,0}} select(%less, %transpose.1, %transpose.1){named("select_n")}
  %convert.1 = f32[8,8]{{1,0}} convert(%select.1)
  %flat.1 = bf16[64]{{0}} bitcast(%select.1)
  %convert.2 = f32[64]{{0}} convert(%flat.1)
  %zero = bf16[] constant(0)
  %convert.3 = f32[] convert(%zero)
  %total = f32[] reduce(%convert.2, %convert.3), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %each = f32[8,8]{{1,0}} broadcast(%total), dimensions={{}}{named("sub")}
  %subtract.1 = f32[8,8]{{1,0}} subtract({read}){named("sub")}
  %back = bf16[8,8]{{1,0}} convert(%subtract.1)
  ROOT %r = (bf16[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%back, %each)"""
    assert users_of("select.1", body) == users
