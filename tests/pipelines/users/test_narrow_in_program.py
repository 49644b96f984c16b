"""Which operations computed in less in the program, where the converts between them have gone."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.common.visits import uses_in_order
from hlofuse.pipelines.users.floats.narrow_in_program import widened
from hlofuse.pipelines.users.simplified.hidden_casts import narrowed_places, was_cast

from .lists import HEAD, named, places_in_source, users_of

_WIDENED = """  %p = bf16[8]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  %half = bf16[] constant(0.5)
  %halves = bf16[8]{0} broadcast(%half), dimensions={}
  %convert.1 = f32[] convert(%half)
  %broadcast.1 = f32[8]{0} broadcast(%convert.1), dimensions={}
  %convert.2 = f32[8]{0} convert(%p)
"""
"""A narrow parameter and a number that were made wide for what is computed with them."""


@pytest.mark.parametrize(
    ("operation", "frame", "is_narrow"),
    [("mul", 1, True), ("mul", 2, False), ("mul", 0, False)],
)
def test_the_derivative_of_an_expression_is_as_narrow(operation: str, frame: int, is_narrow: bool) -> None:
    """It reads a sum in single precision, which would tell otherwise."""
    body = f"""{_WIDENED}\
  %of_expression = f32[8]{{0}} multiply(%convert.2, %broadcast.1){named("jvp()/mul", frame=1)}
  %sum = f32[8]{{0}} add(%q, %of_expression){named("add", frame=3)}
  %derivative = f32[8]{{0}} multiply(%convert.2, %sum){named(f"transpose(jvp())/{operation}", frame=frame)}
  %bitcast = f32[2,4]{{1,0}} bitcast(%derivative)
  ROOT %r = (f32[8]{{0}}, f32[2,4]{{1,0}}) tuple(%sum, %bitcast)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert found == ({"of_expression", "derivative"} if is_narrow else {"of_expression"})


@pytest.mark.parametrize("frame", [1, 2])
def test_the_last_of_a_narrow_expression_is_as_narrow(frame: int) -> None:
    """It is summed in single precision, which a convert of the program may have been for."""
    body = f"""{_WIDENED}\
  %zero = f32[] constant(0)
  %scaled = f32[8]{{0}} multiply(%convert.2, %broadcast.1){named("mul", frame=1)}
  %square = f32[8]{{0}} multiply(%scaled, %scaled){named("mul", frame=frame)}
  ROOT %sum = f32[] reduce(%square, %zero), dimensions={{0}}, to_apply=%add"""
    add = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    add += "  ROOT %s = f32[] add(%a, %b)\n}"
    entry = parse_module(f"HloModule m\n\n{add}\n\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert ("square" in found) == (frame == 1)


@pytest.mark.parametrize(("first", "narrow"), [("convert.1", "sum"), ("other", "product")])
def test_the_first_to_read_an_inserted_convert_was_narrow(first: str, narrow: str) -> None:
    """CSE made one of the converts, that in front of it and one of the program, which the others read."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %other = f32[8]{{0}} parameter(1)
  %convert.1 = f32[8]{{0}} convert(%p)
  %product = f32[8]{{0}} multiply(%other, %convert.1){named("transpose(jvp())/mul", frame=1)}
  %out = f32[4,2]{{1,0}} bitcast(%product)
  %sum = f32[8]{{0}} add(%{first}, %product){named("transpose(jvp())/add_any", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[4,2]{{1,0}}) tuple(%sum, %product, %out)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert narrow in found
    assert ("sum" in found) == (narrow == "sum")


@pytest.mark.parametrize("mask", ["bf16", "f16"])
def test_what_a_narrow_mask_multiplies_was_narrow(mask: str) -> None:
    """Converts of predicates to what is narrow, and of that to single precision, became one of both."""
    body = f"""  %mask = pred[4]{{0}} parameter(0)
  %q = f32[8,4]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %convert.1 = f32[4]{{0}} convert(%mask)
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%convert.1), dimensions={{1}}
  %product = f32[8,4]{{1,0}} multiply(%q, %broadcast.1){named("mul", frame=1)}
  %convert.3 = bf16[8,4]{{1,0}} convert(%q)
  %sum = f32[8]{{0}} reduce(%product, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum", frame=2)}
  ROOT %r = (f32[8]{{0}}, bf16[8,4]{{1,0}}) tuple(%sum, %convert.3)
  %convert_element_type.1 = {mask}[4]{{0}} convert(%mask){named("convert_element_type")}
  %broadcast.2 = {mask}[8,4]{{1,0}} broadcast(%convert_element_type.1), dimensions={{1}}"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert ("product" in found) == (mask == "bf16")


def test_what_reads_a_broadcast_of_its_own_precision_was_not_narrow() -> None:
    """An RMS normalization: it is narrowed when it has been scaled, and narrow values are added."""
    body = f"""  %p = bf16[8,4]{{1,0}} parameter(0)
  %q = bf16[8,4]{{1,0}} parameter(1)
  %w = bf16[8,4]{{1,0}} parameter(2)
  %zero = f32[] constant(0)
  %convert.1 = f32[8,4]{{1,0}} convert(%p)
  %square.1 = f32[8,4]{{1,0}} multiply(%convert.1, %convert.1){named("square", frame=1)}
  %bitcast.1 = f32[8,4]{{1,0}} bitcast(%square.1)
  %reduce.1 = f32[8]{{0}} reduce(%bitcast.1, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %rsqrt.1 = f32[8]{{0}} rsqrt(%reduce.1){named("rsqrt")}
  %spread.1 = f32[8,4]{{1,0}} broadcast(%rsqrt.1), dimensions={{0}}{named("mul", frame=2)}
  %mul.1 = f32[8,4]{{1,0}} multiply(%convert.1, %spread.1){named("mul", frame=2)}
  %convert.2 = f32[8,4]{{1,0}} convert(%w)
  %mul.2 = f32[8,4]{{1,0}} multiply(%mul.1, %convert.2){named("mul", frame=3)}
  %convert.3 = bf16[8,4]{{1,0}} convert(%mul.2)
  %convert.4 = f32[8,4]{{1,0}} convert(%q)
  %add.1 = f32[8,4]{{1,0}} add(%convert.1, %convert.4){named("add", frame=4)}
  %convert.5 = bf16[8,4]{{1,0}} convert(%add.1)
  %bitcast.2 = f32[4,8]{{1,0}} bitcast(%add.1)
  ROOT %r = (f32[4,8]{{1,0}}, bf16[8,4]{{1,0}}, bf16[8,4]{{1,0}}) tuple(%bitcast.2, %convert.5, %convert.3)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    assert {x.name for x in widened(entry.post_order(), uses_in_order(entry))} == {"mul.2", "add.1"}


@pytest.mark.parametrize(
    ("half", "expected"),
    [("f16", ["half.1", "mul.3", "sin.1"]), ("s32", ["half.1", "sin.1", "mul.3"])],
    ids=["a convert to f16", "of any other type it is read as the others are"],
)
def test_what_was_made_half_and_then_wide_has_its_convert_first(half: str, expected: list[str]) -> None:
    """The other two read the halves converted to f32, as XLA's record of such a program shows."""
    body = f"""  %a = bf16[8]{{0}} parameter(0)
  %b = bf16[8]{{0}} parameter(1)
  %convert.1 = f32[8]{{0}} convert(%a)
  %convert.2 = f32[8]{{0}} convert(%b)
  %mul.2 = f32[8]{{0}} multiply(%convert.1, %convert.2){named("mul", frame=1)}
  %mul.3 = f32[8]{{0}} multiply(%mul.2, %mul.2){named("mul", frame=2)}
  %sin.1 = f32[8]{{0}} sine(%mul.2){named("sin", frame=3)}
  %half.1 = {half}[8]{{0}} convert(%mul.2){named("convert_element_type", frame=4)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, {half}[8]{{0}}) tuple(%mul.3, %sin.1, %half.1)"""
    assert users_of("mul.2", body) == expected


@pytest.mark.parametrize("name", ["multiply", "mul"])
def test_what_is_broadcast_since_tells_nothing_by_the_number_it_reads(name: str) -> None:
    """Its place does: a product of the same place was narrow. One that is of the program read that number."""
    body = f"""  %a = bf16[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %two = f32[] constant(2)
  %convert.1 = f32[8]{{0}} convert(%a)
  %reduce.1 = f32[] reduce(%convert.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_max")}
  %spread.1 = f32[] broadcast(%two), dimensions={{}}
  %{name}.1 = f32[] multiply(%reduce.1, %spread.1){named("transpose(jvp())/mul", frame=1)}
  %spread.2 = f32[4]{{0}} broadcast(%{name}.1), dimensions={{}}{named("transpose(jvp())/mul", frame=1)}
  %mul.5 = f32[8]{{0}} multiply(%convert.1, %convert.1){named("mul", frame=1)}
  %convert.3 = bf16[8]{{0}} convert(%mul.5)
  ROOT %r = (f32[4]{{0}}, bf16[8]{{0}}) tuple(%spread.2, %convert.3)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert (f"{name}.1" in found) == (name == "multiply")


@pytest.mark.parametrize(
    ("size", "expected"),
    [(4, ["convert.2", "add.2", "spread.1"]), (5, ["spread.1", "add.2", "convert.2"])],
    ids=["the same broadcast", "of another size"],
)
def test_a_broadcast_made_wide_came_with_what_was_widened(size: int, expected: list[str]) -> None:
    """Its convert was behind it; it is still there in less, though nobody reads it."""
    body = f"""  %a = bf16[] parameter(0)
  %b = bf16[4]{{0}} parameter(1)
  %convert.1 = f32[] convert(%a)
  %add.1 = f32[] add(%convert.1, %convert.1){named("add", frame=1)}
  %spread.1 = f32[4]{{0}} broadcast(%add.1), dimensions={{}}{named("mul", frame=2)}
  %convert.3 = f32[4]{{0}} convert(%b)
  %mul.1 = f32[4]{{0}} multiply(%spread.1, %convert.3){named("mul", frame=2)}
  %convert.4 = bf16[4]{{0}} convert(%mul.1)
  %add.2 = f32[] add(%add.1, %convert.1){named("add", frame=3)}
  %convert.5 = bf16[] convert(%add.2)
  %convert.2 = bf16[] convert(%add.1)
  %old.1 = bf16[{size}]{{0}} broadcast(%convert.2), dimensions={{}}
  ROOT %r = (bf16[4]{{0}}, bf16[], bf16[{size}]{{0}}) tuple(%convert.4, %convert.5, %old.1)"""
    assert users_of("add.1", body) == expected


@pytest.mark.parametrize(
    ("sum_reads", "expected"),
    [
        ("convert.1, %convert.2", ["convert.1", "select", "max", "equal"]),
        ("convert.2, %convert.2", ["convert.1", "max", "equal", "select"]),
    ],
)
def test_the_last_took_the_place_of_a_convert_that_cse_found_again(
    sum_reads: str, expected: list[str]
) -> None:
    """Difference and sum, computed wide, got a convert each in their places; there is one of both since."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = bf16[8]{{0}} parameter(1)
  %part = bf16[4]{{0}} slice(%p), slice={{[0:4]}}
  %convert.1 = f32[4]{{0}} convert(%part)
  %other = bf16[4]{{0}} slice(%q), slice={{[0:4]}}
  %convert.2 = f32[4]{{0}} convert(%other)
  %difference = f32[4]{{0}} subtract(%convert.1, %convert.2){named("sub", frame=1)}
  %convert.3 = bf16[4]{{0}} convert(%difference)
  %sum = f32[4]{{0}} add(%{sum_reads}){named("add", frame=2)}
  %convert.4 = bf16[4]{{0}} convert(%sum)
  %max = bf16[4]{{0}} maximum(%part, %other){named("max", frame=3)}
  %equal = pred[4]{{0}} compare(%part, %max), direction=EQ{named("eq", frame=4)}
  %select = bf16[4]{{0}} select(%equal, %max, %part){named("select_n", frame=5)}
  ROOT %r = (bf16[4]{{0}}, bf16[4]{{0}}, bf16[4]{{0}}) tuple(%convert.3, %convert.4, %select)"""
    assert users_of("part", body) == expected


@pytest.mark.parametrize(
    ("frame", "of_added", "of_difference"),
    [
        (1, ["difference", "reduce"], ["square", "whole", "backward", "forward"]),
        (2, ["reduce", "difference"], ["whole", "backward", "square", "forward"]),
    ],
)
def test_cse_merged_what_the_program_had_in_both_precisions(
    frame: int, of_added: list[str], of_difference: list[str]
) -> None:
    """A mean that has its own place, not that of the narrow one, was subtracted in single precision."""
    body = f"""  %p = bf16[8,4]{{1,0}} parameter(0)
  %q = bf16[8,4]{{1,0}} parameter(1)
  %w = f32[8,4]{{1,0}} parameter(2)
  %convert.1 = f32[8,4]{{1,0}} convert(%p)
  %convert.2 = f32[8,4]{{1,0}} convert(%q)
  %added = f32[8,4]{{1,0}} add(%convert.1, %convert.2){named("add", frame=3)}
  %zero = f32[] constant(0)
  %reduce = f32[8]{{0}} reduce(%added, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum", frame=4)}
  %less = bf16[8]{{0}} convert(%reduce){named("convert_element_type", frame=5)}
  %spread = bf16[8,4]{{1,0}} broadcast(%less), dimensions={{0}}{named("sub", frame=2)}
  %convert.3 = f32[8,4]{{1,0}} convert(%spread)
  %mean = f32[8,4]{{1,0}} broadcast(%reduce), dimensions={{0}}{named("sub", frame=frame)}
  %difference = f32[8,4]{{1,0}} subtract(%added, %mean){named("sub", frame=frame)}
  %square = f32[8,4]{{1,0}} multiply(%difference, %difference){named("square", frame=6)}
  %total = f32[8]{{0}} reduce(%square, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum", frame=6)}
  %forward = f32[8,4]{{1,0}} multiply(%difference, %convert.1){named("mul", frame=7)}
  %convert.4 = bf16[8,4]{{1,0}} convert(%forward)
  %backward = f32[8,4]{{1,0}} multiply(%difference, %convert.2){named("mul", frame=8)}
  %convert.5 = bf16[8,4]{{1,0}} convert(%backward)
  %whole = f32[8,4]{{1,0}} multiply(%difference, %w){named("mul", frame=6)}
  %bitcast = f32[32]{{0}} bitcast(%whole)
  ROOT %r = (f32[8], bf16[8,4], bf16[8,4], f32[32]) tuple(%total, %convert.4, %convert.5, %bitcast)"""
    assert users_of("added", body) == of_added
    assert users_of("difference", body) == of_difference


@pytest.mark.parametrize(
    ("operation", "is_narrow"),
    [("broadcast_in_dim", False), ("add_any", True)],
    ids=["a product of a sum since", "a sum of the program"],
)
def test_a_sum_of_derivatives_of_squares_was_made_when_all_was_wide(operation: str, is_narrow: bool) -> None:
    """What was squared had been made wide for that; the sum takes the place of the product with two."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = bf16[8]{{0}} parameter(1)
  %r = bf16[8]{{0}} parameter(2)
  %zero = f32[] constant(0)
  %two = f32[] constant(2)
  %convert.1 = f32[8]{{0}} convert(%p)
  %convert.2 = f32[8]{{0}} convert(%q)
  %add.1 = f32[8]{{0}} add(%convert.1, %convert.2){named("add", frame=1)}
  %square.1 = f32[8]{{0}} multiply(%add.1, %add.1){named("square", frame=2)}
  %sum.1 = f32[] reduce(%square.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=3)}
  %convert.3 = f32[8]{{0}} convert(%r)
  %convert.4 = bf16[8]{{0}} convert(%add.1)
  %add.2 = f32[8]{{0}} add(%add.1, %convert.3){named("add", frame=4)}
  %convert.6 = bf16[8]{{0}} convert(%add.2)
  %square.2 = f32[8]{{0}} multiply(%add.2, %add.2){named("square", frame=2)}
  %sum.2 = f32[] reduce(%square.2, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=3)}
  %add.3 = f32[8]{{0}} add(%add.2, %add.1){named(f"transpose(jvp())/{operation}", frame=5)}
  %spread = f32[8]{{0}} broadcast(%two), dimensions={{}}{named("mul", frame=5)}
  %multiply.3 = f32[8]{{0}} multiply(%add.3, %spread){named("transpose(jvp())/add_any", frame=4)}
  %convert.5 = bf16[8]{{0}} convert(%multiply.3)
  %all = (f32[], f32[], bf16[8]{{0}}) tuple(%sum.1, %sum.2, %convert.4)
  ROOT %t = ((f32[], f32[], bf16[8]{{0}}), bf16[8]{{0}}, bf16[8]{{0}}) tuple(%all, %convert.5, %convert.6)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    assert ("add.3" in {x.name for x in widened(entry.post_order(), uses_in_order(entry))}) == is_narrow


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("multiply.5", ["add.3", "square.1", "multiply.5"]),
        ("mul.5", ["add.3", "mul.5", "square.1"]),
    ],
    ids=["merged since", "of the program"],
)
def test_a_product_merged_beside_such_a_sum_comes_last(product: str, expected: list[str]) -> None:
    """It had read the product that went into the sum, which in turn had the place of that."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = bf16[8]{{0}} parameter(1)
  %r = bf16[8]{{0}} parameter(2)
  %zero = f32[] constant(0)
  %two = f32[] constant(2)
  %tenth = f32[] constant(0.1)
  %convert.1 = f32[8]{{0}} convert(%p)
  %convert.2 = f32[8]{{0}} convert(%q)
  %convert.3 = f32[8]{{0}} convert(%r)
  %add.1 = f32[8]{{0}} add(%convert.1, %convert.2){named("add", frame=1)}
  %square.1 = f32[8]{{0}} multiply(%add.1, %add.1){named("square", frame=2)}
  %sum.1 = f32[] reduce(%square.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=3)}
  %spread.1 = f32[8]{{0}} broadcast(%tenth), dimensions={{}}{named("mul", frame=6)}
  %{product} = f32[8]{{0}} multiply(%add.1, %spread.1){named("mul", frame=6)}
  %add.2 = f32[8]{{0}} add(%convert.2, %convert.3){named("add", frame=4)}
  %square.2 = f32[8]{{0}} multiply(%add.2, %add.2){named("square", frame=2)}
  %sum.2 = f32[] reduce(%square.2, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=3)}
  %add.3 = f32[8]{{0}} add(%add.2, %add.1){named("transpose(jvp())/broadcast_in_dim", frame=5)}
  %spread.2 = f32[8]{{0}} broadcast(%two), dimensions={{}}{named("mul", frame=5)}
  %multiply.3 = f32[8]{{0}} multiply(%add.3, %spread.2){named("transpose(jvp())/add_any", frame=4)}
  %convert.5 = bf16[8]{{0}} convert(%multiply.3)
  ROOT %t = (f32[], f32[8]{{0}}, f32[], bf16[8]{{0}}) tuple(%sum.1, %{product}, %sum.2, %convert.5)"""
    assert users_of("add.1", body) == expected


@pytest.mark.parametrize("call", ["jit(_var)/", ""])
def test_a_sum_is_as_narrow_as_what_stands_beside_a_call(call: str) -> None:
    """What is computed in single precision was narrow when it came out, of a call or not."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = bf16[8,4]{{1,0}} parameter(1)
  %n = f32[8]{{0}} parameter(2)
  %half = f32[] constant(0.5)
  %zero = bf16[] constant(0)
  %convert.1 = f32[8]{{0}} convert(%p)
  %convert.2 = f32[8,4]{{1,0}} convert(%q)
  %convert.3 = f32[] convert(%zero)
  %reduce_sum.1 = f32[8]{{0}} reduce(%convert.2, %convert.3), dimensions={{1}}, to_apply=%sum
  %mul.1 = f32[8]{{0}} multiply(%reduce_sum.1, %convert.1){named("transpose(jvp())/mul", frame=1)}
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %mul.2 = f32[8]{{0}} multiply(%n, %halves){named(f"transpose(jvp())/{call}mul", frame=2)}
  %add_any.1 = f32[8]{{0}} add(%mul.2, %n){named(f"transpose(jvp())/{call}add_any", frame=2)}
  %add_any.2 = f32[8]{{0}} add(%mul.1, %add_any.1){named("transpose(jvp())/add_any", frame=2)}
  %reduce_sum.2 = f32[] reduce(%mul.1, %convert.3), dimensions={{0}}, to_apply=%sum
  %out = f32[4,2]{{1,0}} bitcast(%add_any.2)
  ROOT %r = (f32[4,2]{{1,0}}, f32[]) tuple(%out, %reduce_sum.2)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert {"mul.1", "add_any.2"} <= found
    assert "add_any.1" not in found


@pytest.mark.parametrize(("operation", "is_narrow"), [("add_any", True), ("mul", False)])
def test_a_sum_of_derivatives_is_as_narrow_as_one_of_them(operation: str, is_narrow: bool) -> None:
    """That of what was computed in single precision was converted back for it."""
    body = f"""{_WIDENED}\
  %narrow = f32[8]{{0}} multiply(%convert.2, %broadcast.1){named("transpose(jvp())/mul", frame=1)}
  %exact = f32[8]{{0}} divide(%q, %q){named("transpose(jvp())/div", frame=2)}
  %sum = f32[8]{{0}} add(%exact, %narrow){named(f"transpose(jvp())/{operation}", frame=3)}
  %bitcast = f32[2,4]{{1,0}} bitcast(%sum)
  ROOT %r = (f32[8]{{0}}, f32[2,4]{{1,0}}) tuple(%exact, %bitcast)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert found == {"narrow", *(["sum"] if is_narrow else [])}


@pytest.mark.parametrize(("module", "is_narrow"), [("Net", True), ("Net/norm", False)])
def test_what_layers_add_to_stays_narrow_whatever_they_begin_with(module: str, is_narrow: bool) -> None:
    """Each layer converts it to single precision and squares it; the sums are those of one module."""
    body = f"""{_WIDENED}\
  %add.1 = f32[8]{{0}} add(%convert.2, %broadcast.1){named("Net/add", frame=1)}
  %product = f32[8]{{0}} divide(%add.1, %q){named("Net/norm/div", frame=2)}
  %zero = f32[] constant(0)
  %exact = f32[] reduce(%product, %zero), dimensions={{0}}, to_apply=%sum
  %layer = f32[8]{{0}} custom-call(%product), custom_call_target="layer"
  %add.2 = f32[8]{{0}} add(%add.1, %layer){named(f"{module}/add", frame=3)}
  %bitcast = f32[2,4]{{1,0}} bitcast(%add.2)
  ROOT %r = (f32[], f32[2,4]{{1,0}}) tuple(%exact, %bitcast)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert found == {"add.1", *(["add.2"] if is_narrow else [])}


@pytest.mark.parametrize("other", ["convert.2", "q"])
def test_what_is_narrowed_for_a_concatenate_as_all_of_it_is_may_not_have_been_narrow(other: str) -> None:
    """ConvertMover put a convert in front of each operand of a concatenate in single precision."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = bf16[8]{{0}} parameter(1)
  %sin.1 = f32[8]{{0}} sine(%p){named("sin", frame=1)}
  %convert.1 = bf16[8]{{0}} convert(%sin.1)
  %cos.1 = f32[8]{{0}} cosine(%p){named("cos", frame=2)}
  %convert.2 = bf16[8]{{0}} convert(%cos.1)
  %both = bf16[16]{{0}} concatenate(%convert.1, %{other}), dimensions={{0}}{named("concatenate")}
  ROOT %r = (bf16[16]{{0}}, f32[8]{{0}}) tuple(%both, %cos.1)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert ("sin.1" in found) == (other == "q")


@pytest.mark.parametrize(
    ("result", "users"),
    [("%out", ["square", "quotient"]), ("%convert.5, %out", ["quotient", "square"])],
    ids=["unread", "read"],
)
def test_what_nobody_reads_any_more_was_no_start_of_the_walk(result: str, users: list[str]) -> None:
    """It was read when the converts were removed: what is centred is divided first, then squared for that."""
    kinds = "f32[4,8]{1,0}, bf16[8]{0}" if "," in result else "bf16[8]{0}"
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = bf16[8]{{0}} parameter(1)
  %convert.1 = f32[8]{{0}} convert(%p)
  %convert.2 = f32[8]{{0}} convert(%q)
  %centred = f32[8]{{0}} subtract(%convert.1, %convert.2)
  %square = f32[8]{{0}} multiply(%centred, %centred)
  %root = f32[8]{{0}} sqrt(%square)
  %convert.3 = bf16[8]{{0}} convert(%root)
  %spread = bf16[4,8]{{1,0}} broadcast(%convert.3), dimensions={{1}}
  %convert.5 = f32[4,8]{{1,0}} convert(%spread)
  %convert.4 = f32[8]{{0}} convert(%convert.3)
  %quotient = f32[8]{{0}} divide(%centred, %convert.4)
  %out = bf16[8]{{0}} convert(%quotient)
  ROOT %r = ({kinds}) tuple({result})"""
    assert users_of("centred", body) == users


@pytest.mark.parametrize("is_narrow", [True, False])
def test_the_last_user_of_a_convert_takes_the_place_of_what_was_widened(*, is_narrow: bool) -> None:
    """What multiplies a narrow value read that convert, what multiplies another what is converted."""
    type_ = "bf16" if is_narrow else "f32"
    result = "bf16[8]{0} convert" if is_narrow else "f32[8]{0} negate"
    body = f"""{_WIDENED}\
  %sine = f32[8]{{0}} sine(%q){named("sin")}
  %narrow.1 = bf16[8]{{0}} convert(%sine){named("convert_element_type")}
  %mul.1 = f32[8]{{0}} multiply(%sine, {"%convert.2" if is_narrow else "%q"}){named("mul")}
  %result = {result}(%mul.1){"" if is_narrow else named("neg")}
  %exp.1 = bf16[8]{{0}} exponential(%narrow.1){named("exp")}
  %log.1 = bf16[8]{{0}} log(%narrow.1){named("log")}
  ROOT %r = ({type_}[8]{{0}}, bf16[8]{{0}}, bf16[8]{{0}}) tuple(%result, %exp.1, %log.1)"""
    assert users_of("narrow.1", body) == (["log.1", "exp.1"] if is_narrow else ["exp.1", "log.1"])


@pytest.mark.parametrize(
    ("name", "factor", "is_narrow"),
    [
        ("dot_general", "%convert.2", True),
        ("dot_general", "%q", False),
        ("dot_general.596", "%convert.2", True),
        ("dot_general2", "%convert.2", False),
    ],
    ids=["narrow", "not narrow", "named after the instruction", "of another name"],
)
def test_what_read_a_narrow_product_that_became_a_sum_was_given_it_behind_a_convert(
    name: str, factor: str, *, is_narrow: bool
) -> None:
    body = f"""{_WIDENED}\
  %zero = f32[] constant(0)
  %multiply.1 = f32[8]{{0}} multiply({factor}, %q){named(name)}
  %reduce.1 = f32[] reduce(%multiply.1, %zero), dimensions={{0}}, to_apply=%sum{named(name)}
  %s = f32[] parameter(2)
  %sin.1 = f32[] subtract(%reduce.1, %s){named("sub")}
  %cos.1 = f32[] multiply(%reduce.1, %s){named("mul")}
  ROOT %r = (f32[], f32[]) tuple(%sin.1, %cos.1)"""
    assert users_of("reduce.1", body) == (["cos.1", "sin.1"] if is_narrow else ["sin.1", "cos.1"])


@pytest.mark.parametrize(
    ("type_", "users"),
    [("bf16", ["cos.1", "sin.1"]), ("f16", ["cos.1", "sin.1"]), ("s8", ["sin.1", "cos.1"])],
)
def test_so_was_what_read_one_that_the_device_multiplies_narrow(type_: str, users: list[str]) -> None:
    body = f"""  %p = {type_}[8]{{0}} parameter(0)
  %q = {type_}[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %multiply.1 = {type_}[8]{{0}} multiply(%p, %q){named("dot_general")}
  %convert.1 = f32[8]{{0}} convert(%multiply.1){named("dot_general")}
  %reduce.1 = f32[] reduce(%convert.1, %zero), dimensions={{0}}, to_apply=%sum{named("dot_general")}
  %s = f32[] parameter(2)
  %sin.1 = f32[] subtract(%reduce.1, %s){named("sub")}
  %cos.1 = f32[] multiply(%reduce.1, %s){named("mul")}
  ROOT %r = (f32[], f32[]) tuple(%sin.1, %cos.1)"""
    assert users_of("reduce.1", body) == users


@pytest.mark.parametrize(
    ("other", "users"),
    [
        ("convert.1", ["convert_element_type.1", "mul.1"]),
        ("q", ["mul.1", "convert_element_type.1"]),
    ],
)
def test_what_was_narrow_was_not_moved_in_front_of_the_same_reshape(other: str, users: list[str]) -> None:
    """It read the sum made narrow until the converts there and back went."""
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %p = bf16[8]{{0}} parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %zero = f32[] constant(0)
  %total.1 = f32[8]{{0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("total")}
  %convert_element_type.1 = bf16[8]{{0}} convert(%total.1){named("convert_element_type")}
  %convert.1 = f32[8]{{0}} convert(%p)
  %mul.1 = f32[8]{{0}} multiply(%total.1, %{other}){named("mul")}
  %sin.1 = f32[8]{{0}} sine(%convert.1){named("sin")}
  %out = f32[2,4]{{1,0}} bitcast(%mul.1)
  ROOT %r = (bf16[8]{{0}}, f32[2,4]{{1,0}}, f32[8]{{0}}) tuple(%convert_element_type.1, %out, %sin.1)"""
    ids = "x p q zero total.1 sin.1 r convert_element_type.1 mul.1 convert.1 out"
    assert users_of("total.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("operation", "other", "is_narrow"),
    [("add_any", "%convert.1", True), ("add", "%convert.1", False), ("add_any", "%q", False)],
    ids=["derivatives", "converted in the program", "of what was not narrow"],
)
def test_derivatives_by_what_narrow_convolutions_were_given_are_added_up_narrow(
    operation: str, other: str, *, is_narrow: bool
) -> None:
    """A library computes both in single precision, and no convert is left between."""
    conv = 'window={size=1x1}, dim_labels=bf01_oi01->bf01, custom_call_target="__cudnn$convForward"'
    body = f"""  %p = bf16[4,4,1,1]{{3,2,1,0}} parameter(0)
  %q = f32[4,4,1,1]{{3,2,1,0}} parameter(1)
  %convert.1 = f32[4,4,1,1]{{3,2,1,0}} convert(%p)
  %kernel = f32[4,4,1,1]{{3,2,1,0}} bitcast(%convert.1)
  %first = (f32[4,4,1,1]{{3,2,1,0}}, u8[0]{{0}}) custom-call(%q, %kernel), {conv}
  %a = f32[4,4,1,1]{{3,2,1,0}} get-tuple-element(%first), index=0
  %second = (f32[4,4,1,1]{{3,2,1,0}}, u8[0]{{0}}) custom-call(%q, {other}), {conv}
  %b = f32[4,4,1,1]{{3,2,1,0}} get-tuple-element(%second), index=0
  %sum = f32[4,4,1,1]{{3,2,1,0}} add(%a, %b){named(f"transpose(jvp())/{operation}")}
  %left = f32[4,4,1,1]{{3,2,1,0}} multiply(%sum, %q){named("mul")}
  %right = f32[4,4,1,1]{{3,2,1,0}} subtract(%q, %sum){named("sub")}
  ROOT %r = (f32[4,4,1,1]{{3,2,1,0}}, f32[4,4,1,1]{{3,2,1,0}}) tuple(%left, %right)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    assert ("sum" in {x.name for x in widened(entry.post_order(), uses_in_order(entry))}) == is_narrow


@pytest.mark.parametrize("last", ["bf16", "f32"])
def test_a_sum_of_derivatives_of_narrow_products_is_as_narrow_as_they_are(last: str) -> None:
    """By what gave the keys, values and queries of an attention; no convert is left of any."""
    convert = "convert(%p)" if last == "bf16" else "add(%q, %q)"
    body = f"""  %p = bf16[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %wide = f32[8,8]{{1,0}} convert(%p)
  %given = f32[8,8]{{1,0}} {convert}
  %call.1 = (f32[8,8]{{1,0}}, s8[0]{{0}}) custom-call(%wide, %q), custom_call_target="__cublas$gemm"
  %call.2 = (f32[8,8]{{1,0}}, s8[0]{{0}}) custom-call(%wide, %wide), custom_call_target="__cublas$gemm"
  %call.3 = (f32[8,8]{{1,0}}, s8[0]{{0}}) custom-call(%given, %q), custom_call_target="__cublas$gemm"
  %key = f32[8,8]{{1,0}} get-tuple-element(%call.1), index=0
  %value = f32[8,8]{{1,0}} get-tuple-element(%call.2), index=0
  %query = f32[8,8]{{1,0}} get-tuple-element(%call.3), index=0
  %two = f32[8,8]{{1,0}} add(%key, %value){named("transpose(jvp())/add_any", frame=1)}
  %all = f32[8,8]{{1,0}} add(%two, %query){named("transpose(jvp())/add_any", frame=2)}
  %exact = f32[8,8]{{1,0}} exponential(%all){named("exp", frame=3)}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%all, %exact)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert ("all" in found) == (last == "bf16")


@pytest.mark.parametrize(
    ("operation", "kernel", "is_narrow"),
    [("add_any", "%convert.1", True), ("mul", "%convert.1", False), ("add_any", "%q", False)],
    ids=["derivatives", "maybe converted in the program", "no narrow product"],
)
def test_derivatives_by_the_result_of_a_narrow_convolution_are_added_up_narrow(
    operation: str, kernel: str, *, is_narrow: bool
) -> None:
    """Only the derivative of that convolution reads the sum, in single precision without a convert left."""
    conv = 'window={size=1x1}, dim_labels=bf01_oi01->bf01, custom_call_target="__cudnn$convForward"'
    back = conv.replace("Forward", "BackwardInput")
    body = f"""  %p = bf16[4,4,1,1]{{3,2,1,0}} parameter(0)
  %q = f32[4,4,1,1]{{3,2,1,0}} parameter(1)
  %convert.1 = f32[4,4,1,1]{{3,2,1,0}} convert(%p)
  %first = (f32[4,4,1,1]{{3,2,1,0}}, u8[0]{{0}}) custom-call(%q, {kernel}), {conv}
  %sum = f32[4,4,1,1]{{3,2,1,0}} add(%q, %q){named(f"transpose(jvp())/{operation}")}
  %last = (f32[4,4,1,1]{{3,2,1,0}}, u8[0]{{0}}) custom-call(%sum, %q), {back}
  %kept = bf16[4,4,1,1]{{3,2,1,0}} parameter(2)
  %other = f32[4,4,1,1]{{3,2,1,0}} convert(%kept)
  %sine = f32[4,4,1,1]{{3,2,1,0}} sine(%other){named("sin")}
  ROOT %r = ((f32[4,4,1,1]{{3,2,1,0}}, u8[0]{{0}}), f32[4,4,1,1]{{3,2,1,0}}) tuple(%last, %sine)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    assert ("sum" in {x.name for x in widened(entry.post_order(), uses_in_order(entry))}) == is_narrow


@pytest.mark.parametrize(
    ("operands", "users"),
    [("%mul.1, %convert.2", ["add.1", "total.1"]), ("%convert.2, %mul.1", ["total.1", "add.1"])],
)
def test_the_convert_that_a_widened_sum_read_stood_where_the_walk_came_to_it(
    operands: str, users: list[str]
) -> None:
    """It was an operand of its own, ahead of all that the other operand is computed of."""
    body = f"""  %q = f32[4,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %mul.1 = f32[4,8]{{1,0}} multiply(%q, %q){named("mul")}
  %total.1 = f32[4]{{0}} reduce(%mul.1, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %spread.1 = f32[4,8]{{1,0}} broadcast(%total.1), dimensions={{0}}{named("broadcast_in_dim")}
  %narrow.1 = bf16[4,8]{{1,0}} convert(%spread.1){named("convert_element_type")}
  %convert.2 = f32[4,8]{{1,0}} convert(%narrow.1)
  %add.1 = f32[4,8]{{1,0}} add({operands}){named("add_any")}
  %convert.3 = bf16[4,8]{{1,0}} convert(%add.1)
  ROOT %r = (bf16[4,8]{{1,0}}) tuple(%convert.3)"""
    assert users_of("mul.1", body) == users


@pytest.mark.parametrize("initial", ["convert.2", "zero"])
def test_windows_of_which_the_first_value_was_made_wide_were_narrow(initial: str) -> None:
    """As select-and-scatter of a pooling's derivative, expanded, with indices beside."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %indices = s32[8]{{0}} iota(), iota_dimension=0
  %none = s32[] constant(-1)
  %zero = f32[] constant(0)
  %half = bf16[] constant(0.5)
  %convert.1 = f32[8]{{0}} convert(%p)
  %convert.2 = f32[] convert(%half)
  %found = (f32[4]{{0}}, s32[4]{{0}}) reduce-window(%convert.1, %indices, %{initial}, %none), \
window={{size=2 stride=2}}, to_apply=%greater
  ROOT %r = (f32[8]{{0}}, f32[], (f32[4]{{0}}, s32[4]{{0}})) tuple(%convert.1, %convert.2, %found)"""
    greater = """%greater (a: f32[], i: s32[], b: f32[], j: s32[]) -> (f32[], s32[]) {
  %a = f32[] parameter(0)
  %i = s32[] parameter(1)
  %b = f32[] parameter(2)
  %j = s32[] parameter(3)
  ROOT %t = (f32[], s32[]) tuple(%a, %i)
}
"""
    entry = parse_module(f"HloModule m\n\n{greater}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert found == ({"found"} if initial == "convert.2" else set())


@pytest.mark.parametrize(("frame", "is_narrow"), [(2, True), (3, False)], ids=["cast", "cast elsewhere"])
def test_what_reads_a_result_that_its_function_casts_is_as_narrow(frame: int, is_narrow: bool) -> None:
    """A norm computed in single precision is made narrow at once, and added to what layers add to."""
    tables = places_in_source(("norm", 2, 8, 20), ("norm", 3, 8, 20), ("layer", 9, 8, 20))
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %convert.1 = f32[8]{{0}} convert(%p)
  %mul.1 = f32[8]{{0}} multiply(%q, %q){named("mul", frame=1)}
  %convert_element_type.1 = bf16[8]{{0}} convert(%mul.1){named("convert_element_type", frame=frame)}
  %exp.1 = f32[8]{{0}} exponential(%q){named("exp", frame=3)}
  %mul.2 = f32[8]{{0}} multiply(%exp.1, %q){named("mul", frame=1)}
  %add.1 = f32[8]{{0}} add(%mul.2, %mul.2){named("add", frame=3)}
  %sin.1 = f32[8]{{0}} sine(%add.1){named("sin", frame=3)}
  ROOT %r = (bf16[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%convert_element_type.1, %sin.1, %convert.1)"""
    entry = parse_module(f"HloModule m\n{tables}\nENTRY %main {{\n{body}\n}}\n").entry
    places = narrowed_places(entry)
    cast = frozenset(x for x in entry if was_cast(x, places))
    found = widened(entry.post_order(), uses_in_order(entry), cast)
    assert ("add.1" in {x.name for x in found}) == is_narrow


@pytest.mark.parametrize(("source", "is_cast"), [("q", True), ("wide.1", False)])
def test_what_was_narrow_to_begin_with_was_not_cast(source: str, is_cast: bool) -> None:
    """A part of what was made wide, computed in the same place as a result that is made narrow."""
    tables = places_in_source(("norm", 2, 8, 20), ("layer", 9, 8, 20))
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %wide.1 = f32[8]{{0}} convert(%p)
  %mul.1 = f32[8]{{0}} multiply(%q, %q){named("mul", frame=1)}
  %convert_element_type.1 = bf16[8]{{0}} convert(%mul.1){named("convert_element_type", frame=1)}
  %slice.1 = f32[4]{{0}} slice(%{source}), slice={{[0:4]}}{named("mul", frame=1)}
  %sin.1 = f32[4]{{0}} sine(%slice.1){named("sin", frame=2)}
  ROOT %r = (bf16[8]{{0}}, f32[4]{{0}}, f32[8]{{0}}) tuple(%convert_element_type.1, %sin.1, %wide.1)"""
    entry = parse_module(f"HloModule m\n{tables}\nENTRY %main {{\n{body}\n}}\n").entry
    places = narrowed_places(entry)
    assert ("slice.1" in {x.name for x in entry if was_cast(x, places)}) == is_cast


@pytest.mark.parametrize(("of", "is_narrow"), [("convert_element_type", True), ("mul", False)])
def test_what_a_convert_of_the_program_was_reshaped_behind_was_narrow(of: str, is_narrow: bool) -> None:
    """The sum of its squares is taken in single precision; the reshape has the name of the convert."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = f32[4,2]{{1,0}} parameter(1)
  %convert.1 = f32[8]{{0}} convert(%p)
  %zero = f32[] constant(0)
  %mul.1 = f32[4,2]{{1,0}} multiply(%q, %q){named("jit(norm)/mul", frame=1)}
  %bitcast.1 = f32[8]{{0}} bitcast(%mul.1){named(f"jit(norm)/{of}", frame=1)}
  %sum.1 = f32[] reduce(%bitcast.1, %zero), dimensions={{0}}, to_apply=%sum{named("jit(norm)/reduce_sum")}
  ROOT %r = (f32[], f32[8]{{0}}) tuple(%sum.1, %convert.1)"""
    entry = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n").entry
    found = {x.name for x in widened(entry.post_order(), uses_in_order(entry))}
    assert ("mul.1" in found) == is_narrow
