"""Operations that simplification dropped or made others of, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of


@pytest.mark.parametrize(
    ("frames", "users"), [((5, 5), ["select.2", "select.1"]), ((5, 6), ["select.1", "select.2"])]
)
def test_of_products_with_one_predicate_the_last_choice_takes_the_place_of_its_number(
    frames: tuple[int, int], users: list[str]
) -> None:
    """Products of two places in the source had a number each."""
    first, second = (named("mul", frame=frame) for frame in frames)
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %eq.1 = pred[8]{{0}} compare(%p, %p), direction=EQ{named("eq")}
  %select.1 = f32[8]{{0}} select(%eq.1, %p, %zeros){first}
  %exp.1 = f32[8]{{0}} exponential(%select.1){named("exp")}
  %select.2 = f32[8]{{0}} select(%eq.1, %exp.1, %zeros){second}
  ROOT %r = (f32[8]{{0}}) tuple(%select.2)"""
    assert users_of("eq.1", body) == users


def test_a_choice_of_the_program_is_no_product() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %eq.1 = pred[8]{{0}} compare(%p, %p), direction=EQ{named("eq")}
  %select_n.1 = f32[8]{{0}} select(%eq.1, %p, %p){named("select_n", frame=5)}
  %select_n.2 = f32[8]{{0}} select(%eq.1, %select_n.1, %p){named("select_n", frame=5)}
  ROOT %r = (f32[8]{{0}}) tuple(%select_n.2)"""
    assert users_of("eq.1", body) == ["select_n.1", "select_n.2"]


@pytest.mark.parametrize(
    ("reduction", "users"),
    [("reduce_max", ["select_n.1", "is_finite.1"]), ("reduce_sum", ["is_finite.1", "select_n.1"])],
)
@pytest.mark.parametrize(
    "computed",
    ["reduce(%p, %zero), dimensions={1}, to_apply=%sum", "maximum(%q, %zeros)"],
    ids=["reduce", "maximum"],
)
def test_a_maximum_that_may_not_be_finite_was_bounded(
    reduction: str, users: list[str], computed: str
) -> None:
    """`max(x, -inf)` went, and the last user took its place; the reduction may be of one element."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %top.1 = f32[8]{{0}} {computed}{named(reduction)}
  %is_finite.1 = pred[8]{{0}} is-finite(%top.1){named("is_finite")}
  %select_n.1 = f32[8]{{0}} select(%is_finite.1, %top.1, %zeros){named("select_n")}
  ROOT %r = (f32[8]{{0}}) tuple(%select_n.1)"""
    assert users_of("top.1", body) == users


@pytest.mark.parametrize(
    ("place", "users"),
    [(1, ["sub.1", "select_n.1", "is_finite.1"]), (2, ["select_n.1", "is_finite.1", "sub.1"])],
)
def test_beside_a_softmax_the_bound_was_of_the_other_maximum(place: int, users: list[str]) -> None:
    """The softmax is in the first place of the source, the sum of exponentials in the second."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %top.1 = f32[8]{{0}} reduce(%p, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_max", frame=place)}
  %sub.1 = f32[8]{{0}} subtract(%q, %top.1){named("sub", frame=1)}
  %is_finite.1 = pred[8]{{0}} is-finite(%top.1){named("is_finite", frame=2)}
  %select_n.1 = f32[8]{{0}} select(%is_finite.1, %top.1, %q){named("select_n", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%sub.1, %select_n.1)"""
    assert users_of("top.1", body) == users


def test_so_it_was_where_a_convert_was_put_in_front_of_what_is_chosen() -> None:
    """The reduction computes in more precision than the program has."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %zeros = bf16[8]{{0}} parameter(1)
  %top.1 = f32[8]{{0}} reduce(%p, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_max")}
  %is_finite.1 = pred[8]{{0}} is-finite(%top.1){named("is_finite")}
  %convert.5 = bf16[8]{{0}} convert(%top.1)
  %select_n.1 = bf16[8]{{0}} select(%is_finite.1, %convert.5, %zeros){named("select_n")}
  ROOT %r = (bf16[8]{{0}}) tuple(%select_n.1)"""
    assert users_of("top.1", body) == ["convert.5", "is_finite.1"]


@pytest.mark.parametrize(
    ("word", "later", "users"),
    [
        ("negate(%k)", True, ["shift_right_logical.1", "add.2", "add.1", "shift_left.1"]),
        ("negate(%k)", False, ["shift_right_logical.1", "add.1", "shift_left.1"]),
        ("add(%k, %k)", False, ["add.1", "shift_left.1", "shift_right_logical.1"]),
    ],
)
def test_in_random_bits_the_last_reader_of_the_sum_with_zero_takes_its_place(
    word: str, later: bool, users: list[str]
) -> None:
    """What is read in one round only is a count to which a key of zero was added; a sum is of another key."""
    body = f"""  %k = u32[] parameter(0)
  %word.1 = u32[] {word}
  %few = u32[] constant(13)
  %many = u32[] constant(19)
  %add.1 = u32[] add(%k, %word.1){named("add")}
  %shift_left.1 = u32[] shift-left(%word.1, %few){named("shift_left")}
  %shift_right_logical.1 = u32[] shift-right-logical(%word.1, %many){named("shift_right_logical")}
  %or.1 = u32[] or(%shift_left.1, %shift_right_logical.1){named("or")}
  %xor.1 = u32[] xor(%add.1, %or.1){named("xor")}
  %add.2 = u32[] add(%xor.1, {"%word.1" if later else "%k"}){named("add")}
  ROOT %r = (u32[]) tuple(%add.2)"""
    assert users_of("word.1", body) == users


@pytest.mark.parametrize(
    ("word", "users"),
    [
        ("negate(%k)", ["shift_right.1", "add.1", "shift_left.1"]),
        ("get-tuple-element(%p), index=0", ["add.1", "shift_left.1", "shift_right.1"]),
    ],
    ids=["a count", "what a loop mixes"],
)
def test_a_loop_mixes_what_no_key_was_added_to(word: str, users: list[str]) -> None:
    body = f"""  %p = (u32[8]{{0}}, u32[8]{{0}}) parameter(0)
  %k = u32[8]{{0}} parameter(1)
  %few = u32[8]{{0}} parameter(2)
  %word.1 = u32[8]{{0}} {word}
  %add.1 = u32[8]{{0}} add(%k, %word.1){named("add")}
  %shift_left.1 = u32[8]{{0}} shift-left(%word.1, %few){named("shift_left")}
  %shift_right.1 = u32[8]{{0}} shift-right-logical(%word.1, %few){named("shift_right_logical")}
  %or.1 = u32[8]{{0}} or(%shift_left.1, %shift_right.1){named("or")}
  %xor.1 = u32[8]{{0}} xor(%add.1, %or.1){named("xor")}
  ROOT %r = (u32[8]{{0}}) tuple(%xor.1)"""
    assert users_of("word.1", body) == users


@pytest.mark.parametrize(
    ("name", "entry", "users"),
    [
        ("add.4.0", "main", ["add.5.0", "xor.2"]),
        ("add.3.0", "main", ["xor.2", "add.5.0"]),
        ("add.4.0", "body.clone", ["xor.2", "add.5.0"]),
    ],
)
def test_a_sum_that_bears_the_name_of_its_sum_with_zero_has_the_last_reader_in_front(
    name: str, entry: str, users: list[str]
) -> None:
    """The numbers of the sum itself and of the zero are those that are missing; a clone has what was free."""
    body = f"""  %k = u32[] parameter(0)
  %w = u32[] parameter(1)
  %add.1.0 = u32[] add(%k, %w){named("add")}
  %xor.1 = u32[] xor(%add.1.0, %w){named("xor")}
  %{name} = u32[] add(%add.1.0, %xor.1){named("add")}
  %xor.2 = u32[] xor(%{name}, %w){named("xor")}
  %add.5.0 = u32[] add(%xor.2, %{name}){named("add")}
  ROOT %r = (u32[]) tuple(%add.5.0)"""
    assert users_of(name, body, entry=entry) == users


@pytest.mark.parametrize(
    ("number", "users"),
    [(8, ["add.1", "add.3", "add.5", "add.4"]), (11, ["add.1", "add.3", "add.4", "add.5"])],
)
def test_the_last_reader_of_a_word_takes_the_place_of_a_sum_that_took_a_number_along(
    number: int, users: list[str]
) -> None:
    """`(x + 5) + 3` became one sum, which no longer reads the word 5."""
    body = f"""  %k = u32[8]{{0}} parameter(0)
  %five = u32[] constant(5)
  %word.1 = u32[8]{{0}} broadcast(%five), dimensions={{}}{named("add")}
  %add.1 = u32[8]{{0}} add(%k, %word.1){named("add")}
  %xor.1 = u32[8]{{0}} xor(%add.1, %k){named("xor")}
  %add.3 = u32[8]{{0}} add(%xor.1, %word.1){named("add")}
  %xor.2 = u32[8]{{0}} xor(%add.3, %k){named("xor")}
  %number = u32[] constant({number})
  %numbers = u32[8]{{0}} broadcast(%number), dimensions={{}}{named("add")}
  %sum.1 = u32[8]{{0}} add(%xor.2, %numbers){named("add")}
  %add.4 = u32[8]{{0}} add(%sum.1, %word.1){named("add")}
  %xor.3 = u32[8]{{0}} xor(%add.4, %k){named("xor")}
  %add.5 = u32[8]{{0}} add(%xor.3, %word.1){named("add")}
  ROOT %r = (u32[8]{{0}}) tuple(%add.5)"""
    assert users_of("word.1", body) == users


@pytest.mark.parametrize(
    ("word", "numbers", "users"),
    [
        (50, 51, ["add.3", "add.2", "add.4"]),
        (50, 60, ["add.2", "add.3", "add.4"]),
        (5, 6, ["add.4", "add.2", "add.3"]),
    ],
    ids=["first", "of no time", "time itself"],
)
def test_the_first_sum_of_a_word_may_have_taken_a_number_along(
    word: int, numbers: int, users: list[str]
) -> None:
    """What of another key makes a sum with the same number was merged later, unless it is a time's number."""
    body = f"""  %k = u32[8]{{0}} parameter(0)
  %xor.1 = u32[8]{{0}} xor(%k, %k){named("xor")}
  %number = u32[] constant({numbers})
  %numbers = u32[8]{{0}} broadcast(%number), dimensions={{}}{named("add")}
  %sum.1 = u32[8]{{0}} add(%xor.1, %numbers){named("add")}
  %of_word = u32[] constant({word})
  %word.1 = u32[8]{{0}} broadcast(%of_word), dimensions={{}}{named("add")}
  %add.2 = u32[8]{{0}} add(%sum.1, %word.1){named("add")}
  %add.3 = u32[8]{{0}} add(%add.2, %word.1){named("add")}
  %xor.2 = u32[8]{{0}} xor(%add.3, %k){named("xor")}
  %add.4 = u32[8]{{0}} add(%xor.2, %word.1){named("add")}
  ROOT %r = (u32[8]{{0}}) tuple(%add.4)"""
    assert users_of("word.1", body) == users


@pytest.mark.parametrize(
    ("word", "users"),
    [
        (3, ["add.1", "add.2", "shift.1", "add.4", "shift.2"]),
        (4, ["add.1", "add.2", "shift.1", "shift.2", "add.4"]),
    ],
    ids=["number of the time", "another number"],
)
def test_a_word_that_is_the_number_of_the_time_lost_two_users(word: int, users: list[str]) -> None:
    """`(x + 3) + 3` became one sum; the number of the time was what the function turns by."""
    body = f"""  %k = u32[8]{{0}} parameter(0)
  %word = u32[] constant({word})
  %word.1 = u32[8]{{0}} broadcast(%word), dimensions={{}}{named("jit(_uniform)/add")}
  %add.1 = u32[8]{{0}} add(%k, %word.1){named("jit(_uniform)/add")}
  %add.2 = u32[8]{{0}} add(%add.1, %word.1){named("jit(_uniform)/add")}
  %shift.1 = u32[8]{{0}} shift-right-logical(%add.2, %word.1){named("jit(_uniform)/shift_right_logical")}
  %xor.1 = u32[8]{{0}} xor(%add.2, %shift.1){named("jit(_uniform)/xor")}
  %number = u32[] constant({word + 3})
  %numbers = u32[8]{{0}} broadcast(%number), dimensions={{}}{named("jit(_uniform)/add")}
  %sum.1 = u32[8]{{0}} add(%xor.1, %numbers){named("jit(_uniform)/add")}
  %shift.2 = u32[8]{{0}} shift-right-logical(%sum.1, %word.1){named("jit(_uniform)/shift_right_logical")}
  %add.4 = u32[8]{{0}} add(%shift.2, %word.1){named("jit(_uniform)/add")}
  ROOT %r = (u32[8]{{0}}) tuple(%add.4)"""
    assert users_of("word.1", body) == users


@pytest.mark.parametrize(
    ("frame", "users"), [(5, ["lt.9.0", "select_n.1"]), (6, ["select_n.1", "lt.9.0"])], ids=["cloned", "gone"]
)
def test_a_first_reader_that_was_numbered_anew_is_there(frame: int, users: list[str]) -> None:
    """It stands in the place of the constant that was spread for it."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %lt.6.0 = f32[8]{{0}} broadcast(%zero), dimensions={{}}{named("lt", frame=5)}
  %lt.9.0 = pred[8]{{0}} compare(%p, %lt.6.0), direction=LT{named("lt", frame=frame)}
  %select_n.1 = f32[8]{{0}} select(%lt.9.0, %p, %lt.6.0){named("select_n", frame=7)}
  ROOT %r = (f32[8]{{0}}) tuple(%select_n.1)"""
    assert users_of("lt.6.0", body, ids="p zero lt.6.0 - lt.9.0 select_n.1 r") == users


@pytest.mark.parametrize(
    ("call", "users"), [("jit(relu)", ["mul.9", "mul.3"]), ("transpose(jit(relu))", ["mul.3", "mul.9"])]
)
def test_numbers_tell_nothing_of_a_constant_that_is_of_several_calls(call: str, users: list[str]) -> None:
    """Each call had one of its own, with what read it, till CSE made them one."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %two = f32[] constant(2)
  %mul.1 = f32[8]{{0}} broadcast(%two), dimensions={{}}{named("jit(relu)/mul")}
  %mul.3 = f32[8]{{0}} multiply(%mul.1, %p){named("jit(relu)/mul")}
  %exp.1 = f32[8]{{0}} exponential(%mul.3){named("exp")}
  %mul.9 = f32[8]{{0}} multiply(%mul.1, %exp.1){named(f"{call}/mul")}
  ROOT %r = (f32[8]{{0}}) tuple(%mul.9)"""
    assert users_of("mul.1", body) == users


@pytest.mark.parametrize(
    ("operation", "larger", "users"),
    [
        ("max", 3, ["cos.1", "sin.1", "mul.1", "exp.1"]),
        ("max", 5, ["cos.1", "mul.1", "exp.1", "sin.1"]),
        ("add", 3, ["cos.1", "mul.1", "exp.1", "sin.1"]),
    ],
)
def test_the_last_takes_the_place_of_a_maximum_of_equals(
    operation: str, larger: int, users: list[str]
) -> None:
    """It was written where a later one bears the place, in front of what has the next place."""
    places = [("f", 1, 4, 8), ("f", 2, 4, 8), ("larger", 9, 4, 8), ("f", 4, 4, 8), ("f", 5, 4, 8)]
    opcode = {"max": "maximum"}.get(operation, operation)
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %tanh.1 = f32[8]{{0}} tanh(%p){named("tanh", frame=1)}
  %cos.1 = f32[8]{{0}} cosine(%tanh.1){named("cos", frame=2)}
  %mul.1 = f32[8]{{0}} multiply(%tanh.1, %tanh.1){named("mul", frame=4)}
  %exp.1 = f32[8]{{0}} exponential(%tanh.1){named("exp", frame=5)}
  %max.3 = f32[8]{{0}} {opcode}(%mul.1, %exp.1){named(operation, frame=larger)}
  %sin.1 = f32[8]{{0}} sine(%tanh.1){named("sin", frame=5)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%cos.1, %max.3, %sin.1)"""
    assert users_of("tanh.1", body, tables=places_in_source(*places)) == users


@pytest.mark.parametrize(
    ("kind", "divisor", "operation", "users"),
    [
        ("s32", 8, "rem", ["add.2", "add.1"]),
        ("s32", 7, "rem", ["add.1", "add.2"]),
        ("bf16", 8, "rem", ["add.1", "add.2"]),
        ("s32", 8, "mul", ["add.1", "add.2"]),
    ],
)
def test_of_a_divisor_the_last_reader_takes_the_place_of_a_remainder_that_became_bits(
    kind: str, divisor: int, operation: str, users: list[str]
) -> None:
    """Two functions were given the number, and of the first the remainder was asked."""
    body = f"""  %p = {kind}[8]{{0}} parameter(0)
  %eight = {kind}[] constant({divisor})
  %rem.1 = {kind}[8]{{0}} broadcast(%eight), dimensions={{}}{named(f"jit(remainder)/{operation}", frame=5)}
  %add.1 = {kind}[8]{{0}} add(%p, %rem.1){named("jit(remainder)/add", frame=5)}
  %add.2 = {kind}[8]{{0}} add(%add.1, %rem.1){named("jit(take)/add", frame=6)}
  ROOT %r = ({kind}[8]{{0}}) tuple(%add.2)"""
    assert users_of("rem.1", body, ids="p eight rem.1 - add.1 add.2 r") == users


@pytest.mark.parametrize(
    ("numbers", "users"),
    [(51, ["add.12.0", "add.10.0"]), (60, ["add.10.0", "add.12.0"])],
    ids=["of the word", "of none"],
)
def test_of_a_word_of_the_key_a_sum_with_its_number_tells_and_not_that_no_name_has_the_next_number(
    numbers: int, users: list[str]
) -> None:
    body = f"""  %k = u32[8]{{0}} parameter(0)
  %xor.1 = u32[8]{{0}} xor(%k, %k){named("jit(_uniform)/xor", frame=5)}
  %number = u32[] constant({numbers})
  %numbers = u32[8]{{0}} broadcast(%number), dimensions={{}}{named("jit(_uniform)/add", frame=5)}
  %sum.1 = u32[8]{{0}} add(%xor.1, %numbers){named("jit(_uniform)/add", frame=5)}
  %word = u32[] constant(50)
  %add.8.0 = u32[8]{{0}} broadcast(%word), dimensions={{}}{named("jit(_uniform)/add", frame=5)}
  %add.10.0 = u32[8]{{0}} add(%sum.1, %add.8.0){named("jit(_uniform)/add", frame=5)}
  %add.12.0 = u32[8]{{0}} add(%add.10.0, %add.8.0){named("jit(_uniform)/add", frame=5)}
  ROOT %r = (u32[8]{{0}}) tuple(%add.12.0)"""
    ids = "k xor.1 number numbers sum.1 word add.8.0 - add.10.0 add.12.0 r"
    assert users_of("add.8.0", body, ids=ids) == users


@pytest.mark.parametrize(
    ("spread", "users"),
    [
        ("broadcast(%zero), dimensions={}", ["select_n.1", "ne.1", "add.5.0"]),
        ("broadcast(%few), dimensions={0}", ["select_n.1", "add.5.0", "ne.1"]),
    ],
    ids=["scalar", "stretched"],
)
def test_numbers_that_were_of_a_stretched_dimension_are_of_no_sum_with_zero(
    spread: str, users: list[str]
) -> None:
    """Two numbers are missing behind a sum: of a sum with zero, or of a broadcast and its reshape."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %few = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %add.1.0 = f32[8,4]{{1,0}} add(%p, %p){named("add")}
  %ne.1 = pred[8,4]{{1,0}} compare(%add.1.0, %p), direction=NE{named("jit(median)/ne", frame=5)}
  %select_n.1 = f32[8,4]{{1,0}} select(%ne.1, %add.1.0, %p){named("jit(median)/select_n", frame=5)}
  %add.4.0 = f32[8,4]{{1,0}} {spread}{named("add")}
  %add.5.0 = f32[8,4]{{1,0}} add(%add.4.0, %add.1.0){named("add")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%select_n.1, %add.5.0)"""
    assert users_of("add.1.0", body) == users


@pytest.mark.parametrize(
    ("behind", "listed"), [(3, ["two.1.0", "one.1.0"]), (2, ["one.1.0", "two.1.0"])], ids=["dropped", "none"]
)
def test_the_last_reader_takes_the_place_of_a_convert_back_for_a_sum_of_derivatives(
    behind: int, listed: list[str]
) -> None:
    """The sum of `x` made wide and narrow again and of what comes of the first reader of the wide value."""
    shape = "[32]{0}"
    body = f"""  %p = bf16{shape} parameter(0)
  %x.1.0 = bf16{shape} negate(%p){named("neg")}
  %convert_element_type.1.0 = f32{shape} convert(%x.1.0){named("convert_element_type")}
  %one.1.0 = f32{shape} negate(%convert_element_type.1.0){named("one")}
  %convert_element_type.{behind}.0 = bf16{shape} convert(%one.1.0){named("convert_element_type")}
  %add_any.1.0 = bf16{shape} add(%x.1.0, %convert_element_type.{behind}.0){named("add_any")}
  %two.1.0 = f32{shape} exponential(%convert_element_type.1.0){named("two")}
  ROOT %r = (bf16{shape}, f32{shape}) tuple(%add_any.1.0, %two.1.0)"""
    assert users_of("convert_element_type.1.0", body) == listed


@pytest.mark.parametrize(
    ("frame", "users"),
    [(5, ["add.1", "mul.1", "mul.2"]), (6, ["mul.1", "add.1", "mul.2"])],
    ids=["of one loop", "written apart"],
)
def test_a_sum_of_multiples_begins_where_one_times_the_value_was(frame: int, users: list[str]) -> None:
    """`sum(c * x for c in (1, 2, 3))`."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(2)
  %d = f32[] constant(3)
  %by.1 = f32[8]{{0}} broadcast(%c), dimensions={{}}{named("mul", frame=5)}
  %by.2 = f32[8]{{0}} broadcast(%d), dimensions={{}}{named("mul", frame=frame)}
  %exp.1 = f32[8]{{0}} exponential(%p){named("exp")}
  %mul.1 = f32[8]{{0}} multiply(%exp.1, %by.1){named("mul", frame=5)}
  %add.1 = f32[8]{{0}} add(%exp.1, %mul.1){named("add", frame=4)}
  %mul.2 = f32[8]{{0}} multiply(%exp.1, %by.2){named("mul", frame=frame)}
  %add.2 = f32[8]{{0}} add(%add.1, %mul.2){named("add", frame=4)}
  ROOT %r = (f32[8]{{0}}) tuple(%add.2)"""
    assert users_of("exp.1", body) == users


@pytest.mark.parametrize(
    ("place", "other", "users"),
    [
        (5, "mul", ["select.1", "select.3", "select.2"]),
        (4, "mul", ["select.2", "select.3", "select.1"]),
        (5, "jvp()/mul", ["select.2", "select.3", "select.1"]),
    ],
    ids=["again and again", "called elsewhere", "once, and derived"],
)
def test_each_product_had_a_predicate_that_a_function_gave(place: int, other: str, users: list[str]) -> None:
    """`x * bernoulli(key, x.shape)`, three times over, each the former's product."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %lt.1 = pred[8]{{0}} compare(%p, %p), direction=LT{named("jit(_bernoulli)/lt", frame=place)}
  %select.3 = f32[8]{{0}} select(%lt.1, %p, %zeros){named("mul", frame=5)}
  %select.1 = f32[8]{{0}} select(%lt.1, %select.3, %zeros){named("mul", frame=5)}
  %exp.1 = f32[8]{{0}} exponential(%select.1){named("exp")}
  %select.2 = f32[8]{{0}} select(%lt.1, %select.1, %zeros){named(other, frame=5)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.1, %select.2)"""
    assert users_of("lt.1", body) == users
