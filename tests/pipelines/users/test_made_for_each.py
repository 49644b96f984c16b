"""Values that the program or a pass made as often as they were read, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import HEAD, loop_of, named, places_in_source, users_as_guessed, users_in, users_of

_PLACES = places_in_source(("normalize", 2, 8, 20), ("normalize", 4, 8, 20), ("square", 9, 8, 20))


@pytest.mark.parametrize(
    ("name", "operation", "frame", "users"),
    [
        ("convert_element_type.1", "convert_element_type", 1, ["mul.1", "mul.2", "mul.3"]),
        ("convert_element_type.1", "convert_element_type", 2, ["mul.1", "mul.3", "mul.2"]),
        ("convert.1", "mul", 1, ["mul.1", "mul.2", "mul.3"]),
        ("sub.1", "sub", 1, ["mul.1", "mul.3", "mul.2"]),
    ],
    ids=["converted for each", "converted before", "of a pass", "shared"],
)
def test_only_where_a_scalar_was_one_from_the_beginning_a_broadcast_that_goes_leaves_a_hole(
    name: str, operation: str, frame: int, users: list[str]
) -> None:
    body = f"""  %p = pred[] parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %number = f32[] convert(%p){named(operation, frame=frame)}
  %mul.1 = f32[8]{{0}} broadcast(%number), dimensions={{}}{named("mul", frame=1)}
  %a.1 = f32[8]{{0}} multiply(%q, %mul.1){named("a")}
  %b.1 = f32[8]{{0}} add(%q, %mul.1){named("b")}
  %mul.2 = f32[4]{{0}} broadcast(%number), dimensions={{}}{named("mul", frame=1)}
  %mul.3 = f32[2]{{0}} broadcast(%number), dimensions={{}}{named("mul", frame=1)}
  %c.1 = f32[4]{{0}} negate(%mul.2){named("c")}
  %d.1 = f32[2]{{0}} negate(%mul.3){named("d")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[4]{{0}}, f32[2]{{0}}) tuple(%a.1, %b.1, %c.1, %d.1)"""
    assert users_of(name, body.replace("number", name)) == users


@pytest.mark.parametrize(
    ("number", "users"), [(7, ["mul.1", "mul.2", "mul.3"]), (6, ["mul.1", "mul.3", "mul.2"])]
)
def test_as_many_numbers_as_a_scalar_has_other_uses_are_missing_behind_it(
    number: int, users: list[str]
) -> None:
    """A norm over another norm, computed anew for every array of a tree."""
    body = f"""  %p = f32[] parameter(0)
  %s = f32[] parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %div.3.0 = f32[] divide(%p, %s){named("div")}
  %mul.1 = f32[8]{{0}} broadcast(%div.3.0), dimensions={{}}{named("mul")}
  %a.1 = f32[8]{{0}} multiply(%q, %mul.1){named("a")}
  %b.1 = f32[8]{{0}} add(%q, %mul.1){named("b")}
  %mul.2 = f32[4]{{0}} broadcast(%div.3.0), dimensions={{}}{named("mul")}
  %mul.3 = f32[2]{{0}} broadcast(%div.3.0), dimensions={{}}{named("mul")}
  %c.1 = f32[4]{{0}} negate(%mul.2){named("c")}
  %d.1 = f32[2]{{0}} negate(%mul.3){named("d")}
  %div.{number}.0 = f32[8]{{0}} divide(%a.1, %b.1){named("div")}
  ROOT %r = (f32[8]{{0}}, f32[4]{{0}}, f32[2]{{0}}) tuple(%div.{number}.0, %c.1, %d.1)"""
    assert users_of("div.3.0", body) == users


@pytest.mark.parametrize(
    ("entry", "number", "users"),
    [
        ("jit(f)/jit(main)", "divide", ["multiply.4.0", "multiply.7.0", "multiply.6.0"]),
        ("jit(f)", "div", ["multiply.4.0", "multiply.6.0", "multiply.7.0"]),
    ],
    ids=["numbered in one go", "numbered by name"],
)
def test_where_all_is_numbered_in_one_go_missing_numbers_tell_of_no_scalar(
    entry: str, number: str, users: list[str]
) -> None:
    """Older releases number all operations of a program together: what is in between has other names."""

    def of(operation: str) -> str:
        return f', metadata={{op_name="{entry}/{operation}"}}'

    body = f"""  %p = f32[] parameter(0)
  %s = f32[] parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %{number}.3.0 = f32[] divide(%p, %s){of("div")}
  %multiply.4.0 = f32[8]{{0}} broadcast(%{number}.3.0), dimensions={{}}{of("mul")}
  %negate.5.0 = f32[8]{{0}} multiply(%q, %multiply.4.0){of("neg")}
  %add.5.0 = f32[8]{{0}} add(%q, %multiply.4.0){of("add")}
  %multiply.6.0 = f32[4]{{0}} broadcast(%{number}.3.0), dimensions={{}}{of("mul")}
  %multiply.7.0 = f32[2]{{0}} broadcast(%{number}.3.0), dimensions={{}}{of("mul")}
  %tanh.8.0 = f32[4]{{0}} tanh(%multiply.6.0){of("tanh")}
  %sine.9.0 = f32[2]{{0}} sine(%multiply.7.0){of("sin")}
  %{number}.7.0 = f32[8]{{0}} divide(%negate.5.0, %add.5.0){of("div")}
  ROOT %r = (f32[8]{{0}}, f32[4]{{0}}, f32[2]{{0}}) tuple(%{number}.7.0, %tanh.8.0, %sine.9.0)"""
    assert users_of(f"{number}.3.0", body) == users


@pytest.mark.parametrize(
    ("numbers", "other", "users"),
    [
        ((1, 2, 4, 6, 8), "div", ["mul.1", "mul.2", "mul.3"]),
        ((1, 2, 3, 4, 5), "div", ["mul.1", "mul.3", "mul.2"]),
        ((1, 2, 4, 5, 6), "div", ["mul.1", "mul.3", "mul.2"]),
        ((1, 2, 3, 5, 6), "div", ["mul.1", "mul.3", "mul.2"]),
        ((1, 2, 3, 5, 6), "loss/div", ["mul.1", "mul.2", "mul.3"]),
    ],
    ids=["each time", "never", "once", "what has another name now", "that is elsewhere in the program"],
)
def test_a_scalar_of_which_one_more_is_missing_from_use_to_use_was_made_for_each(
    numbers: tuple[int, ...], other: str, users: list[str]
) -> None:
    """An optimizer's step of two arguments, which Keras computes anew for each array of a tree."""
    divide, *divisions = (f"div.{number}.0" for number in numbers)
    first, second, third, last = divisions
    body = f"""  %p = f32[] parameter(0)
  %s = f32[] parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %t = f32[4]{{0}} parameter(3)
  %v = f32[2]{{0}} parameter(4)
  %cos.1 = f32[] cosine(%p){named("cos")}
  %sin.1 = f32[] sine(%s){named("sin")}
  %{divide} = f32[] divide(%cos.1, %sin.1){named("div")}
  %mul.1 = f32[8]{{0}} broadcast(%{divide}), dimensions={{}}{named("mul")}
  %{first} = f32[8]{{0}} divide(%q, %mul.1){named("div")}
  %{second} = f32[8]{{0}} divide(%mul.1, %q){named("div")}
  %mul.2 = f32[4]{{0}} broadcast(%{divide}), dimensions={{}}{named("mul")}
  %{third} = f32[4]{{0}} divide(%t, %mul.2){named("div")}
  %mul.3 = f32[2]{{0}} broadcast(%{divide}), dimensions={{}}{named("mul")}
  %{last} = f32[2]{{0}} divide(%v, %mul.3){named("div")}
  %divide.9 = f32[8]{{0}} divide(%q, %q){named(other)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[4]{{0}}, f32[2]{{0}}, f32[8]{{0}})\
 tuple(%{first}, %{second}, %{third}, %{last}, %divide.9)"""
    assert users_of(divide, body) == users


@pytest.mark.parametrize(
    ("function", "users"),
    [("update.<locals>.<lambda>", ["mul.1", "mul.2", "mul.3"]), ("update", ["mul.1", "mul.3", "mul.2"])],
)
def test_a_lambda_may_sum_for_each_array(function: str, users: list[str]) -> None:
    places = places_in_source((function, 2, 8, 20))
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %total.1 = f32[] reduce(%p, %zero), dimensions={{0}}, to_apply=%sum{named("total", frame=1)}
  %mul.1 = f32[8]{{0}} broadcast(%total.1), dimensions={{}}{named("mul", frame=1)}
  %a.1 = f32[8]{{0}} multiply(%q, %mul.1){named("mul", frame=1)}
  %b.1 = f32[8]{{0}} add(%q, %mul.1){named("mul", frame=1)}
  %mul.2 = f32[4]{{0}} broadcast(%total.1), dimensions={{}}{named("mul", frame=1)}
  %mul.3 = f32[2]{{0}} broadcast(%total.1), dimensions={{}}{named("mul", frame=1)}
  %c.1 = f32[4]{{0}} negate(%mul.2){named("mul", frame=1)}
  %d.1 = f32[2]{{0}} negate(%mul.3){named("mul", frame=1)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[4]{{0}}, f32[2]{{0}}) tuple(%a.1, %b.1, %c.1, %d.1)"""
    assert users_of("total.1", body, tables=places) == users


@pytest.mark.parametrize(
    ("function", "users"),
    [("jit(g)", ["add.1", "add.2", "xor.1"]), ("jit(h)", ["add.1", "xor.1", "add.2"])],
    ids=["of the same", "of another"],
)
def test_what_another_function_broadcast_came_when_all_of_the_first_was_one(
    function: str, users: list[str]
) -> None:
    body = f"""  %key = u32[] parameter(0)
  %p = u32[8]{{0}} parameter(1)
  %q = u32[4]{{0}} parameter(2)
  %half.1 = u32[] negate(%key){named("while/body/eval_jaxpr/jit(g)/half")}
  %add.1 = u32[8]{{0}} broadcast(%half.1), dimensions={{}}{named("while/body/eval_jaxpr/jit(g)/add")}
  %a.1 = u32[8]{{0}} add(%p, %add.1){named("while/body/eval_jaxpr/jit(g)/add")}
  %c.1 = u32[8]{{0}} multiply(%a.1, %add.1){named("while/body/eval_jaxpr/jit(g)/add")}
  %xor.1 = u32[] xor(%key, %half.1){named("while/body/eval_jaxpr/jit(g)/xor")}
  %xor.2 = u32[8]{{0}} broadcast(%xor.1), dimensions={{}}{named("while/body/eval_jaxpr/jit(g)/xor")}
  %b.1 = u32[8]{{0}} xor(%c.1, %xor.2){named("while/body/eval_jaxpr/jit(g)/xor")}
  %add.2 = u32[4]{{0}} broadcast(%half.1), dimensions={{}}{named(f"while/body/eval_jaxpr/{function}/add")}
  %d.1 = u32[4]{{0}} add(%q, %add.2){named(f"while/body/eval_jaxpr/{function}/add")}
  ROOT %r = (u32[8]{{0}}, u32[4]{{0}}) tuple(%b.1, %d.1)"""
    assert users_of("half.1", body) == users


@pytest.mark.parametrize(
    ("parent", "users"),
    [(4, ["select_n.2", "eq.1"]), (2, ["eq.1", "select_n.2"])],
    ids=["beside it", "around it"],
)
def test_what_calls_a_function_is_no_other_call_of_it(parent: int, users: list[str]) -> None:
    """A function that is called on a line of another has the place of that line."""
    places = places_in_source(("solve", 7, 15, 83), ("solve", 7, 15, 83), ("step", 3, 8, 20))
    places = places.replace(
        "2 {file_location_id=2 parent_frame_id=1}", f"2 {{file_location_id=2 parent_frame_id={parent}}}"
    )
    body = f"""  %p = pred[] parameter(0)
  %one = s32[] constant(1)
  %two = s32[] constant(2)
  %select_n.1 = s32[] select(%p, %one, %two){named("jit(solve)/jit(where)/select_n", frame=2)}
  %eq.1 = pred[] compare(%select_n.1, %two), direction=EQ{named("jit(solve)/eq", frame=1)}
  %select_n.2 = s32[] select(%p, %select_n.1, %one){named("jit(solve)/jit(where)/select_n", frame=2)}
  ROOT %r = (pred[], s32[]) tuple(%eq.1, %select_n.2)"""
    assert users_of("select_n.1", body, tables=places) == users


@pytest.mark.parametrize("ids_known", [True, False])
def test_what_is_converted_in_several_places_is_merged_as_met(ids_known: bool) -> None:
    """`f32(x) - f32(x).sum()` and, on another line, `f32(x) * y`: the first convert met is the one left."""
    tables = places_in_source(("f", 1, 19, 65), ("f", 1, 23, 65), ("f", 3, 34, 52))
    summed = named("reduce_sum", frame=2)
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %convert.1 = f32[8]{{0}} convert(%p){named("convert_element_type", frame=1)}
  %reduce_sum.1 = f32[] reduce(%convert.1, %zero), dimensions={{0}}, to_apply=%sum{summed}
  %spread.1 = f32[8]{{0}} broadcast(%reduce_sum.1), dimensions={{}}
  %sub.1 = f32[8]{{0}} subtract(%convert.1, %spread.1){named("sub", frame=1)}
  %mul.1 = f32[8]{{0}} multiply(%convert.1, %q){named("mul", frame=3)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%sub.1, %mul.1)"""
    assert users_of("convert.1", body, tables=tables, ids_known=ids_known) == [
        "sub.1",
        "reduce_sum.1",
        "mul.1",
    ]


@pytest.mark.parametrize(
    ("frame", "users"), [(1, ["mul.1", "square.1"]), (2, ["square.1", "mul.1"])], ids=["line", "derivative"]
)
def test_each_function_converts_what_it_is_given(frame: int, users: list[str]) -> None:
    """What is in the place of its reader is of the derivative, which does not."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %convert.1 = f32[8]{{0}} convert(%p){named("convert_element_type", frame=frame)}
  %square.1 = f32[8]{{0}} multiply(%convert.1, %convert.1){named("square", frame=3)}
  %mul.1 = f32[8]{{0}} multiply(%convert.1, %square.1){named("mul", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%square.1, %mul.1)"""
    assert users_as_guessed("convert.1", body, tables=_PLACES) == users
    assert users_as_guessed("convert.1", body) == ["square.1", "mul.1"]


_KEY = f"""  %key = u32[2]{{0}} parameter(0)
  %p = u32[1]{{0}} parameter(1)
  %count = u32[1]{{0}} constant({{3}})
  %parity = u32[1]{{0}} constant({{5}})
  %unstack.1 = u32[1]{{0}} slice(%key), slice={{[0:1]}}{named("jit(g)/OPERATION")}
  %unstack.2 = u32[1]{{0}} slice(%key), slice={{[1:2]}}{named("jit(g)/OPERATION")}
  %add.1 = u32[1]{{0}} add(%unstack.2, %count){named("jit(g)/add")}
  %add.2 = u32[1]{{0}} add(%unstack.1, %add.1){named("jit(g)/add")}
  %xor.1 = u32[1]{{0}} xor(%unstack.1, %unstack.2){named("jit(g)/xor")}
  %xor.2 = u32[1]{{0}} xor(%xor.1, %parity){named("jit(g)/xor")}
  %add.3 = u32[1]{{0}} add(%add.2, %xor.2){named("jit(g)/add")}
  %add.4 = u32[1]{{0}} subtract(%add.3, %xor.2){named("jit(g)/add")}
  %multiply.9 = u32[1]{{0}} multiply(%p, %count){named("div")}
  ROOT %r.1 = u32[1]{{0}} add(%add.4, %multiply.9){named("r")}"""
_AGES = "key p count parity r.1 unstack.1 unstack.2 add.2 add.3 add.4 multiply.9 xor.1 xor.2 add.1"
"""What was a division is the first that a pass made."""


@pytest.mark.parametrize(
    ("word", "operation", "users"),
    [
        ("unstack.1", "unstack", ["xor.1", "add.2"]),
        ("unstack.2", "unstack", ["xor.1", "add.1"]),
        ("xor.2", "unstack", ["add.4", "add.3"]),
        ("unstack.1", "slice", ["add.2", "xor.1"]),
        ("xor.2", "slice", ["add.3", "add.4"]),
    ],
)
def test_what_was_computed_of_scalars_reads_the_elements_in_place_of_their_reshapes(
    word: str, operation: str, users: list[str]
) -> None:
    """The words of a key, of which Threefry broadcasts what it adds."""
    assert users_of(word, _KEY.replace("OPERATION", operation), ids=_AGES) == users


@pytest.mark.parametrize(
    ("step", "users"),
    [("ones", ["a.1", "b.1"]), ("p", ["b.1", "a.1"]), ("squares.1", ["b.1", "a.1"])],
)
def test_what_calls_compute_of_nothing_is_no_other_result_of_either(step: str, users: list[str]) -> None:
    """The counter of random bits, of which CSE made one. Of other results there had been a tuple, as of what
    a call computes of nothing but what it is given, such as the mask of an attention."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %one = s32[] constant(1)
  %ones = s32[8]{{0}} broadcast(%one), dimensions={{}}
  %iota.1 = s32[8]{{0}} iota(), iota_dimension=0
  %squares.1 = s32[8]{{0}} multiply(%iota.1, %iota.1){named("jvp(f)/squares")}
  %count.1 = s32[8]{{0}} add(%iota.1, %{step}){named("jvp(f)/jit(bits)/count")}
  %x.1 = s32[8]{{0}} multiply(%p, %count.1){named("jvp(f)/jit(bits)/x")}
  %other.1 = s32[8]{{0}} subtract(%p, %count.1){named("jvp(g)/jit(bits)/other")}
  %a.1 = s32[8]{{0}} negate(%x.1){named("a")}
  %b.1 = s32[8]{{0}} abs(%x.1){named("b")}
  ROOT %r = (s32[8]{{0}}, s32[8]{{0}}, s32[8]{{0}}) tuple(%a.1, %b.1, %other.1)"""
    assert users_of("x.1", body) == users


@pytest.mark.parametrize(
    ("function", "users"), [("", ["b.1", "a.1"]), ("jit(tril)/", ["b.1", "a.1"]), ("jit(g)/", ["a.1", "b.1"])]
)
def test_what_a_call_is_given_is_computed_of_something(function: str, users: list[str]) -> None:
    """A mask, whatever that was computed of: the call hands on what it makes of it."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %i = s32[8]{{0}} iota(), iota_dimension=0
  %odd.1 = pred[8]{{0}} compare(%i, %i), direction=LE{named(f"{function}le")}
  %mask.1 = pred[8,8]{{1,0}} broadcast(%odd.1), dimensions={{1}}{named("jvp(jit(g))/mask")}
  %x.1 = f32[8,8]{{1,0}} select(%mask.1, %p, %q){named("jvp(jit(g))/select_n")}
  %a.1 = f32[8,8]{{1,0}} negate(%x.1){named("a")}
  %b.1 = f32[8,8]{{1,0}} abs(%x.1){named("b")}
  %back.1 = f32[8,8]{{1,0}} select(%mask.1, %q, %p){named("transpose(jvp(jit(g)))/select_n")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%a.1, %b.1, %back.1)"""
    assert users_of("x.1", body) == users


@pytest.mark.parametrize(
    ("operation", "users"),
    [
        ("convert_element_type", ["mul.1", "mul.2", "square.1", "mul.3", "add.1"]),
        ("negate", ["square.1", "mul.1", "add.1", "mul.2", "mul.3"]),
    ],
    ids=["converted for each", "not converted"],
)
def test_what_an_operation_converts_of_its_own_is_read_by_it_and_what_derives_it(
    operation: str, users: list[str]
) -> None:
    """`(x.wide() + f(x * y))`, and `square(x)` before that, of a narrow `x`: CSE made one of three."""
    tables = places_in_source(("f", 5, 20, 26), ("f", 5, 8, 40), ("f", 2, 8, 20))
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %x.1 = f32[8]{{0}} convert(%p){named(operation, frame=1)}
  %square.1 = f32[8]{{0}} multiply(%x.1, %x.1){named("square", frame=3)}
  %mul.1 = f32[8]{{0}} multiply(%x.1, %q){named("mul", frame=1)}
  %sine.1 = f32[8]{{0}} sine(%mul.1){named("sin", frame=2)}
  %add.1 = f32[8]{{0}} add(%x.1, %sine.1){named("add", frame=2)}
  %mul.2 = f32[8]{{0}} multiply(%x.1, %add.1){named("transpose(jvp())/mul", frame=1)}
  %mul.3 = f32[8]{{0}} multiply(%x.1, %mul.2){named("transpose(jvp())/mul", frame=3)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%square.1, %mul.3)"""
    ids = "p q square.1 x.1 sine.1 mul.1 add.1 mul.2 mul.3 r" if operation == "convert_element_type" else ""
    assert users_of("x.1", body, ids=ids, tables=tables) == users


@pytest.mark.parametrize(
    ("read", "users"),
    [("q", ["tan.1", "neg.1", "wide.1"]), ("wide.1", ["neg.1", "wide.1", "tan.1"])],
)
def test_what_a_call_gives_back_reshaped_is_no_scalar_with_a_broadcast_for_each_use(
    read: str, users: list[str]
) -> None:
    """The tuple of the call went, and the last took its place."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %slice.1 = f32[1]{{0}} slice(%p), slice={{[2:3]}}{named("while/body/jit(g)/slice")}
  %x = f32[] bitcast(%slice.1){named("while/body/jit(g)/slice")}
  %cos.1 = f32[1]{{0}} cosine(%slice.1){named("while/body/jit(g)/cos")}
  %neg.1 = f32[] negate(%x){named("while/body/eval_jaxpr/neg")}
  %wide.1 = f32[8]{{0}} broadcast(%x), dimensions={{}}{named("while/body/eval_jaxpr/mul")}
  %mul.1 = f32[8]{{0}} multiply(%wide.1, %q){named("while/body/eval_jaxpr/mul")}
  %sub.1 = f32[8]{{0}} subtract(%{read}, %q){named("while/body/eval_jaxpr/sub")}
  %tan.1 = f32[] tan(%x){named("while/body/eval_jaxpr/tan")}
  %sin.1 = f32[1]{{0}} sine(%cos.1){named("while/body/eval_jaxpr/sin")}
  ROOT %r = (f32[], f32[8]{{0}}, f32[8]{{0}}, f32[], f32[1]{{0}})\
 tuple(%neg.1, %mul.1, %sub.1, %tan.1, %sin.1)"""
    assert users_of("x", body) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [(2, ["mul.1", "mul.5", "bitcast.3"]), (1, ["mul.1", "bitcast.3", "mul.5"])],
    ids=["written elsewhere", "made for each product"],
)
def test_a_scalar_that_a_division_became_was_spread_for_each_array(frame: int, users: list[str]) -> None:
    """So is the factor by which gradients are clipped; the second of two equal ones went."""
    spread = named("mul", frame=frame)
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %z = f32[1]{{0}} parameter(2)
  %s = f32[] parameter(3)
  %t = f32[] parameter(4)
  %multiply.9 = f32[] multiply(%s, %t){named("div", frame=1)}
  %mul.1 = f32[8]{{0}} broadcast(%multiply.9), dimensions={{}}{spread}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %x){spread}
  %mul.4 = f32[8]{{0}} multiply(%mul.1, %y){spread}
  %bitcast.3 = f32[1]{{0}} bitcast(%multiply.9){named("div", frame=1)}
  %mul.7 = f32[1]{{0}} multiply(%bitcast.3, %z){spread}
  %mul.5 = f32[4]{{0}} broadcast(%multiply.9), dimensions={{}}{spread}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[1]{{0}}, f32[4]{{0}}) tuple(%mul.2, %mul.4, %mul.7, %mul.5)"""
    assert users_of("multiply.9", body) == users


@pytest.mark.parametrize(
    ("line", "users"), [(1, ["mul.1", "mul.2", "mul.3"]), (4, ["mul.1", "mul.3", "mul.2"])]
)
def test_a_scalar_is_computed_again_by_a_function_that_starts_over(line: int, users: list[str]) -> None:
    """Keras updates each array in a call of its own; a loop behind the scalar has one for all."""
    places = places_in_source(("update", line, 8, 20), ("update", 2, 8, 20), ("update", 3, 8, 20))
    body = f"""  %p = f32[] parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %t = f32[4]{{0}} parameter(2)
  %v = f32[2]{{0}} parameter(3)
  %cos.1 = f32[8]{{0}} cosine(%q){named("cos", frame=1)}
  %neg.1 = f32[] negate(%p){named("neg", frame=2)}
  %mul.1 = f32[8]{{0}} broadcast(%neg.1), dimensions={{}}{named("mul", frame=3)}
  %a.1 = f32[8]{{0}} multiply(%cos.1, %mul.1){named("a", frame=3)}
  %cos.2 = f32[8]{{0}} cosine(%a.1){named("cos", frame=1)}
  %b.1 = f32[8]{{0}} multiply(%cos.2, %mul.1){named("b", frame=3)}
  %cos.3 = f32[4]{{0}} cosine(%t){named("cos", frame=1)}
  %mul.2 = f32[4]{{0}} broadcast(%neg.1), dimensions={{}}{named("mul", frame=3)}
  %c.1 = f32[4]{{0}} multiply(%cos.3, %mul.2){named("c", frame=3)}
  %cos.4 = f32[2]{{0}} cosine(%v){named("cos", frame=1)}
  %mul.3 = f32[2]{{0}} broadcast(%neg.1), dimensions={{}}{named("mul", frame=3)}
  %d.1 = f32[2]{{0}} multiply(%cos.4, %mul.3){named("d", frame=3)}
  ROOT %r = (f32[8]{{0}}, f32[4]{{0}}, f32[2]{{0}}) tuple(%b.1, %c.1, %d.1)"""
    assert users_of("neg.1", body, tables=places) == users


@pytest.mark.parametrize(
    ("number", "users"),
    [(8, ["neg.4.0", "mul.1", "mul.2", "mul.3"]), (7, ["neg.4.0", "mul.1", "mul.3", "mul.2"])],
)
@pytest.mark.parametrize("where", ["", "cond/branch_0_fun/"])
def test_one_of_the_uses_may_be_a_scalar_and_in_a_branch_that_was_decided(
    where: str, number: int, users: list[str]
) -> None:
    """`1 - emit`, which Optax computes for a counter and then for each array."""
    body = f"""  %p = f32[] parameter(0)
  %s = f32[] parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %sin.3.0 = f32[] sine(%p){named(where + "sin")}
  %neg.4.0 = f32[] multiply(%sin.3.0, %s){named(where + "mul")}
  %mul.1 = f32[8]{{0}} broadcast(%sin.3.0), dimensions={{}}{named(where + "mul")}
  %a.1 = f32[8]{{0}} multiply(%q, %mul.1){named(where + "a")}
  %b.1 = f32[8]{{0}} add(%q, %mul.1){named(where + "b")}
  %mul.2 = f32[4]{{0}} broadcast(%sin.3.0), dimensions={{}}{named(where + "mul")}
  %mul.3 = f32[2]{{0}} broadcast(%sin.3.0), dimensions={{}}{named(where + "mul")}
  %c.1 = f32[4]{{0}} negate(%mul.2){named(where + "c")}
  %d.1 = f32[2]{{0}} negate(%mul.3){named(where + "d")}
  %sin.{number}.0 = f32[8]{{0}} sine(%a.1){named(where + "sin")}
  ROOT %r = (f32[], f32[8]{{0}}, f32[8]{{0}}, f32[4]{{0}}, f32[2]{{0}})\
 tuple(%neg.4.0, %b.1, %sin.{number}.0, %c.1, %d.1)"""
    assert users_of("sin.3.0", body) == users


@pytest.mark.parametrize(
    ("body", "frame", "users"),
    [
        ("body.clone.clone", 3, ["mul.8", "neg.8"]),
        ("body.clone.clone", 5, ["neg.8", "mul.8"]),
        ("body", 3, ["neg.8", "mul.8"]),
    ],
    ids=["as a walk comes to them", "behind, of the call that computed the number again", "as they are read"],
)
def test_broadcasts_of_a_number_in_a_body_that_was_cloned(body: str, frame: int, users: list[str]) -> None:
    """What reads `mul.8` is through behind all that `neg.8` is for."""
    tables = places_in_source(
        ("f", 1, 1, 2),
        ("body", 2, 1, 2),
        ("g", 3, 1, 2),
        ("h", 4, 1, 2),
        ("g", 5, 1, 2),
        ("h", 4, 1, 2),
        called_from={2: 1, 3: 2, 4: 3, 5: 2, 6: 5},
    )
    kinds = "(s32[], f32[], f32[4]{0})"
    name = "while/body/eval_jaxpr"
    text = f"""{HEAD.replace(chr(10), chr(10) + tables, 1)}
%{body} (p: {kinds}) -> {kinds} {{
  %p = {kinds} parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[] get-tuple-element(%p), index=1
  %y = f32[4]{{0}} get-tuple-element(%p), index=2
  %sin.1 = f32[] sine(%x){named(f"{name}/sin", frame=4)}
  %mul.8 = f32[4]{{0}} broadcast(%sin.1), dimensions={{}}{named(f"{name}/mul", frame=frame)}
  %neg.8 = f32[8]{{0}} broadcast(%sin.1), dimensions={{}}{named(f"{name}/neg", frame=3)}
  %neg.1 = f32[8]{{0}} negate(%neg.8){named(f"{name}/neg", frame=3)}
  %zero = f32[] constant(0)
  %total.1 = f32[] reduce(%neg.1, %zero), dimensions={{0}}, to_apply=%sum{named(f"{name}/total", frame=3)}
  %mul.9 = f32[4]{{0}} broadcast(%total.1), dimensions={{}}{named(f"{name}/mul", frame=frame)}
  %mul.1 = f32[4]{{0}} multiply(%mul.8, %mul.9){named(f"{name}/mul", frame=frame)}
  %one = s32[] constant(1)
  %next.1 = s32[] add(%i, %one){named("while/body/add")}
  ROOT %r = {kinds} tuple(%next.1, %x, %mul.1)
}}

{loop_of(body, kinds)}"""
    assert users_in(text, "sin.1", ids_known=True) == users
