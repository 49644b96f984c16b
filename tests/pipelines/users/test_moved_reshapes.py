"""The users of what was reshaped, after ReshapeMover, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of


@pytest.mark.parametrize(
    ("back", "result", "kind", "users"),
    [
        ("  %back.1 = bf16[4]{0} convert(%mul.1)", "back.1", "bf16[4]", ["convert.1", "mul.1"]),
        ("", "mul.1", "f32[4]", ["mul.1", "convert.1"]),
    ],
    ids=["narrow in the program", "in single precision"],
)
def test_what_was_narrow_read_the_convert_when_that_was_moved(
    back: str, result: str, kind: str, users: list[str]
) -> None:
    """`sum(x, keepdims=True).astype(bf16)`, which was squared, too."""
    body = f"""  %x = f32[4,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %reduce_sum.1 = f32[4]{{0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %mul.1 = f32[4]{{0}} multiply(%reduce_sum.1, %reduce_sum.1){named("mul", frame=3)}
{back}
  %convert.1 = bf16[4]{{0}} convert(%reduce_sum.1){named("convert", frame=3)}
  ROOT %r = (bf16[4]{{0}}, {kind}{{0}}) tuple(%convert.1, %{result})"""
    ids = "x zero reduce_sum.1 r convert.1 mul.1 back.1"
    assert users_of("reduce_sum.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("spread", "users"),
    [
        ("broadcast(%cos.1), dimensions={0}", ["multiply.1", "mul.1"]),
        ("broadcast(%mul.1), dimensions={0}", ["mul.1", "multiply.1"]),
    ],
    ids=["made one of two products", "moved in front of a reshape"],
)
def test_a_product_of_a_product_with_a_number_comes_behind_that(spread: str, users: list[str]) -> None:
    """`mean(x) * 2`, where the mean is a product with a number already."""
    body = f"""  %x = f32[4,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %c = f32[] constant(0.125)
  %d = f32[] constant(0.25)
  %by.1 = f32[4]{{0}} broadcast(%c), dimensions={{}}
  %by.2 = f32[4]{{0}} broadcast(%d), dimensions={{}}
  %reduce_sum.1 = f32[4]{{0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %multiply.1 = f32[4]{{0}} multiply(%reduce_sum.1, %by.1){named("div")}
  %mul.1 = f32[4]{{0}} multiply(%reduce_sum.1, %by.2){named("mul")}
  %cos.1 = f32[4]{{0}} cosine(%mul.1){named("cos")}
  %sub.1 = f32[4,8]{{1,0}} {spread}{named("sub")}
  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}, f32[4,8]{{1,0}}) tuple(%multiply.1, %cos.1, %sub.1)"""
    ids = "x zero c d reduce_sum.1 r by.1 multiply.1 by.2 mul.1 cos.1 sub.1"
    assert users_of("reduce_sum.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("of", "users"),
    [("transpose(jvp())/", ["div.1", "mul.1"]), ("jvp()/", ["mul.1", "div.1"])],
    ids=["a derivative", "a sum of the program"],
)
def test_a_grouped_derivative_was_reshaped_for_all_that_read_it(of: str, users: list[str]) -> None:
    """Two dimensions of a broadcast summed, which became one, and its reshape read twice."""
    summed = f"dimensions={{1}}, to_apply=%sum{named(of + 'reduce_sum')}"
    body = f"""  %x = f32[4,2,8,16]{{3,2,1,0}} parameter(0)
  %y = f32[4,16]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[4,16,16]{{2,1,0}} bitcast(%x)
  %reduce_sum.1 = f32[4,16]{{1,0}} reduce(%bitcast.1, %zero), {summed}
  %mul.1 = f32[4,16]{{1,0}} multiply(%reduce_sum.1, %y){named(of + "mul", frame=3)}
  %div.1 = f32[4,16]{{1,0}} divide(%reduce_sum.1, %y){named(of + "div", frame=3)}
  ROOT %r = (f32[4,16]{{1,0}}, f32[4,16]{{1,0}}) tuple(%mul.1, %div.1)"""
    ids = "x y zero r mul.1 div.1 bitcast.1 reduce_sum.1"
    assert users_of("reduce_sum.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("x y zero r mul.1 div.1 reduce.1 init", ["mul.1", "div.1"]),
        ("x y zero mul.1 div.1 r reduce.1 init", ["div.1", "mul.1"]),
    ],
    ids=["moved", "of the program"],
)
def test_a_narrow_derivative_was_converted_and_reshaped_for_all_that_read_it(
    ids: str, users: list[str]
) -> None:
    """What read the convert was moved first, and then read the sum in place of the convert."""
    summed = f"dimensions={{0}}, to_apply=%sum{named('transpose(jvp())/reduce_sum')}"
    body = f"""  %x = f32[8,16]{{1,0}} parameter(0)
  %y = f32[16]{{0}} parameter(1)
  %zero = bf16[] constant(0)
  %init = f32[] convert(%zero)
  %reduce.1 = f32[16]{{0}} reduce(%x, %init), {summed}
  %mul.1 = f32[16]{{0}} multiply(%reduce.1, %y){named("mul", frame=3)}
  %div.1 = f32[16]{{0}} divide(%reduce.1, %y){named("div", frame=3)}
  ROOT %r = (f32[16]{{0}}, f32[16]{{0}}) tuple(%mul.1, %div.1)"""
    assert users_of("reduce.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("convert.1", ["sub.1", "flat.1"]), ("convert_element_type.1", ["flat.1", "sub.1"])],
    ids=["behind the reshape", "where it was"],
)
def test_what_reduced_a_convert_that_was_moved_twice_comes_behind(name: str, users: list[str]) -> None:
    """Softmax in f32 of a row in bf16. ConvertMover gives the convert another name."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = f32[1,8]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %row = bf16[1,8]{{1,0}} bitcast(%p)
  %{name} = f32[1,8]{{1,0}} convert(%row){named("convert_element_type")}
  %flat.1 = f32[8]{{0}} bitcast(%{name})
  %max.1 = f32[] reduce(%flat.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_max")}
  %sub.1 = f32[1,8]{{1,0}} subtract(%{name}, %q){named("sub")}
  ROOT %r = (f32[], f32[1,8]{{1,0}}) tuple(%max.1, %sub.1)"""
    assert users_of(name, body, ids=f"p q zero r sub.1 {name} row max.1 flat.1") == users


def test_the_last_takes_the_place_of_the_reshape_and_then_of_a_tuple_of_a_convolution() -> None:
    """LayoutNormalization made the convolution anew, behind ReshapeMover, and put a tuple behind it."""
    body = f"""  %p = f32[1,8,8,2]{{3,2,1,0}} parameter(0)
  %cudnn-conv.1 = (f32[1,8,8,2]{{3,2,1,0}}, u8[0]{{0}}) custom-call(%p), \
custom_call_target="__cudnn$convForward"{named("conv_general_dilated")}
  %y = f32[1,8,8,2]{{3,2,1,0}} get-tuple-element(%cudnn-conv.1), index=0
  %exp.1 = f32[1,8,8,2]{{3,2,1,0}} exponential(%y){named("exp")}
  %sin.1 = f32[1,8,8,2]{{3,2,1,0}} sine(%y){named("sin")}
  %cos.1 = f32[1,8,8,2]{{3,2,1,0}} cosine(%y){named("cos")}
  ROOT %r = (f32[1,8,8,2], f32[1,8,8,2], f32[1,8,8,2]) tuple(%exp.1, %sin.1, %cos.1)"""
    assert users_of("y", body, ids="p r MADE exp.1 sin.1 cos.1 cudnn-conv.1 y") == ["sin.1", "cos.1", "exp.1"]


def test_the_one_moved_that_a_broadcast_was_made_for_leaves_a_hole() -> None:
    """CSE kept the broadcast of an update that its walk came to first, whatever its number."""
    body = f"""  %x = f32[] parameter(0)
  %p = f32[8]{{0}} parameter(1)
  %div.5.0 = f32[8]{{0}} broadcast(%x), dimensions={{}}{named("div")}
  %div.2.0 = f32[8]{{0}} divide(%p, %div.5.0){named("div")}
  %div.9.0 = f32[8]{{0}} divide(%div.2.0, %div.5.0){named("div")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%div.2.0, %div.9.0)"""
    ids = "x p div.2.0 - div.9.0 - div.5.0 - - r"
    assert users_of("div.5.0", body, ids=ids) == ["div.9.0", "div.2.0"]


def test_a_clamp_stands_for_the_maximum_that_was_moved() -> None:
    """That of what was reshaped took the place of the reshape, as the last of those that read it."""
    body = f"""  %x = f32[8,1]{{1,0}} parameter(0)
  %low = f32[8,1]{{1,0}} parameter(1)
  %high = f32[8,1]{{1,0}} parameter(2)
  %add.1 = f32[8,1]{{1,0}} add(%x, %x){named("add")}
  %ge.1 = pred[8,1]{{1,0}} compare(%add.1, %low), direction=GE{named("ge")}
  %lt.1 = pred[8,1]{{1,0}} compare(%add.1, %high), direction=LT{named("lt")}
  %clamp.1 = f32[8,1]{{1,0}} clamp(%low, %add.1, %high){named("jit(clip)/min")}
  ROOT %r = (pred[8,1]{{1,0}}, pred[8,1]{{1,0}}, f32[8,1]{{1,0}}) tuple(%ge.1, %lt.1, %clamp.1)"""
    assert users_of("add.1", body, ids="x low high r add.1 ge.1 lt.1 clamp.1") == ["clamp.1", "ge.1", "lt.1"]


@pytest.mark.parametrize(
    ("function", "users"),
    [("jvp(jit(_var))", ["bitcast.1", "mul.1", "square.1"]), ("jvp()", ["mul.1", "bitcast.1", "square.1"])],
    ids=["which has its own", "of the program"],
)
def test_what_a_function_computes_again_is_one_with_its_equal(function: str, users: list[str]) -> None:
    """`x - x.mean()` and `x.var()`: the readers in the function come behind the reshape of the first."""
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %y = f32[8,4]{{1,0}} parameter(1)
  %neg.1 = f32[8,4]{{1,0}} negate(%y){named("neg")}
  %sub.1 = f32[8,4]{{1,0}} subtract(%x, %y){named("jvp()/sub")}
  %square.1 = f32[8,4]{{1,0}} multiply(%sub.1, %sub.1){named(f"{function}/square")}
  %mul.1 = f32[8,4]{{1,0}} multiply(%sub.1, %neg.1){named(f"transpose({function})/mul")}
  %bitcast.1 = f32[2,4,4]{{2,1,0}} bitcast(%sub.1){named("jvp()/sub")}
  ROOT %r = (f32[2,4,4]{{2,1,0}}, f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%bitcast.1, %square.1, %mul.1)"""
    assert users_of("sub.1", body, ids="x y r neg.1 sub.1 square.1 mul.1 bitcast.1") == users


def test_a_choice_of_what_a_conditional_gave_is_computed_in_no_function() -> None:
    """A pass made it: what a function computes of it was given it, and takes the place of its reshape."""
    body = f"""  %p = pred[8,4]{{1,0}} parameter(0)
  %x = f32[8,4]{{1,0}} parameter(1)
  %y = f32[8,4]{{1,0}} parameter(2)
  %z = f32[8,4]{{1,0}} parameter(3)
  %neg.1 = f32[8,4]{{1,0}} negate(%y){named("neg")}
  %select.1 = f32[8,4]{{1,0}} select(%p, %x, %y){named("cond")}
  %bitcast.1 = f32[32]{{0}} bitcast(%select.1){named("cond")}
  %clamp.1 = f32[8,4]{{1,0}} clamp(%neg.1, %select.1, %z){named("jit(clip)/min")}
  ROOT %r = (f32[32], f32[8,4]) tuple(%bitcast.1, %clamp.1)"""
    assert users_of("select.1", body, ids="p x y z r neg.1 select.1 clamp.1 bitcast.1") == [
        "clamp.1",
        "bitcast.1",
    ]


@pytest.mark.parametrize("spread", ["div.9", "broadcast.1"], ids=["in the program's layout", "in another"])
def test_broadcasts_of_the_reshape_come_behind_all(spread: str) -> None:
    """`x / s[None]` and `s[None] * s[None]` of `s = sqrt(v)`, which something else divides by as well."""
    body = f"""  %v = f32[8]{{0}} parameter(0)
  %x = f32[8,4]{{1,0}} parameter(1)
  %w = f32[8]{{0}} parameter(2)
  %sqrt.1 = f32[8]{{0}} sqrt(%v){named("sqrt")}
  %{spread} = f32[8,4]{{1,0}} broadcast(%sqrt.1), dimensions={{0}}{named("div", frame=2)}
  %div.1 = f32[8,4]{{1,0}} divide(%x, %{spread}){named("div", frame=2)}
  %mul.1 = f32[8]{{0}} multiply(%sqrt.1, %sqrt.1){named("mul", frame=2)}
  %neg.1 = f32[8]{{0}} negate(%mul.1){named("neg", frame=2)}
  %div.2 = f32[8]{{0}} divide(%w, %sqrt.1){named("div", frame=3)}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%div.1, %neg.1, %div.2)"""
    ids = f"v x w sqrt.1 div.2 r mul.1 neg.1 {spread} div.1"
    assert users_of("sqrt.1", body, ids=ids) == ["mul.1", "div.2", spread]


def test_broadcasts_of_a_reshaped_sum_come_behind_what_was_moved_though_it_was_made_anew() -> None:
    """`t = x.sum(1, keepdims=True)`, `y / t` and `t * t`: the sum was made anew since."""
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %y = f32[8,4]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %reduce_sum.1 = f32[8]{{0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%reduce_sum.1), dimensions={{0}}{named("div", frame=2)}
  %div.1 = f32[8,4]{{1,0}} divide(%y, %broadcast.1){named("div", frame=2)}
  %mul.1 = f32[8]{{0}} multiply(%reduce_sum.1, %reduce_sum.1){named("mul", frame=3)}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8]{{0}}) tuple(%div.1, %mul.1)"""
    ids = "x y zero r mul.1 broadcast.1 div.1 reduce_sum.1"
    assert users_of("reduce_sum.1", body, ids=ids) == ["mul.1", "broadcast.1"]


@pytest.mark.parametrize(
    ("end", "users"),
    [("[32]{0}", ["bits.1", "sub.1", "flat.1"]), ("[2,16]{1,0}", ["bits.1", "flat.1", "sub.1"])],
    ids=["of the reshape", "of the argument"],
)
def test_a_sum_of_a_reshaped_argument_was_behind_the_reshape(end: str, users: list[str]) -> None:
    """What was moved took the place of that; the bits of the argument were read in front of it."""
    body = f"""  %x = f32[4,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %bits.1 = s32[4,8]{{1,0}} bitcast(%x){named("bitcast_convert_type")}
  %flat.1 = f32[32]{{0}} bitcast(%x), metadata={{op_name="x"}}
  %reduce_sum.1 = f32[] reduce(%flat.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %broadcast.1 = f32[4,8]{{1,0}} broadcast(%reduce_sum.1), dimensions={{}}{named("sub")}
  %sub.1 = f32[4,8]{{1,0}} subtract(%x, %broadcast.1){named("sub")}
  %bitcast.1 = f32END bitcast(%sub.1){named("sub")}
  ROOT %r = (s32[4,8]{{1,0}}, f32END) tuple(%bits.1, %bitcast.1)"""
    ids = "x zero r broadcast.1 sub.1 bits.1 flat.1 reduce_sum.1 bitcast.1"
    assert users_of("x", body.replace("END", end), ids=ids) == users


@pytest.mark.parametrize(
    ("age", "users"),
    [
        ("multiply.1 div.1 div.2", ["div.1", "div.2"]),
        ("multiply.1 - div.1 div.2", ["div.2", "div.1"]),
    ],
    ids=["made for a quotient", "moved, as what reads it was"],
)
def test_what_a_pass_made_for_what_it_made_next_was_not_reshaped(age: str, users: list[str]) -> None:
    """`(x / a) / b` becomes `x / (a * b)`, and what derives that divides by the same."""
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %q = f32[4]{{0}} parameter(1)
  %neg.1 = f32[4]{{0}} negate(%q){named("neg")}
  %multiply.1 = f32[4]{{0}} multiply(%p, %neg.1)
  %div.1 = f32[4]{{0}} divide(%p, %multiply.1){named("div")}
  %div.2 = f32[4]{{0}} divide(%q, %multiply.1){named("div")}
  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}) tuple(%div.1, %div.2)"""
    assert users_of("multiply.1", body, ids=f"p q r neg.1 {age}") == users


@pytest.mark.parametrize(
    ("start", "end", "users"),
    [(2, 8, ["sub.1", "add.1"]), (18, 24, ["add.1", "sub.1"])],
    ids=["a part of the difference", "read by its name"],
)
def test_a_slice_that_begins_behind_its_reader_on_the_line_is_a_part_of_that(
    start: int, end: int, users: list[str]
) -> None:
    """`[x[0] - x[1], x[1] + x[2]]`: places that begin alike have the end of the first, here of `x[0]`."""
    places = places_in_source(("f", 3, start, end), ("f", 3, 11, 17), ("f", 5, 2, 8))
    body = f"""  %x = f32[3,1]{{1,0}} parameter(0)
  %slice.1 = f32[1,1]{{1,0}} slice(%x), slice={{[1:2], [0:1]}}{named("slice", frame=2)}
  %slice.2 = f32[1,1]{{1,0}} slice(%x), slice={{[0:1], [0:1]}}{named("slice", frame=1)}
  %slice.3 = f32[1,1]{{1,0}} slice(%x), slice={{[2:3], [0:1]}}{named("slice", frame=3)}
  %sub.1 = f32[1,1]{{1,0}} subtract(%slice.2, %slice.1){named("sub", frame=1)}
  %add.1 = f32[1,1]{{1,0}} add(%slice.1, %slice.3){named("add", frame=3)}
  ROOT %r = (f32[1,1]{{1,0}}, f32[1,1]{{1,0}}) tuple(%sub.1, %add.1)"""
    ids = "x slice.2 slice.1 slice.3 r sub.1 add.1"
    assert users_of("slice.1", body, ids=ids, tables=places) == users


def test_readers_that_were_moved_behind_what_else_they_read_read_one_slice() -> None:
    """`[1 - x[0] - x[1], 2 - x[2] - x[1]]`: CSE made both `x[1]` one before either difference was moved."""
    places = places_in_source(("f", 3, 2, 8), ("f", 3, 11, 17), ("f", 4, 2, 8))
    body = f"""  %x = f32[3,1]{{1,0}} parameter(0)
  %slice.1 = f32[1,1]{{1,0}} slice(%x), slice={{[1:2], [0:1]}}{named("slice", frame=2)}
  %slice.2 = f32[1,1]{{1,0}} slice(%x), slice={{[0:1], [0:1]}}{named("slice", frame=1)}
  %slice.3 = f32[1,1]{{1,0}} slice(%x), slice={{[2:3], [0:1]}}{named("slice", frame=3)}
  %neg.1 = f32[1,1]{{1,0}} negate(%slice.2){named("neg", frame=1)}
  %neg.2 = f32[1,1]{{1,0}} negate(%slice.3){named("neg", frame=3)}
  %sub.1 = f32[1,1]{{1,0}} subtract(%neg.1, %slice.1){named("sub", frame=1)}
  %sub.2 = f32[1,1]{{1,0}} subtract(%neg.2, %slice.1){named("sub", frame=3)}
  ROOT %r = (f32[1,1]{{1,0}}, f32[1,1]{{1,0}}) tuple(%sub.1, %sub.2)"""
    ids = "x slice.2 slice.1 slice.3 r neg.1 neg.2 sub.1 sub.2"
    assert users_of("slice.1", body, ids=ids, tables=places) == ["sub.2", "sub.1"]
