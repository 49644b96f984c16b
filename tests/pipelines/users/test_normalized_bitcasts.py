"""Bitcasts to another layout than row-major, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.layouts.grouped_reductions import reductions_but_last, with_grouped_where_met

from .lists import HEAD, named, users_of


def test_the_second_user_takes_the_place_of_the_bitcast_behind_a_bitcast() -> None:
    """The two became one, made anew, with its users as they stood."""
    body = f"""  %p = f32[8,32]{{1,0}} parameter(0)
  %bitcast.1.0 = f32[2,4,32]{{2,1,0}} bitcast(%p)
  %negate.1.0 = f32[2,4,32]{{2,1,0}} negate(%bitcast.1.0){named("neg")}
  %multiply.1.0 = f32[2,4,32]{{2,1,0}} multiply(%bitcast.1.0, %negate.1.0){named("mul")}
  ROOT %r = (f32[2,4,32]{{2,1,0}}) tuple(%multiply.1.0)"""
    made = "p r bitcast.1.0 negate.1.0 multiply.1.0"
    assert users_of("bitcast.1.0", body, ids=made) == ["multiply.1.0", "negate.1.0"]
    there = "p negate.1.0 multiply.1.0 r bitcast.1.0"
    assert users_of("bitcast.1.0", body, ids=there) == ["negate.1.0", "multiply.1.0"]


@pytest.mark.parametrize("first", ["reduce_sum.1", "pad.1"])
def test_the_bitcast_that_a_grouped_reduction_brought_is_merged_where_the_walk_meets_it(first: str) -> None:
    body = f"""  %p = f32[2,4,32]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x.1 = f32[8,32]{{1,0}} bitcast(%p){named("add_any")}
  %pad.1 = f32[16,32]{{1,0}} pad(%x.1, %zero), padding=0_8x0_0
  %reduce_sum.1 = f32[32]{{0}} reduce(%x.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  ROOT %r = (f32[16,32]{{1,0}}, f32[32]{{0}}) tuple(%pad.1, %reduce_sum.1)"""
    module = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n")
    by_name = {x.name: x for x in module.entry}
    pad, total, grouped = by_name["pad.1"], by_name["reduce_sum.1"], by_name["x.1"]
    uses = {(grouped, u): u.name != first for u in (pad, total)}
    expected = [total, pad] if first == total.name else [pad, total]
    for users in ([pad, total], [total, pad]):
        assert with_grouped_where_met(grouped, users, uses) == expected


GROUPED = f"""  %p = f32[32,2]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x.1.0 = f32[64]{{0}} bitcast(%p){named("reshape")}
  %neg.1.0 = f32[64]{{0}} negate(%x.1.0){named("neg")}
  %sum.1.0 = f32[] reduce(%x.1.0, %zero), dimensions={{0}}, to_apply=%sum{named("sum")}
  %all.1.0 = f32[64]{{0}} broadcast(%sum.1.0), dimensions={{}}{named("sub")}
  %sub.1.0 = f32[64]{{0}} subtract(%x.1.0, %all.1.0){named("sub")}"""


def test_a_reduction_that_read_what_is_reshaped_comes_last() -> None:
    body = f"{GROUPED}\n  ROOT %r = (f32[64]{{0}}, f32[64]{{0}}) tuple(%neg.1.0, %sub.1.0)"
    assert users_of("x.1.0", body) == ["neg.1.0", "sub.1.0", "sum.1.0"]


@pytest.mark.parametrize(
    ("shape", "users"), [("[6,12]", ["neg.1", "sub.1", "sum.1"]), ("[4,18]", ["neg.1", "sum.1", "sub.1"])]
)
def test_dimensions_that_are_cut_anew_are_not_grouped(shape: str, users: list[str]) -> None:
    rows = shape.partition(",")[0] + "]{0}"
    body = f"""  %p = f32[6,3,4]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x.1 = f32{shape}{{1,0}} bitcast(%p){named("reshape")}
  %neg.1 = f32{shape}{{1,0}} negate(%x.1){named("neg")}
  %sum.1 = f32{rows} reduce(%x.1, %zero), dimensions={{1}}, to_apply=%sum{named("sum")}
  %all.1 = f32{shape}{{1,0}} broadcast(%sum.1), dimensions={{0}}{named("sub")}
  %sub.1 = f32{shape}{{1,0}} subtract(%x.1, %all.1){named("sub")}
  ROOT %r = (f32{shape}{{1,0}}, f32{shape}{{1,0}}) tuple(%neg.1, %sub.1)"""
    assert users_of("x.1", body) == users


def test_a_reduction_beside_a_product_stays() -> None:
    body = f"""{GROUPED}
  %cublas-gemm.1 = f32[64]{{0}} custom-call(%x.1.0, %sub.1.0), custom_call_target="__cublas$gemm"
  ROOT %r = (f32[64]{{0}}, f32[64]{{0}}) tuple(%neg.1.0, %cublas-gemm.1)"""
    assert users_of("x.1.0", body) == ["neg.1.0", "sum.1.0", "sub.1.0", "cublas-gemm.1"]


def test_two_bitcasts_that_became_one_keep_the_order_of_the_users_of_each() -> None:
    """Those of the second come behind those of the first; both have lost a bitcast in front."""
    shape = "f32[2,4,32]{2,1,0}"
    body = f"""  %p = f32[8,32]{{1,0}} parameter(0)
  %q = f32[8,32]{{1,0}} parameter(1)
  %bitcast.1.0 = {shape} bitcast(%q)
  %bitcast.2.0 = {shape} bitcast(%p)
  %multiply.1.0 = {shape} multiply(%bitcast.2.0, %bitcast.2.0){named("square")}
  %multiply.2.0 = {shape} multiply(%multiply.1.0, %bitcast.2.0){named("mul")}
  %multiply.3.0 = {shape} multiply(%bitcast.2.0, %bitcast.2.0){named("square")}
  %multiply.4.0 = {shape} multiply(%multiply.3.0, %bitcast.2.0){named("mul")}
  ROOT %r = ({shape}, {shape}, {shape}) tuple(%multiply.2.0, %multiply.4.0, %bitcast.1.0)"""
    ids = "p q r bitcast.1.0 multiply.1.0 multiply.2.0 multiply.3.0 multiply.4.0 bitcast.2.0"
    users = ["multiply.2.0", "multiply.1.0", "multiply.4.0", "multiply.3.0"]
    assert users_of("bitcast.2.0", body, ids=ids) == users


_CONV = 'custom_call_target="__cudnn$convForward"'
_DOT = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"


@pytest.mark.parametrize(
    ("made", "name", "users"),
    [
        ("dot_general", "dot_general", ["slice.2.0", "slice.1.0"]),
        ("dot_general", "tanh", ["slice.1.0", "slice.2.0"]),
        ("conv_general_dilated", "conv_general_dilated", ["slice.1.0", "slice.2.0"]),
    ],
)
def test_a_product_that_is_read_through_a_transpose_is_row_major_itself(
    made: str, name: str, users: list[str]
) -> None:
    """Of the transpose a bitcast is left, for the first that reads. What has another name was reshaped.

    What convolutions give has another layout itself.
    """
    body = f"""  %p = f32[4,8,8]{{2,1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %bitcast.1.0 = f32[2,4]{{1,0}} bitcast(%q)
  %dot = f32[4,8,8]{{2,1,0}} dot(%p, %p), {_DOT}{named(made)}
  %bitcast.2.0 = f32[2,2,8,8]{{3,2,1,0}} bitcast(%dot){named(name)}
  %slice.1.0 = f32[2,2,8,4]{{3,2,1,0}} slice(%bitcast.2.0), slice={{[0:2],[0:2],[0:8],[4:8]}}{named("split")}
  %slice.2.0 = f32[2,2,8,4]{{3,2,1,0}} slice(%bitcast.2.0), slice={{[0:2],[0:2],[0:8],[0:4]}}{named("split")}
  %multiply.1.0 = f32[2,2,8,4]{{3,2,1,0}} multiply(%slice.1.0, %slice.2.0){named("mul")}
  ROOT %r = (f32[2,2,8,4]{{3,2,1,0}}, f32[2,4]{{1,0}}) tuple(%multiply.1.0, %bitcast.1.0)"""
    ids = "p q r bitcast.1.0 slice.1.0 slice.2.0 multiply.1.0 dot bitcast.2.0"
    assert users_of("bitcast.2.0", body, ids=ids) == users


@pytest.mark.parametrize(
    ("program", "users"),
    [("bf16", ["slice.1.0", "slice.2.0"]), ("f32", ["slice.2.0", "slice.1.0"])],
)
def test_a_product_that_was_narrow_was_read_through_converts_there_and_back(
    program: str, users: list[str]
) -> None:
    """When they went the last that reads took their place."""
    body = f"""  %p = {program}[4,8,8]{{2,1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %bitcast.1.0 = f32[2,4]{{1,0}} bitcast(%q)
  %convert.1.0 = f32[4,8,8]{{2,1,0}} convert(%p)
  %dot = f32[4,8,8]{{2,1,0}} dot(%convert.1.0, %convert.1.0), {_DOT}{named("dot_general")}
  %bitcast.2.0 = f32[2,2,8,8]{{3,2,1,0}} bitcast(%dot){named("dot_general")}
  %slice.1.0 = f32[2,2,8,4]{{3,2,1,0}} slice(%bitcast.2.0), slice={{[0:2],[0:2],[0:8],[4:8]}}{named("split")}
  %slice.2.0 = f32[2,2,8,4]{{3,2,1,0}} slice(%bitcast.2.0), slice={{[0:2],[0:2],[0:8],[0:4]}}{named("split")}
  %multiply.1.0 = f32[2,2,8,4]{{3,2,1,0}} multiply(%slice.1.0, %slice.2.0){named("mul")}
  ROOT %r = (f32[2,2,8,4]{{3,2,1,0}}, f32[2,4]{{1,0}}) tuple(%multiply.1.0, %bitcast.1.0)"""
    ids = "p q r bitcast.1.0 slice.1.0 slice.2.0 multiply.1.0 convert.1.0 dot bitcast.2.0"
    assert users_of("bitcast.2.0", body, ids=ids) == users


def test_a_convolution_had_been_widened_before_layouts_were_normalized() -> None:
    """Its users were made anew behind the converts there and back, which had gone."""
    made = named("conv_general_dilated")
    body = f"""  %p = bf16[4,8,8,8]{{3,2,1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %bitcast.1.0 = f32[2,4]{{1,0}} bitcast(%q)
  %convert.1.0 = f32[4,8,8,8]{{3,2,1,0}} convert(%p)
  %call = (f32[4,8,8,8]{{3,2,1,0}}, u8[0]{{0}}) custom-call(%convert.1.0, %convert.1.0), {_CONV}
  %result = f32[4,8,8,8]{{3,2,1,0}} get-tuple-element(%call), index=0{made}
  %slice.1.0 = f32[4,8,8,4]{{3,2,1,0}} slice(%result), slice={{[0:4],[0:8],[0:8],[4:8]}}{named("split")}
  %slice.2.0 = f32[4,8,8,4]{{3,2,1,0}} slice(%result), slice={{[0:4],[0:8],[0:8],[0:4]}}{named("split")}
  %multiply.1.0 = f32[4,8,8,4]{{3,2,1,0}} multiply(%slice.1.0, %slice.2.0){named("mul")}
  ROOT %r = (f32[4,8,8,4]{{3,2,1,0}}, f32[2,4]{{1,0}}) tuple(%multiply.1.0, %bitcast.1.0)"""
    ids = "p q r bitcast.1.0 convert.1.0 call result slice.1.0 slice.2.0 multiply.1.0"
    assert users_of("result", body, ids=ids) == ["slice.1.0", "slice.2.0"]


def test_what_was_widened_before_there_were_other_layouts_reads_a_bitcast_of_its_own() -> None:
    """CSE made one of the two."""
    body = f"""  %p = bf16[8,32]{{1,0}} parameter(0)
  %bitcast.1.0 = bf16[256,1]{{1,0}} bitcast(%p){named("add")}
  %convert.1.0 = f32[256,1]{{1,0}} convert(%bitcast.1.0)
  %concatenate.1.0 = bf16[256,2]{{1,0}} concatenate(%bitcast.1.0, %bitcast.1.0), dimensions={{1}}
  ROOT %r = (f32[256,1]{{1,0}}, bf16[256,2]{{1,0}}) tuple(%convert.1.0, %concatenate.1.0)"""
    ids = "p r convert.1.0 bitcast.1.0 concatenate.1.0"
    assert users_of("bitcast.1.0", body, ids=ids) == ["convert.1.0", "concatenate.1.0"]


@pytest.mark.parametrize(
    ("second", "users"),
    [("negate", ["sin.1", "exp.1", "neg.1"]), ("bitcast", ["exp.1", "neg.1", "sin.1"])],
)
def test_the_last_reader_of_a_transpose_is_in_place_of_the_bitcast_to_its_layout(
    second: str, users: list[str]
) -> None:
    """The program transposes `p`; what read that reads the copy now. Where it is reshaped each had a copy."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0), metadata={{op_name="p"}}
  %transpose.1 = f32[16,8]{{1,0}} transpose(%p), dimensions={{1,0}}, metadata={{op_name="p"}}
  %exp.1 = f32[16,8]{{1,0}} exponential(%transpose.1){named("exp")}
  %neg.1 = f32[16,8]{{1,0}} {second}(%transpose.1){named("neg")}
  %sin.1 = f32[16,8]{{1,0}} sine(%transpose.1){named("sin")}
  ROOT %r = (f32[16,8]{{1,0}}, f32[16,8]{{1,0}}, f32[16,8]{{1,0}}) tuple(%exp.1, %neg.1, %sin.1)"""
    assert users_of("transpose.1", body, ids="p exp.1 neg.1 sin.1 r transpose.1") == users


@pytest.mark.parametrize(
    ("squeezed", "users"), [("[4,8]{1,0}", ["squeezed", "grouped"]), ("[8,4]{1,0}", ["grouped", "squeezed"])]
)
def test_a_reduction_of_what_is_squeezed_reads_the_value_behind_it(squeezed: str, users: list[str]) -> None:
    body = f"""  %p = f32[1,4,8]{{2,1,0}} parameter(0)
  %c = f32[] constant(0)
  %exp.1 = f32[1,4,8]{{2,1,0}} exponential(%p){named("exp")}
  %grouped = f32[32]{{0}} bitcast(%exp.1)
  %reduce_sum.1 = f32[] reduce(%grouped, %c), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %squeezed = f32{squeezed} bitcast(%exp.1)
  %neg.1 = f32{squeezed} negate(%squeezed){named("neg")}
  ROOT %r = (f32[], f32{squeezed}) tuple(%reduce_sum.1, %neg.1)"""
    assert users_of("exp.1", body) == users


@pytest.mark.parametrize(
    ("operation", "users"),
    [
        ("reduce(%grouped, %c), dimensions={0}, to_apply=%sum", ["grouped", "cos.1", "sin.1"]),
        ("slice(%grouped), slice={[0:1]}", ["grouped", "sin.1", "cos.1"]),
    ],
)
def test_of_several_reductions_of_one_bitcast_each_had_its_own(operation: str, users: list[str]) -> None:
    """What only reads a part of the bitcast had none made for it."""
    shape = "f32[1]{0}" if operation.startswith("slice") else "f32[]"
    body = f"""  %p = f32[4,8]{{1,0}} parameter(0)
  %c = f32[] constant(0)
  %exp.1 = f32[4,8]{{1,0}} exponential(%p){named("exp")}
  %grouped = f32[32]{{0}} bitcast(%exp.1)
  %reduce_sum.1 = f32[] reduce(%grouped, %c), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %other.1 = {shape} {operation}{named("other")}
  %sin.1 = f32[4,8]{{1,0}} sine(%exp.1){named("sin")}
  %cos.1 = f32[4,8]{{1,0}} cosine(%exp.1){named("cos")}
  %sum.1 = f32[4,8]{{1,0}} add(%sin.1, %cos.1){named("add")}
  ROOT %r = (f32[], {shape}, f32[4,8]{{1,0}}) tuple(%reduce_sum.1, %other.1, %sum.1)"""
    assert users_of("exp.1", body) == users


@pytest.mark.parametrize(
    ("name", "users"), [("dot", ["grouped", "cos.1", "sin.1"]), ("reshape", ["grouped", "sin.1", "cos.1"])]
)
def test_a_reduction_had_a_bitcast_beside_that_of_a_gemm(name: str, users: list[str]) -> None:
    """It was hoisted out of the gemm, and has its name."""
    head = """%gemm (a: f32[32,2], b: f32[2,4]) -> f32[32,4] {
  %a = f32[32,2]{1,0} parameter(0)
  %b = f32[2,4]{1,0} parameter(1)
  ROOT %d = f32[32,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    body = f"""  %p = f32[4,8,2]{{2,1,0}} parameter(0)
  %b = f32[2,4]{{1,0}} parameter(1)
  %c = f32[] constant(0)
  %exp.1 = f32[4,8,2]{{2,1,0}} exponential(%p){named("exp")}
  %grouped = f32[32,2]{{1,0}} bitcast(%exp.1){named(name)}
  %dot.1 = f32[32,4]{{1,0}} fusion(%grouped, %b), kind=kCustom, calls=%gemm{named("dot")}
  %reduce_sum.1 = f32[2]{{0}} reduce(%grouped, %c), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %sin.1 = f32[4,8,2]{{2,1,0}} sine(%exp.1){named("sin")}
  %cos.1 = f32[4,8,2]{{2,1,0}} cosine(%exp.1){named("cos")}
  %sum.1 = f32[4,8,2]{{2,1,0}} add(%sin.1, %cos.1){named("add")}
  ROOT %r = (f32[32,4]{{1,0}}, f32[2]{{0}}, f32[4,8,2]{{2,1,0}}) tuple(%dot.1, %reduce_sum.1, %sum.1)"""
    assert users_of("exp.1", body, head=head) == users


def test_each_bitcast_that_a_reduction_lost_left_a_hole_where_it_had_stood() -> None:
    """Each last user fills the next of them, so that the holes are counted with those ahead."""
    body = f"""  %p = f32[4,8]{{1,0}} parameter(0)
  %c = f32[] constant(0)
  %exp.1 = f32[4,8]{{1,0}} exponential(%p){named("exp")}
  %grouped = f32[32]{{0}} bitcast(%exp.1)
  %reduce_sum.1 = f32[] reduce(%grouped, %c), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %reduce_max.1 = f32[] reduce(%grouped, %c), dimensions={{0}}, to_apply=%sum{named("reduce_max")}
  %sin.1 = f32[4,8]{{1,0}} sine(%exp.1){named("sin")}
  %reduce_min.1 = f32[] reduce(%grouped, %c), dimensions={{0}}, to_apply=%sum{named("reduce_min")}
  %reduce_prod.1 = f32[] reduce(%grouped, %c), dimensions={{0}}, to_apply=%sum{named("reduce_prod")}
  %cos.1 = f32[4,8]{{1,0}} cosine(%exp.1){named("cos")}
  %sqrt.1 = f32[4,8]{{1,0}} sqrt(%exp.1){named("sqrt")}
  %tanh.1 = f32[4,8]{{1,0}} tanh(%exp.1){named("tanh")}
  ROOT %r = (f32[], f32[], f32[4,8]{{1,0}}, f32[], f32[], f32[4,8]{{1,0}}, f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) \
tuple(%reduce_sum.1, %reduce_max.1, %sin.1, %reduce_min.1, %reduce_prod.1, %cos.1, %sqrt.1, %tanh.1)"""
    ids = "p c exp.1 cos.1 sqrt.1 sin.1 tanh.1 r grouped reduce_sum.1 reduce_max.1 reduce_min.1 reduce_prod.1"
    assert users_of("exp.1", body, ids=ids) == ["grouped", "tanh.1", "sin.1", "sqrt.1", "cos.1"]


@pytest.mark.parametrize(
    ("name", "users"), [("", ["sin.1", "exp.1"]), (named("reduce_window_sum"), ["exp.1", "sin.1"])]
)
def test_the_last_takes_the_place_of_the_bitcast_back_behind_a_cumulative_sum(
    name: str, users: list[str]
) -> None:
    """Along the last dimension, where nothing was transposed, the reshape has the name of the sum."""
    body = f"""  %p = f32[8,16,3]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %reduce-window.2 = f32[8,16,3]{{2,1,0}} reduce-window(%p, %zero),\
 window={{size=1x16x1 pad=0_0x15_0x0_0}}, to_apply=%sum
  %add.2 = f32[8,16,3]{{2,1,0}} add(%reduce-window.2, %p){named("reduce_window_sum")}
  %bitcast.16 = f32[128,3]{{1,0}} bitcast(%add.2){name}
  %exp.1 = f32[128,3]{{1,0}} exponential(%bitcast.16){named("exp")}
  %sin.1 = f32[128,3]{{1,0}} sine(%bitcast.16){named("sin")}
  ROOT %r = (f32[128,3]{{1,0}}, f32[128,3]{{1,0}}) tuple(%exp.1, %sin.1)"""
    assert users_of("bitcast.16", body) == users


@pytest.mark.parametrize(("named_after", "listed"), [("", ["multiply.1", "broadcast.1"]), ("sum", None)])
def test_what_read_a_reduction_through_a_transpose_that_moves_nothing_comes_first(
    named_after: str, listed: list[str] | None
) -> None:
    """The reduction itself was row-major, so that what was made anew of its layout read another value."""
    of_reduction = named(named_after) if named_after else ""
    body = f"""  %p = f32[4,2,3,64,4]{{4,3,2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %reduce.1 = f32[4,2,64,4]{{2,3,1,0}} reduce(%p, %zero), dimensions={{2}}, to_apply=%sum{of_reduction}
  %bitcast.1 = f32[4,2,4,64]{{3,2,1,0}} bitcast(%reduce.1){named("reduce_sum")}
  %broadcast.1 = f32[4,2,16,4,64]{{4,3,2,1,0}} broadcast(%bitcast.1), dimensions={{0,1,3,4}}{named("div")}
  %multiply.1 = f32[4,2,4,64]{{3,2,1,0}} multiply(%bitcast.1, %bitcast.1){named("mul")}
  ROOT %r = (f32[4,2,16,4,64]{{4,3,2,1,0}}, f32[4,2,4,64]{{3,2,1,0}}) tuple(%broadcast.1, %multiply.1)"""
    ids = "p zero bitcast.1 reduce.1 broadcast.1 multiply.1 r"
    assert users_of("bitcast.1", body, ids=ids) == (listed or ["broadcast.1", "multiply.1"])


def test_the_last_of_several_reductions_took_the_place_of_the_bitcast_that_all_read() -> None:
    body = """  %p = f32[4,16,8]{2,1,0} parameter(0)
  %zero = f32[] constant(0)
  %rows = f32[4,16]{1,0} reduce(%p, %zero), dimensions={2}, to_apply=%sum
  %grouped = f32[4,128]{1,0} bitcast(%p)
  %each = f32[4]{0} reduce(%grouped, %zero), dimensions={1}, to_apply=%sum
  %columns = f32[16,8]{1,0} reduce(%p, %zero), dimensions={0}, to_apply=%sum
  ROOT %r = (f32[4,16]{1,0}, f32[4]{0}, f32[16,8]{1,0}) tuple(%rows, %each, %columns)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    order = {x: k for k, x in enumerate(entry.post_order())}
    users = entry.parameters[0].users
    assert [x.name for x in reductions_but_last(users[::-1], order)] == ["rows", "grouped"]


@pytest.mark.parametrize("squeezed", ["[4,8]{1,0}", "[8,4]{1,0}"], ids=["squeezed", "reshaped otherwise"])
def test_a_bitcast_that_a_reduction_reads_stands_where_that_did(squeezed: str) -> None:
    """What subtracts the sum comes later, but its first operand was widened in front of that."""
    body = f"""  %p = bf16[1,4,8]{{2,1,0}} parameter(0)
  %value = bf16[1,4,8]{{2,1,0}} exponential(%p){named("exp")}
  %convert.1 = f32[1,4,8]{{2,1,0}} convert(%value)
  %squeezed = bf16{squeezed} bitcast(%value)
  %convert.2 = f32{squeezed} convert(%squeezed)
  %zero = bf16[] constant(0)
  %convert.3 = f32[] convert(%zero)
  %total = f32[] reduce(%convert.2, %convert.3), dimensions={{0,1}}, to_apply=%sum{named("reduce_sum")}
  %each = f32[1,4,8]{{2,1,0}} broadcast(%total), dimensions={{}}
  %sub.1 = f32[1,4,8]{{2,1,0}} subtract(%convert.1, %each){named("sub")}
  ROOT %r = bf16[1,4,8]{{2,1,0}} convert(%sub.1)"""
    assert users_of("value", body) == ["squeezed", "convert.1"]


@pytest.mark.parametrize(
    ("layout", "users"),
    [("2,0,1", ["bitcast.1", "bitcast.2"]), ("2,1,0", ["bitcast.2", "bitcast.1"])],
    ids=["normalized", "row-major"],
)
def test_of_calls_nothing_is_left_among_bitcasts_to_row_major(layout: str, users: list[str]) -> None:
    """`vmap(lambda x: x[indices])`, of which a function takes a part."""
    body = f"""  %p = f32[32,20]{{1,0}} parameter(0)
  %q = s32[10,1]{{1,0}} parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  %gather.1 = f32[10,32,1]{{{layout}}} gather(%p, %q), offset_dims={{1,2}}, collapsed_slice_dims={{}},\
 start_index_map={{1}}, index_vector_dim=1, slice_sizes={{32,1}}{named("jvp(vmap(jit(solve)))/gather")}
  %bitcast.1 = f32[32,10,1]{{2,1,0}} bitcast(%gather.1)
  %slice.1 = f32[32,1,1]{{2,1,0}} dynamic-slice(%bitcast.1, %zero, %i, %zero), dynamic_slice_sizes={{32,1,1}}
  %bitcast.3 = f32[32]{{0}} bitcast(%slice.1){named("jit(take)/squeeze")}
  %bitcast.2 = f32[32,10]{{1,0}} bitcast(%gather.1){named("jvp(vmap(jit(solve)))/gather")}
  ROOT %r = (f32[32]{{0}}, f32[32,10]{{1,0}}) tuple(%bitcast.3, %bitcast.2)"""
    ids = "p q i zero gather.1 r bitcast.1 slice.1 bitcast.3 bitcast.2"
    assert users_of("gather.1", body, ids=ids) == users


_AT_ONCE = f"%x = KERNEL bitcast(%given){named('transpose(jvp())/transpose')}"
_BEHIND_CLIP = f"""%matrix = f32[64,64]{{1,0}} bitcast(%given){named("transpose(jvp())/dot_general")}
  %most = f32[64,64]{{1,0}} broadcast(%limit), dimensions={{}}
  %min = f32[64,64]{{1,0}} minimum(%matrix, %most){named("min")}
  %x = KERNEL bitcast(%min){named("min")}"""


@pytest.mark.parametrize("moved", [_AT_ONCE, _BEHIND_CLIP], ids=["at once", "behind an operation"])
@pytest.mark.parametrize(
    ("layout", "kernel", "users"),
    [
        ("0,1", "f32[4,16,64]{2,1,0}", ["square", "sub"]),
        ("1,0", "f32[4,16,64]{2,1,0}", ["sub", "square"]),
        ("0,1", "f32[64,64]{1,0}", ["sub", "square"]),
    ],
    ids=["transposed", "row-major", "a matrix"],
)
def test_the_gradient_of_a_kernel_of_several_dimensions_is_transposed_in_place(
    moved: str, layout: str, kernel: str, users: list[str]
) -> None:
    """That by the kernel of `einsum("abc,cde->abde")`: the last took the place of a bitcast back."""
    product = f"(f32[64,64]{{{layout}}}, s8[64]{{0}})"
    body = f"""  %p = f32[64,256]{{1,0}} parameter(0)
  %q = f32[256,64]{{1,0}} parameter(1)
  %limit = f32[] constant(1)
  %call = {product} custom-call(%p, %q), custom_call_target="__cublas$lt$matmul"{named("dot_general")}
  %given = f32[64,64]{{{layout}}} get-tuple-element(%call), index=0
  {moved}
  %sub = KERNEL negate(%x){named("sub")}
  %square = KERNEL multiply(%x, %x){named("square")}
  ROOT %r = (KERNEL, KERNEL) tuple(%sub, %square)"""
    assert users_of("x", body.replace("KERNEL", kernel)) == users


@pytest.mark.parametrize("first", ["sum.1", "sum.2"])
def test_of_several_reductions_the_one_met_last_took_the_place_of_the_bitcast(first: str) -> None:
    """ReductionLayoutNormalizer gave each a bitcast of its own, whichever was made first."""
    last = "sum.2" if first == "sum.1" else "sum.1"
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %add.1 = f32[8,8]{{1,0}} add(%transpose.1, %transpose.1){named("add")}
  %sum.1 = f32[8]{{0}} reduce(%add.1, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %sum.2 = f32[8]{{0}} reduce(%add.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %negate.1 = f32[8,8]{{1,0}} negate(%add.1){named("neg")}
  %bitcast.1 = f32[64]{{0}} bitcast(%negate.1)
  ROOT %r = (f32[64]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%bitcast.1, %{first}, %{last})"""
    assert users_of("add.1", body) == [last, "negate.1", first]
