"""Which values had another layout than row-major."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.layouts.other_layouts import in_other_layout, made_anew

from ...running import find
from .lists import HEAD, named, users_normalized, users_of


def _in_other_layout(body: str, *, younger: int = 0) -> set[str]:
    """The names of those; the text is in the order of age, but that so many are `younger` than the root."""
    module = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n")
    entry = module.entry
    for x in entry.instructions[-1 - younger : -1]:
        x.id += 1
    entry.root.id -= younger
    return {x.name for x in in_other_layout(entry.post_order(), made_anew(entry, ids_known=True))}


@pytest.mark.parametrize(("name", "is_copy"), [("mul", True), ("transpose", False)])
def test_what_is_made_anew_behind_a_copy_had_its_layout(name: str, is_copy: bool) -> None:
    """All bitcasts are younger. What was copied is row-major, whoever reads it beside the copy."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named(name)}
  %exponential.1 = f32[8,8]{{1,0}} exponential(%transpose.1){named("exp")}
  %add.1 = f32[8,8]{{1,0}} add(%exponential.1, %mul.1){named("add")}
  %bitcast.1 = f32[64]{{0}} bitcast(%add.1)
  ROOT %r = (f32[64]{{0}}) tuple(%bitcast.1)"""
    assert _in_other_layout(body) == ({"transpose.1", "exponential.1", "add.1"} if is_copy else set())


def test_a_scatter_that_is_there_in_either_layout_joins_nothing() -> None:
    """Made anew row-major the two of them are equal; `add.2` reads the one that always was."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %indices = s32[8,2]{{1,0}} parameter(1)
  %updates = f32[8]{{0}} parameter(2)
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %sine.1 = f32[8,8]{{1,0}} sine(%p){named("sin")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %exponential.1 = f32[8,8]{{1,0}} exponential(%transpose.1){named("exp")}
  %scatter.1 = f32[8,8]{{1,0}} scatter(%p, %indices, %updates), update_window_dims={{}}, \
inserted_window_dims={{0,1}}, scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply=%sum
  %add.1 = f32[8,8]{{1,0}} add(%scatter.1, %exponential.1){named("add_any")}
  %add.2 = f32[8,8]{{1,0}} add(%scatter.1, %sine.1){named("add_any")}
  %bitcast.1 = f32[64]{{0}} bitcast(%add.1)
  ROOT %r = (f32[64]{{0}}, f32[8,8]{{1,0}}) tuple(%bitcast.1, %add.2)"""
    assert {"transpose.1", "exponential.1", "add.1"} <= _in_other_layout(body)


@pytest.mark.parametrize("operation", ["mul", "div"])
@pytest.mark.parametrize("value", ["exponential.1", "mul.1"])
def test_a_divisor_that_was_broadcast_in_either_layout_joins_nothing(operation: str, value: str) -> None:
    """Nor does that of a factor: the quotient has become a product with its reciprocal."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %rate = f32[] constant(2)
  %spread.1 = f32[8,8]{{1,0}} broadcast(%rate), dimensions={{}}
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %mul.2 = f32[8,8]{{1,0}} multiply(%mul.1, %spread.1){named("mul")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %exponential.1 = f32[8,8]{{1,0}} exponential(%transpose.1){named("exp")}
  %multiply.1 = f32[8,8]{{1,0}} multiply(%{value}, %spread.1){named(operation)}
  %bitcast.1 = f32[64]{{0}} bitcast(%exponential.1)
  ROOT %r = (f32[64]{{0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%bitcast.1, %mul.2, %multiply.1)"""
    assert ("multiply.1" in _in_other_layout(body)) is (value == "exponential.1")


@pytest.mark.parametrize(("value", "is_made_anew"), [("exponential.1", True), ("mul.1", False)])
def test_a_broadcast_that_was_there_in_either_layout_joins_nothing(value: str, is_made_anew: bool) -> None:
    """Made anew row-major the two of them are equal; `mul.2` reads the one that always was."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %mask = pred[8]{{0}} parameter(1)
  %broadcast_in_dim.1 = pred[8,8]{{1,0}} broadcast(%mask), dimensions={{1}}{named("broadcast_in_dim")}
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %select_n.1 = f32[8,8]{{1,0}} select(%broadcast_in_dim.1, %mul.1, %mul.1){named("select_n")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %exponential.1 = f32[8,8]{{1,0}} exponential(%transpose.1){named("exp")}
  %select.1 = f32[8,8]{{1,0}} select(%broadcast_in_dim.1, %{value}, %{value}){named("select_n")}
  %bitcast.1 = f32[64]{{0}} bitcast(%exponential.1)
  ROOT %r = (f32[64]{{0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%bitcast.1, %select_n.1, %select.1)"""
    assert ("select.1" in _in_other_layout(body)) is is_made_anew


@pytest.mark.parametrize(
    ("given", "anew"),
    [
        ("broadcast(%rate), dimensions={}", {"cosine.1", "multiply.1"}),
        ("broadcast(%row), dimensions={1}", set()),
    ],
    ids=["of a number", "of a row"],
)
def test_nor_does_that_of_a_number_which_was_made_anew(given: str, anew: set[str]) -> None:
    """Where passes made it, and CSE one of two, it is younger than all; `mul.1` always was row-major."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %x = f32[8,8]{{0,1}} parameter(1)
  %rate = f32[] parameter(2)
  %row = f32[8]{{0}} parameter(3)
  %broadcast.9 = f32[8,8]{{1,0}} {given}
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %broadcast.9){named("mul")}
  %bitcast.1 = f32[8,8]{{1,0}} bitcast(%x)
  %cosine.1 = f32[8,8]{{1,0}} cosine(%bitcast.1){named("cos")}
  %multiply.1 = f32[8,8]{{1,0}} multiply(%cosine.1, %broadcast.9){named("mul")}
  %bitcast.2 = f32[64]{{0}} bitcast(%multiply.1)
  ROOT %r = (f32[64]{{0}}, f32[8,8]{{1,0}}) tuple(%bitcast.2, %mul.1)"""
    module = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n")
    find(module, "broadcast.9").id = len(module.entry.instructions)
    found = in_other_layout(module.entry.post_order(), made_anew(module.entry, ids_known=True))
    assert {x.name for x in found if x.opcode in {"cosine", "multiply", "broadcast"}} == anew


@pytest.mark.parametrize(("name", "is_copy"), [("while", True), ("transpose", False)])
def test_what_was_made_in_a_row_with_a_copy_was_made_anew(name: str, is_copy: bool) -> None:
    """What was copied bears no name, and the first bitcast that is left came next."""
    body = f"""  %t = (f32[8,8]{{1,0}}, f32[8]{{0}}) parameter(0)
  %x = f32[8,8]{{1,0}} get-tuple-element(%t), index=0
  %y = f32[8]{{0}} get-tuple-element(%t), index=1
  %mul.1 = f32[8,8]{{1,0}} multiply(%x, %x){named("mul")}
  %broadcast.1 = f32[8,8]{{1,0}} broadcast(%y), dimensions={{0}}{named("sub")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%x), dimensions={{1,0}}{named(name)}
  %subtract.1 = f32[8,8]{{1,0}} subtract(%broadcast.1, %transpose.1){named("sub")}
  %bitcast.1 = f32[64]{{0}} bitcast(%subtract.1)
  ROOT %r = (f32[64]{{0}}, f32[8,8]{{1,0}}) tuple(%bitcast.1, %mul.1)"""
    assert _in_other_layout(body) == ({"broadcast.1", "transpose.1", "subtract.1"} if is_copy else set())


@pytest.mark.parametrize(
    ("opcode", "name", "is_made_anew"),
    [("multiply", "mul", True), ("add", "add", False)],
    ids=["one has the name of its opcode only", "all may be of a function"],
)
def test_what_was_made_in_a_row_behind_the_program_was_made_anew(
    opcode: str, name: str, is_made_anew: bool
) -> None:
    """Two indices and what reads them, of which every user was given the other layout."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %cos.1 = f32[8,8]{{1,0}} cosine(%p){named("cos")}
  %iota.1 = f32[8,8]{{1,0}} iota(), iota_dimension=0{named("iota")}
  %iota.2 = f32[8,8]{{1,0}} iota(), iota_dimension=1{named("iota")}
  %{opcode}.1 = f32[8,8]{{1,0}} {opcode}(%iota.1, %iota.2){named(name)}
  %slice.1 = f32[4,8]{{1,0}} slice(%{opcode}.1), slice={{[0:4], [0:8]}}{named("split")}
  %bitcast.1 = f32[32]{{0}} bitcast(%slice.1)
  ROOT %tuple.1 = (f32[32]{{0}}, f32[8,8]{{1,0}}) tuple(%bitcast.1, %cos.1)"""
    anew = {"iota.1", "iota.2", f"{opcode}.1", "slice.1"}
    assert _in_other_layout(body, younger=5) == (anew if is_made_anew else set())


@pytest.mark.parametrize("wide", [(), ("add.1",)])
def test_a_convert_of_the_program_was_made_anew_before_widened_ones_joined_it(wide: tuple[str, ...]) -> None:
    """A bitcast that `multiply.2` read went first of all, so it took that place, as in a residual block."""
    body = f"""  %p = bf16[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %mul.1 = bf16[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %sin.1 = f32[8,8]{{1,0}} sine(%q){named("sin")}
  %transpose.1 = bf16[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %transpose.2 = f32[8,8]{{1,0}} transpose(%sin.1), dimensions={{1,0}}{named("sin")}
  %negate.1 = bf16[8,8]{{1,0}} negate(%transpose.1){named("neg")}
  %convert.1 = f32[8,8]{{1,0}} convert(%negate.1)
  %multiply.1 = f32[8,8]{{1,0}} multiply(%convert.1, %transpose.2){named("mul")}
  %subtract.1 = f32[8,8]{{1,0}} subtract(%transpose.2, %multiply.1){named("sub")}
  %multiply.2 = f32[8,8]{{1,0}} multiply(%subtract.1, %convert.1){named("mul")}
  %add.1 = f32[8,8]{{1,0}} add(%convert.1, %transpose.2){named("add")}
  %bitcast.1 = f32[64]{{0}} bitcast(%multiply.2)
  %bitcast.2 = f32[64]{{0}} bitcast(%add.1)
  ROOT %r = (f32[64]{{0}}, f32[64]{{0}}) tuple(%bitcast.1, %bitcast.2)"""
    users = users_normalized("convert.1", body, wide)
    merged = ["multiply.2", "multiply.1", "add.1"]
    assert users == (merged if wide else ["multiply.1", "multiply.2", "add.1"])


@pytest.mark.parametrize("name", ["", "mul"])
@pytest.mark.parametrize(
    ("first", "last", "users"),
    [
        ("f32[8,4]{1,0} %mul.1", "f32[8,4]{0,1} %bitcast.2", ["transpose.1", "multiply.2"]),
        ("f32[8,4]{0,1} %bitcast.2", "f32[8,4]{1,0} %mul.1", ["multiply.2", "transpose.1"]),
    ],
    ids=["what was row-major", "what was made anew"],
)
def test_bitcasts_of_what_the_body_of_a_loop_is_given_are_one_where_the_walk_meets_the_first(
    name: str, first: str, last: str, users: list[str]
) -> None:
    """What reads it through a copy, of no name, or a transpose was row-major; the rest was made anew."""
    results = [x.split() for x in (first, last)]
    shape, given = (", ".join(x) for x in zip(*results, strict=True))
    body = f"""  %p = (f32[8,4]{{0,1}}, f32[8,4]{{1,0}}) parameter(0)
  %e = f32[8,4]{{0,1}} get-tuple-element(%p), index=0
  %q = f32[8,4]{{1,0}} get-tuple-element(%p), index=1
  %bitcast.1 = f32[4,8]{{1,0}} bitcast(%e)
  %transpose.1 = f32[8,4]{{1,0}} transpose(%bitcast.1), dimensions={{1,0}}{named(name) if name else ""}
  %mul.1 = f32[8,4]{{1,0}} multiply(%transpose.1, %q){named("mul")}
  %multiply.2 = f32[4,8]{{1,0}} multiply(%bitcast.1, %bitcast.1){named("mul")}
  %bitcast.2 = f32[8,4]{{0,1}} bitcast(%multiply.2)
  ROOT %r = ({shape}) tuple({given})"""
    ids = "p e q mul.1 r bitcast.1 transpose.1 multiply.2 bitcast.2"
    assert users_of("bitcast.1", body, ids=ids) == users


def test_what_was_widened_read_the_narrow_value_that_others_read_too() -> None:
    """`add.1` got its convert later; what it left when that became `convert.1` is not where that stood."""
    body = f"""  %p = bf16[8,8]{{1,0}} parameter(0)
  %mul.1 = bf16[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = bf16[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %negate.1 = bf16[8,8]{{1,0}} negate(%transpose.1){named("neg")}
  %transpose.3 = bf16[8,8]{{1,0}} transpose(%negate.1), dimensions={{1,0}}{named("neg")}
  %convert.1 = f32[8,8]{{1,0}} convert(%negate.1){named("convert_element_type")}
  %add.1 = f32[8,8]{{1,0}} add(%convert.1, %convert.1){named("add")}
  %multiply.1 = f32[8,8]{{1,0}} multiply(%convert.1, %convert.1){named("mul")}
  %bitcast.3 = bf16[64]{{0}} bitcast(%transpose.3)
  %bitcast.2 = f32[64]{{0}} bitcast(%add.1)
  %bitcast.1 = f32[64]{{0}} bitcast(%multiply.1)
  ROOT %r = (bf16[64]{{0}}, f32[64]{{0}}, f32[64]{{0}}) tuple(%bitcast.3, %bitcast.2, %bitcast.1)"""
    users = users_normalized("negate.1", body, {"add.1"})
    assert users == ["transpose.3", "convert.1"]


def test_what_was_read_narrow_is_so_from_where_the_convert_was_met() -> None:
    """The sum reads the convert, which was made anew ahead of what the reduction reads, a bitcast back.

    ReductionLayoutNormalizer then had the reduction read the product at once, in place of the bitcast.
    """
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = bf16[8,8]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %mul.0 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = f32[8,8]{{1,0}} transpose(%mul.0), dimensions={{1,0}}{named("mul")}
  %multiply.1 = f32[8,8]{{1,0}} multiply(%transpose.1, %transpose.1){named("mul")}
  %reduce_sum.1 = f32[8]{{0}} reduce(%multiply.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %broadcast.1 = f32[8,8]{{1,0}} broadcast(%reduce_sum.1), dimensions={{1}}{named("div")}
  %transpose.2 = bf16[8,8]{{1,0}} transpose(%q), dimensions={{1,0}}{named("add_any")}
  %convert.1 = f32[8,8]{{1,0}} convert(%transpose.2)
  %add.1 = f32[8,8]{{1,0}} add(%broadcast.1, %convert.1){named("add_any")}
  %add.2 = f32[8,8]{{1,0}} add(%multiply.1, %add.1){named("add_any")}
  %convert.2 = bf16[8,8]{{1,0}} convert(%add.2)
  %bitcast.1 = f32[64]{{0}} bitcast(%add.1)
  ROOT %r = (bf16[8,8]{{1,0}}, f32[64]{{0}}) tuple(%convert.2, %bitcast.1)"""
    assert users_of("multiply.1", body) == ["reduce_sum.1", "add.2"]


@pytest.mark.parametrize(
    ("wide", "users"),
    [(("add.1", "add.2"), ["slice.1", "slice.2"]), (("add.1",), ["slice.2", "slice.1"])],
)
def test_what_reads_past_a_convert_back_read_it_before(wide: tuple[str, ...], users: list[str]) -> None:
    """`add.2` stood behind both slices. It went past the convert later: of that, nothing is left behind."""
    body = f"""  %p = bf16[8,8]{{1,0}} parameter(0)
  %mul.1 = bf16[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %transpose.1 = bf16[8,8]{{1,0}} transpose(%mul.1), dimensions={{1,0}}{named("mul")}
  %convert.1 = f32[8,8]{{1,0}} convert(%transpose.1)
  %add.1 = f32[8,8]{{1,0}} add(%convert.1, %convert.1){named("add_any")}
  %convert.2 = bf16[8,8]{{1,0}} convert(%add.1)
  %slice.1 = bf16[8,4]{{1,0}} slice(%convert.2), slice={{[0:8], [4:8]}}{named("slice")}
  %slice.2 = bf16[8,4]{{1,0}} slice(%convert.2), slice={{[0:8], [0:4]}}{named("slice")}
  %concatenate.1 = bf16[8,8]{{1,0}} concatenate(%slice.1, %slice.2), dimensions={{1}}{named("concatenate")}
  %convert.3 = f32[8,8]{{1,0}} convert(%concatenate.1)
  %add.2 = f32[8,8]{{1,0}} add(%add.1, %convert.3){named("add_any")}
  %bitcast.1 = f32[64]{{0}} bitcast(%add.2)
  ROOT %r = (f32[64]{{0}}) tuple(%bitcast.1)"""
    assert users_normalized("convert.2", body, wide) == users


@pytest.mark.parametrize(
    ("operation", "users"),
    [("mul", ["multiply.2", "multiply.1"]), ("dot_general", ["multiply.1", "multiply.2"])],
    ids=["one", "of two dots"],
)
def test_each_dot_that_became_a_product_had_a_broadcast_of_its_own(operation: str, users: list[str]) -> None:
    """A bitcast behind the only one went when the second user read what is normal, and left its place."""
    body = f"""  %p = f32[8,3]{{1,0}} parameter(0)
  %q = f32[4,4,8,3]{{3,2,1,0}} parameter(1)
  %bitcast.1 = f32[24]{{0}} bitcast(%p)
  %transpose.1 = f32[8,3]{{1,0}} transpose(%p), dimensions={{1,0}}{named("p")}
  %cosine.1 = f32[8,3]{{1,0}} cosine(%transpose.1){named("cos")}
  %transpose.2 = f32[4,4,8,3]{{3,2,1,0}} transpose(%q), dimensions={{1,0,2,3}}{named("q")}
  %broadcast.1 = f32[4,4,8,3]{{3,2,1,0}} broadcast(%cosine.1), dimensions={{2,3}}{named(operation)}
  %multiply.1 = f32[4,4,8,3]{{3,2,1,0}} multiply(%transpose.2, %broadcast.1){named(operation)}
  %multiply.2 = f32[4,4,8,3]{{3,2,1,0}} multiply(%multiply.1, %broadcast.1){named(operation)}
  %add.1 = f32[4,4,8,3]{{3,2,1,0}} add(%multiply.1, %multiply.2){named("add_any")}
  ROOT %r = (f32[4,4,8,3]{{3,2,1,0}}, f32[24]{{0}}) tuple(%add.1, %bitcast.1)"""
    assert users_of("broadcast.1", body) == users
