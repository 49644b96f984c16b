"""The order of users in small programs cut out of random ones; XLA's record, or its log, has each."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_as_guessed, users_of


@pytest.mark.parametrize(
    ("end", "users"),
    [(50, ["sub.1", "bitcast.1"]), (80, ["bitcast.1", "sub.1"])],
)
def test_what_is_within_an_expression_read_another_copy_of_its_operand(end: int, users: list[str]) -> None:
    """`a - mean(a)` converts its operand when the mean is there, which had converted `a` for itself."""
    tables = places_in_source(("f", 1, 10, 60), ("f", 1, 14, end))
    body = f"""  %p = bf16[1,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %convert_element_type.1 = f32[1,8]{{1,0}} convert(%p){named("convert_element_type", frame=1)}
  %bitcast.1 = f32[8]{{0}} bitcast(%convert_element_type.1)
  %reduce.1 = f32[] reduce(%bitcast.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=2)}
  %mean.1 = f32[1,8]{{1,0}} broadcast(%reduce.1), dimensions={{}}{named("sub", frame=1)}
  %sub.1 = f32[1,8]{{1,0}} subtract(%convert_element_type.1, %mean.1){named("sub", frame=1)}
  ROOT %r = (f32[1,8]{{1,0}}) tuple(%sub.1)"""
    assert users_of("convert_element_type.1", body, tables=tables) == users
    assert users_as_guessed("convert_element_type.1", body, tables=tables) == users


@pytest.mark.parametrize(
    ("scope", "users"),
    [
        ("while/body/eval_jaxpr/", ["cos.1", "sin.1", "exp.1"]),
        ("", ["sin.1", "exp.1", "cos.1"]),
    ],
)
def test_the_last_reader_took_the_place_of_the_tuple_of_a_loop_of_one_turn(
    scope: str, users: list[str]
) -> None:
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %tanh.1 = f32[8,16]{{1,0}} tanh(%p){named(f"{scope}tanh")}
  %sin.1 = f32[8,16]{{1,0}} sine(%tanh.1){named("sin")}
  %exp.1 = f32[8,16]{{1,0}} exponential(%tanh.1){named("exp")}
  %cos.1 = f32[8,16]{{1,0}} cosine(%tanh.1){named("cos")}
  ROOT %r = (f32[8,16]{{1,0}}, f32[8,16]{{1,0}}, f32[8,16]{{1,0}}) tuple(%sin.1, %exp.1, %cos.1)"""
    assert users_of("tanh.1", body) == users


@pytest.mark.parametrize(
    ("dimension", "users"),
    [(1, ["bitcast.1", "mul.1", "tanh.1", "sin.1"]), (0, ["bitcast.1", "tanh.1", "sin.1", "mul.1"])],
)
def test_either_side_of_an_outer_product_was_reshaped(dimension: int, users: list[str]) -> None:
    """Both are spread in one way in the second: HloCSE had made one of them before."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %q = f32[8,16]{{1,0}} parameter(1)
  %bitcast.1 = f32[128]{{0}} bitcast(%p)
  %outer.1 = f32[128,128]{{1,0}} broadcast(%bitcast.1), dimensions={{0}}{named("outer")}
  %outer.2 = f32[128,128]{{1,0}} broadcast(%bitcast.1), dimensions={{{dimension}}}{named("outer")}
  %outer.3 = f32[128,128]{{1,0}} multiply(%outer.1, %outer.2){named("outer")}
  %tanh.1 = f32[8,16]{{1,0}} tanh(%p){named("tanh")}
  %sin.1 = f32[8,16]{{1,0}} sine(%p){named("sin")}
  %mul.1 = f32[8,16]{{1,0}} multiply(%p, %q){named("mul")}
  ROOT %r = (f32[128,128]{{1,0}}, f32[8,16]{{1,0}}, f32[8,16]{{1,0}}, f32[8,16]{{1,0}}) \
tuple(%outer.3, %tanh.1, %sin.1, %mul.1)"""
    ids = "p q tanh.1 sin.1 mul.1 r bitcast.1 outer.1 outer.2 outer.3"
    assert users_of("p", body, ids=ids) == users


@pytest.mark.parametrize(
    ("reader", "users"),
    [
        ("", ["tanh.1", "bitcast.1", "mul.1", "sin.1"]),
        ("exponential(%bitcast.1)", ["tanh.1", "bitcast.1", "sin.1", "mul.1"]),
    ],
    ids=["for both sides", "by the program as well, in front of both"],
)
def test_the_sides_were_reshaped_where_the_product_is(reader: str, users: list[str]) -> None:
    exp = f"  %exp.1 = f32[128]{{0}} {reader}{named('exp')}\n" if reader else ""
    matrix, outer = "f32[8,16]{1,0}", "f32[128,128]{1,0}"
    shapes, results = f"{matrix}, {outer}, {matrix}", "%tanh.1, %outer.3, %mul.1"
    if reader:
        shapes, results = f"{matrix}, f32[128]{{0}}, {matrix}, {outer}", "%tanh.1, %exp.1, %mul.1, %outer.3"
    body = f"""  %p = {matrix} parameter(0)
  %tanh.1 = {matrix} tanh(%p){named("tanh")}
  %bitcast.1 = f32[128]{{0}} bitcast(%p)
{exp}  %outer.1 = {outer} broadcast(%bitcast.1), dimensions={{0}}{named("outer")}
  %outer.2 = {outer} broadcast(%bitcast.1), dimensions={{1}}{named("outer")}
  %outer.3 = {outer} multiply(%outer.1, %outer.2){named("outer")}
  %sin.1 = {matrix} sine(%p){named("sin")}
  %mul.1 = {matrix} multiply(%p, %sin.1){named("mul")}
  ROOT %r = ({shapes}) tuple({results})"""
    assert users_of("p", body) == users


def test_what_reads_a_product_with_one_is_in_its_place() -> None:
    """Of `y * 2`, `y * 3` and `y * 9`, each summed, for `y = (x - 1) / 3`, the second is `x - 1`."""
    places = named("div"), named("mul"), named("mul")
    names = "multiply.1", "mul.13.0", "mul.15.0"
    spread = "".join(
        f"""  %constant.{k} = f32[] constant({k}.5)
  %broadcast.{k} = f32[4]{{0}} broadcast(%constant.{k}), dimensions={{}}{place if k > 1 else ""}
  %{name} = f32[4]{{0}} multiply(%add.1, %broadcast.{k}){place}
  %reduce_sum.{k} = f32[] reduce(%{name}, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
{_OF_ITSELF if k == 2 else ""}"""
        for k, (name, place) in enumerate(zip(names, places, strict=True), 1)
    )
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %constant.9 = f32[] constant(-1)
  %broadcast.9 = f32[4]{{0}} broadcast(%constant.9), dimensions={{}}
  %add.1 = f32[4]{{0}} add(%p, %broadcast.9){named("sub")}
{spread}  ROOT %r = (f32[], f32[], f32[], f32[]) \
tuple(%reduce_sum.1, %reduce_sum.2, %reduce_sum.7, %reduce_sum.3)"""
    assert users_of("add.1", body) == ["multiply.1", "mul.13.0", "reduce_sum.7", "mul.15.0"]


_SUM = named("reduce_sum")
_OF_ITSELF = f"""  %reduce_sum.7 = f32[] reduce(%add.1, %zero), dimensions={{0}}, to_apply=%sum{_SUM}
"""


def test_a_gather_that_was_made_anew_is_where_its_call_had_it() -> None:
    """Of `jnp.take` and `jnp.flip` in that order: GatherSimplifier makes every gather of the program anew."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %at = s32[3,1]{{1,0}} constant({{ {{0}}, {{1}}, {{0}} }})
  %sin.1 = f32[8,16]{{1,0}} sine(%p){named("sin")}
  %gather.2 = f32[3,1,16]{{2,1,0}} gather(%sin.1, %at), offset_dims={{1,2}}, collapsed_slice_dims={{}}, \
start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,16}}{named("jit(_take)/gather")}
  %rev.1 = f32[8,16]{{1,0}} reverse(%sin.1), dimensions={{0}}{named("jit(_flip)/rev")}
  ROOT %r = (f32[3,1,16]{{2,1,0}}, f32[8,16]{{1,0}}) tuple(%gather.2, %rev.1)"""
    assert users_of("sin.1", body, ids="p at sin.1 r rev.1 gather.2") == ["gather.2", "rev.1"]


def test_what_a_function_calls_reads_what_the_function_computed() -> None:
    """`jnp.argmax` of `x` and a slice of it, where the line of `x` is of the same function."""
    tables = places_in_source(
        ("program", 1, 1, 9),
        ("step", 2, 1, 9),
        ("step", 3, 1, 90),
        ("step", 3, 40, 65),
        ("program", 1, 1, 9),
        ("step", 3, 40, 65),
        called_from={2: 1, 3: 1, 4: 1, 5: 4, 6: 5},
    )
    body = f"""  %p = f32[128]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %add.7 = f32[128]{{0}} add(%p, %p){named("add", frame=2)}
  %reduce.0 = f32[] reduce(%add.7, %zero), dimensions={{0}}, to_apply=%sum{named("reduce", frame=6)}
  %at = s32[] convert(%reduce.0){named("convert_element_type", frame=3)}
  %slice.1 = f32[64]{{0}} dynamic-slice(%add.7, %at), dynamic_slice_sizes={{64}}{named("slice", frame=3)}
  ROOT %r = (f32[64]{{0}}) tuple(%slice.1)"""
    assert users_of("add.7", body, tables=tables) == ["reduce.0", "slice.1"]


@pytest.mark.parametrize(
    ("within", "name", "users"),
    [
        (20, "mul", ["slice.1", "spread.1", "multiply.1"]),
        (20, "div", ["multiply.1", "slice.1", "spread.1"]),
        (90, "mul", ["multiply.1", "spread.1", "slice.1"]),
    ],
    ids=["moved as well", "a division by a constant", "no reshape"],
)
def test_what_is_moved_in_front_of_a_broadcast_takes_the_place_of_its_reshape(
    within: int, name: str, users: list[str]
) -> None:
    """`broadcast_to(x[None], (4, 8))`, of which a part is taken: that is one of `x`."""
    tables = places_in_source(("f", 1, 10, 80), ("f", 1, within, within + 7), ("f", 2, 1, 9))
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %sin.1 = f32[8]{{0}} sine(%p){named("sin")}
  %multiply.1 = f32[8]{{0}} multiply(%sin.1, %p){named(name, frame=3)}
  %spread.1 = f32[4,8]{{1,0}} broadcast(%sin.1), dimensions={{1}}{named("broadcast_in_dim", frame=1)}
  %slice.1 = f32[4]{{0}} slice(%sin.1), slice={{[0:4]}}{named("slice", frame=3)}
  ROOT %r.1 = (f32[8]{{0}}, f32[4,8]{{1,0}}, f32[4]{{0}}) tuple(%multiply.1, %spread.1, %slice.1)"""
    made = "p sin.1 spread.1 r.1 slice.1 multiply.1"
    assert users_of("sin.1", body, ids=made, tables=tables) == users


@pytest.mark.parametrize(
    ("made", "users"),
    [
        ("p zero sin.1 spread.1 r.1 reduce.2", ["reduce.2", "spread.1"]),
        ("p zero r.1 sin.1 spread.1 reduce.2", ["spread.1", "reduce.2"]),
    ],
    ids=["of the program", "moved itself"],
)
def test_what_was_moved_in_front_of_the_broadcast_had_no_reshape(made: str, users: list[str]) -> None:
    """The largest of `sin(broadcast_to(x[None], (4, 8, 2)))`: sine was computed of `x` then."""
    tables = places_in_source(("f", 1, 10, 80), ("f", 1, 20, 27), ("f", 2, 1, 9))
    body = f"""  %p = f32[8,2]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %sin.1 = f32[8,2]{{1,0}} sine(%p){named("sin")}
  %spread.1 = f32[4,8,2]{{2,1,0}} broadcast(%sin.1), dimensions={{1,2}}{named("broadcast_in_dim", frame=1)}
  %reduce.2 = f32[8]{{0}} reduce(%sin.1, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_max", frame=3)}
  ROOT %r.1 = (f32[4,8,2]{{2,1,0}}, f32[8]{{0}}) tuple(%spread.1, %reduce.2)"""
    assert users_of("sin.1", body, ids=made, tables=tables) == users


@pytest.mark.parametrize(
    ("within", "users"), [(30, ["neg.1", "dot.1", "exp.1"]), (90, ["dot.1", "exp.1", "neg.1"])]
)
def test_the_last_user_takes_the_place_of_a_transpose_that_the_product_took_in(
    within: int, users: list[str]
) -> None:
    """`x @ x.T`: in front of the product stood the transpose, which is written within it."""
    tables = places_in_source(("f", 1, 10, 80), ("f", 1, within, within + 3), ("f", 2, 1, 9))
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %sin.1 = f32[8,4]{{1,0}} sine(%p){named("sin")}
  %dot.1 = f32[8,8]{{1,0}} dot(%sin.1, %sin.1), lhs_contracting_dims={{1}}, \
rhs_contracting_dims={{1}}{named("dot_general", frame=1)}
  %exp.1 = f32[8,4]{{1,0}} exponential(%sin.1){named("exp", frame=3)}
  %neg.1 = f32[8,4]{{1,0}} negate(%sin.1){named("neg", frame=3)}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%dot.1, %exp.1, %neg.1)"""
    assert users_of("sin.1", body, tables=tables) == users


def test_who_reads_a_part_of_a_complex_number_comes_behind_who_reads_what_it_is_put_together_of() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %add.1 = f32[8]{{0}} add(%p, %q){named("add")}
  %complex.1 = c64[8]{{0}} complex(%add.1, %q){named("complex")}
  %atan2.1 = f32[8]{{0}} atan2(%q, %add.1){named("jit(angle)/atan2")}
  %neg.1 = f32[8]{{0}} negate(%q){named("neg")}
  %complex.2 = c64[8]{{0}} complex(%add.1, %neg.1){named("complex")}
  %mul.1 = c64[8]{{0}} multiply(%complex.1, %complex.2){named("mul")}
  ROOT %r = (f32[8]{{0}}, c64[8]{{0}}) tuple(%atan2.1, %mul.1)"""
    assert users_of("add.1", body) == ["complex.1", "complex.2", "atan2.1"]
    assert users_of("q", body) == ["add.1", "complex.1", "neg.1", "atan2.1"]


def test_either_part_of_a_complex_number_was_a_convert_of_its_own() -> None:
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %to.1 = f32[8]{{0}} convert(%p){named("convert_element_type")}
  %complex.1 = c64[8]{{0}} complex(%to.1, %to.1){named("complex")}
  %atan2.1 = f32[8]{{0}} atan2(%to.1, %to.1){named("jit(angle)/atan2")}
  %neg.1 = f32[8]{{0}} negate(%to.1){named("neg")}
  %complex.2 = c64[8]{{0}} complex(%to.1, %neg.1){named("complex")}
  %mul.1 = c64[8]{{0}} multiply(%complex.1, %complex.2){named("mul")}
  ROOT %r = (f32[8]{{0}}, c64[8]{{0}}) tuple(%atan2.1, %mul.1)"""
    assert users_of("to.1", body) == ["complex.1", "complex.2", "atan2.1", "neg.1"]


def test_what_is_added_to_its_own_transpose_was_not_moved_in_front_of_a_reshape() -> None:
    """The symmetric matrix of `cholesky`: layout normalization made both the copy and the sum anew."""
    body = f"""  %p = f64[4,4]{{1,0}} parameter(0)
  %exp.1 = f64[4,4]{{1,0}} exponential(%p){named("exp")}
  %bitcast.1 = f64[1,4,4]{{2,1,0}} bitcast(%exp.1){named("exp")}
  %transpose.1 = f64[1,4,4]{{2,1,0}} transpose(%bitcast.1), dimensions={{0,2,1}}{named("exp")}
  %add.1 = f64[1,4,4]{{2,1,0}} add(%transpose.1, %bitcast.1){named("jit(cholesky)/add")}
  ROOT %r = (f64[1,4,4]{{2,1,0}}) tuple(%add.1)"""
    assert users_of("bitcast.1", body) == ["transpose.1", "add.1"]


def test_the_copy_is_in_front_of_what_was_moved_in_front_of_it() -> None:
    """MoveCopyToUsers: the copy was the first user, and what layout normalization made of it the last."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %exp.1 = f32[8,4]{{1,0}} exponential(%p){named("exp")}
  %bitcast.1 = f32[2,4,4]{{2,1,0}} bitcast(%exp.1){named("jvp()/add")}
  %compare.1 = pred[2,4,4]{{2,1,0}} compare(%bitcast.1, %bitcast.1), direction=NE{named("jit(g)/ne")}
  %transpose.1 = f32[4,2,4]{{2,1,0}} transpose(%bitcast.1), dimensions={{1,0,2}}{named("jvp()/add")}
  %abs.1 = f32[2,4,4]{{2,1,0}} abs(%bitcast.1){named("jit(g)/abs")}
  ROOT %r = (pred[2,4,4]{{2,1,0}}, f32[4,2,4]{{2,1,0}}, f32[2,4,4]{{2,1,0}}) tuple(%compare.1, \
%transpose.1, %abs.1)"""
    assert users_of("bitcast.1", body) == ["transpose.1", "compare.1", "abs.1"]


@pytest.mark.parametrize(
    ("other", "users"), [("mul", ["add_any.2", "add_any.1"]), ("add", ["add_any.1", "add_any.2"])]
)
def test_two_results_of_the_body_of_a_loop_are_of_one_call(other: str, users: list[str]) -> None:
    """What each adds to is of another operation; otherwise the body was called twice."""
    where = "transpose(jvp())/while/body/eval_jaxpr"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %ct.1 = f32[8]{{0}} negate(%p){named("transpose(jvp())/while/body/neg")}
  %add.1 = f32[8]{{0}} add(%q, %q){named(f"{where}/add", frame=2)}
  %mul.1 = f32[8]{{0}} multiply(%add.1, %q){named(f"{where}/{other}", frame=2)}
  %add_any.1 = f32[8]{{0}} add(%ct.1, %mul.1){named(f"{where}/add_any", frame=1)}
  %add_any.2 = f32[8]{{0}} add(%ct.1, %add.1){named(f"{where}/add_any", frame=1)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%add_any.1, %add_any.2)"""
    assert users_of("ct.1", body) == users


@pytest.mark.parametrize(
    ("given", "users"),
    [
        ("slice.1", ["add.1", "slice.1", "concatenate.1", "sub.1"]),
        ("q", ["add.1", "slice.1", "sub.1"]),
    ],
)
def test_the_last_user_is_in_place_of_a_slice_that_another_call_takes_as_well(
    given: str, users: list[str]
) -> None:
    """`diff(x, prepend=x[:1]) + roll(x, 1)`: HloCSE kept the slice in `roll`."""
    sizes = "f32[9]" if given == "slice.1" else "f32[2]"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[1]{{0}} parameter(1)
  %exp.1 = f32[8]{{0}} exponential(%p){named("exp")}
  %add.1 = f32[8]{{0}} add(%exp.1, %p){named("add")}
  %slice.1 = f32[1]{{0}} slice(%exp.1), slice={{[0:1]}}{named("jit(roll)/slice", frame=2)}
  %neg.1 = f32[1]{{0}} negate(%slice.1){named("jit(roll)/neg", frame=2)}
  %concatenate.1 = {sizes}{{0}} concatenate(%{given}, %{"exp.1" if given == "slice.1" else "q"}), \
dimensions={{0}}{named("jit(diff)/concatenate", frame=1)}
  %sub.1 = f32[8]{{0}} subtract(%exp.1, %p){named("jit(diff)/sub", frame=1)}
  ROOT %r = (f32[8]{{0}}, f32[1]{{0}}, {sizes}{{0}}, f32[8]{{0}}) tuple(%add.1, %neg.1, \
%concatenate.1, %sub.1)"""
    assert users_of("exp.1", body) == users


def test_of_equal_predicates_that_of_the_outer_select_is_met_first() -> None:
    """`hypot`: both are computed of `max.1`, of which the last user takes the place of the other one."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %max.1 = f32[8]{{0}} maximum(%p, %q){named("jit(hypot)/max")}
  %eq.1 = pred[8]{{0}} compare(%max.1, %q), direction=EQ{named("jit(hypot)/eq")}
  %select_n.1 = f32[8]{{0}} select(%eq.1, %p, %max.1){named("jit(hypot)/jit(_where)/select_n")}
  %div.1 = f32[8]{{0}} divide(%p, %select_n.1){named("jit(hypot)/div")}
  %mul.1 = f32[8]{{0}} multiply(%max.1, %div.1){named("jit(hypot)/mul")}
  %select_n.2 = f32[8]{{0}} select(%eq.1, %max.1, %mul.1){named("jit(hypot)/jit(_where)/select_n")}
  ROOT %r = (f32[8]{{0}}) tuple(%select_n.2)"""
    assert users_of("eq.1", body) == ["select_n.2", "select_n.1"]
    assert users_of("max.1", body) == ["eq.1", "select_n.2", "select_n.1", "mul.1"]


@pytest.mark.parametrize(
    ("function", "users"),
    [
        ("hypot", ["eq.0", "mul.1", "div.1", "eq.1", "select_n.2", "select_n.1"]),
        ("other", ["eq.0", "eq.1", "select_n.2", "select_n.1", "div.1", "mul.1"]),
    ],
)
def test_the_larger_and_the_smaller_of_equals_have_left_the_last_in_their_places(
    function: str, users: list[str]
) -> None:
    """`hypot(x, x)`: whether it is infinite was looked at first; the users of the larger were appended."""
    call = f"jit({function})"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %abs.0 = f32[8]{{0}} abs(%p){named(f"{call}/abs")}
  %eq.0 = pred[8]{{0}} compare(%abs.0, %q), direction=EQ{named(f"{call}/eq")}
  %or.0 = pred[8]{{0}} or(%eq.0, %eq.0){named(f"{call}/or")}
  %eq.1 = pred[8]{{0}} compare(%abs.0, %q), direction=EQ{named(f"{call}/eq")}
  %select_n.1 = f32[8]{{0}} select(%eq.1, %q, %abs.0){named(f"{call}/jit(_where)/select_n")}
  %div.1 = f32[8]{{0}} divide(%abs.0, %select_n.1){named(f"{call}/div")}
  %mul.1 = f32[8]{{0}} multiply(%abs.0, %div.1){named(f"{call}/mul")}
  %select_n.2 = f32[8]{{0}} select(%eq.1, %abs.0, %mul.1){named(f"{call}/jit(_where)/select_n")}
  ROOT %r = (pred[8]{{0}}, f32[8]{{0}}) tuple(%or.0, %select_n.2)"""
    assert users_of("abs.0", body) == users


def test_what_is_chosen_may_be_computed_through_converts() -> None:
    """The outer select of two by one predicate is met first, whether or not arithmetic is widened."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = bf16[8]{{0}} parameter(1)
  %eq.1 = pred[8]{{0}} compare(%p, %q), direction=EQ{named("jit(hypot)/eq")}
  %select_n.1 = bf16[8]{{0}} select(%eq.1, %q, %p){named("jit(hypot)/jit(_where)/select_n")}
  %convert.1 = f32[8]{{0}} convert(%select_n.1)
  %mul.1 = f32[8]{{0}} multiply(%convert.1, %convert.1){named("jit(hypot)/mul")}
  %convert.2 = bf16[8]{{0}} convert(%mul.1)
  ROOT %select_n.2 = bf16[8]{{0}} select(%eq.1, %p, %convert.2){named("jit(hypot)/jit(_where)/select_n")}"""
    assert users_of("eq.1", body) == ["select_n.2", "select_n.1"]


def test_a_difference_of_the_same_infinity_is_gone_from_among_other_users() -> None:
    """The derivative of `logaddexp` replaces the infinities of its result for either operand."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %l = f32[8]{{0}} parameter(2)
  %inf = f32[] constant(inf)
  %infs = f32[8]{{0}} broadcast(%inf), dimensions={{}}
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %eq.1 = pred[8]{{0}} compare(%p, %infs), direction=EQ{named("eq")}
  %select_n.1 = f32[8]{{0}} select(%eq.1, %zeros, %p){named("select_n")}
  %eq.3 = pred[8]{{0}} compare(%l, %infs), direction=EQ{named("eq")}
  %select_n.3 = f32[8]{{0}} select(%eq.3, %zeros, %l){named("select_n")}
  %sub.1 = f32[8]{{0}} subtract(%select_n.1, %select_n.3){named("sub")}
  %eq.2 = pred[8]{{0}} compare(%q, %infs), direction=EQ{named("eq")}
  %select_n.2 = f32[8]{{0}} select(%eq.2, %zeros, %q){named("select_n")}
  %sub.2 = f32[8]{{0}} subtract(%select_n.2, %select_n.3){named("sub")}
  %ge.1 = pred[8]{{0}} compare(%q, %zeros), direction=GE{named("ge")}
  %max.1 = f32[8]{{0}} maximum(%q, %zeros){named("max")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, pred[8]{{0}}, f32[8]{{0}}) tuple(%sub.1, %sub.2, %ge.1, %max.1)"""
    assert users_of("zeros", body) == ["select_n.1", "select_n.3", "select_n.2", "max.1", "ge.1"]


def test_what_the_derivative_chooses_is_with_the_select_it_is_of() -> None:
    """`elu` compares for its result and for what it gives `expm1`; the users of the first predicate first."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[8]{{0}} parameter(1)
  %ct = f32[8]{{0}} parameter(2)
  %gt.1 = pred[8]{{0}} compare(%p, %zero), direction=GT{named("jvp(jit(elu))/gt")}
  %select_n.1 = f32[8]{{0}} select(%gt.1, %zero, %p){named("jvp(jit(elu))/jit(_where)/select_n")}
  %expm1.1 = f32[8]{{0}} exponential-minus-one(%select_n.1){named("jvp(jit(elu))/expm1")}
  %select_n.2 = f32[8]{{0}} select(%gt.1, %p, %expm1.1){named("jvp(jit(elu))/jit(_where)/select_n")}
  %select_n.3 = f32[8]{{0}} select(%gt.1, %ct, %zero){named("transpose(jvp(jit(elu)))/jit(_where)/select_n")}
  %select_n.4 = f32[8]{{0}} select(%gt.1, %zero, %ct){named("transpose(jvp(jit(elu)))/jit(_where)/select_n")}
  %mul.1 = f32[8]{{0}} multiply(%select_n.4, %select_n.2){named("transpose(jvp(jit(elu)))/mul")}
  %select_n.5 = f32[8]{{0}} select(%gt.1, %zero, %mul.1){named("transpose(jvp(jit(elu)))/select_n")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%select_n.3, %select_n.5)"""
    of_result, of_operand = ["select_n.2", "select_n.3", "select_n.4"], ["select_n.1", "select_n.5"]
    assert users_of("gt.1", body) == [*of_result, *of_operand]


def test_a_comparison_that_was_moved_in_front_of_a_reshape_left_its_place_to_the_last_user() -> None:
    body = f"""  %p = s32[2,4]{{1,0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %zero = s32[] constant(0)
  %ne.0 = s32[2,4]{{1,0}} broadcast(%zero), dimensions={{}}{named("jit(floor_divide)/ne")}
  %broadcast.1 = s32[8]{{0}} broadcast(%zero), dimensions={{}}{named("jit(floor_divide)/ne")}
  %ne.1 = pred[8]{{0}} compare(%q, %broadcast.1), direction=NE{named("jit(floor_divide)/ne")}
  %lt.2 = pred[2,4]{{1,0}} compare(%p, %ne.0), direction=LT{named("jit(remainder)/lt")}
  %ne.2 = pred[2,4]{{1,0}} compare(%p, %ne.0), direction=NE{named("jit(remainder)/ne")}
  ROOT %r = (pred[8]{{0}}, pred[2,4]{{1,0}}, pred[2,4]{{1,0}}) tuple(%ne.1, %lt.2, %ne.2)"""
    assert users_of("ne.0", body) == ["ne.2", "lt.2"]


@pytest.mark.parametrize(
    ("kept", "users"),
    [
        (1, ["select.1", "convert_element_type.1", "select.2", "tuple"]),
        (2, ["select.2", "convert_element_type.1", "tuple", "select.1"]),
    ],
    ids=["a convert for each", "one for both"],
)
def test_a_convert_that_is_left_tells_that_each_product_had_its_own(kept: int, users: list[str]) -> None:
    """In `f(x != 0)` that multiplies what it is given in a loop, and without one."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %ne.1 = pred[8]{{0}} compare(%p, %q), direction=NE{named("ne", frame=3)}
  %select.1 = f32[8]{{0}} select(%ne.1, %p, %zeros){named("mul", frame=1)}
  %convert_element_type.1 = f32[8]{{0}} convert(%ne.1){named("convert_element_type", frame=kept)}
  %select.2 = f32[8]{{0}} select(%ne.1, %q, %zeros){named("mul", frame=1)}
  ROOT %tuple = (pred[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}})\
 tuple(%ne.1, %select.1, %select.2, %convert_element_type.1)"""
    assert users_of("ne.1", body) == users


@pytest.mark.parametrize(
    ("made", "users"),
    [
        (
            "p zero q sin.1 spread.1 r.1 neg.1 broadcast.1 reduce.2 reduce.3 mul.1 broadcast.2",
            ["reduce.3", "spread.1", "neg.1", "reduce.2", "mul.1"],
        ),
        (
            "p zero q sin.1 spread.1 r.1 neg.1 broadcast.1 mul.1 broadcast.2 reduce.2 reduce.3",
            ["reduce.3", "spread.1", "neg.1", "mul.1", "reduce.2"],
        ),
    ],
    ids=["made in a later round", "made in the same"],
)
def test_what_is_sunk_beneath_a_broadcast_comes_before_what_reduces_it(made: str, users: list[str]) -> None:
    """`y = broadcast_to(x[None], (4, 8))`, of which the largest is taken, too, and `y * q` for a scalar."""
    place = named("broadcast_in_dim", frame=1)
    tables = places_in_source(("f", 1, 10, 80), ("f", 1, 20, 27), ("f", 2, 1, 9))
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %q = f32[8]{{0}} parameter(1)
  %sin.1 = f32[8]{{0}} sine(%p){named("sin")}
  %neg.1 = f32[8]{{0}} negate(%sin.1){named("neg", frame=3)}
  %reduce.2 = f32[] reduce(%sin.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_max", frame=3)}
  %reduce.3 = f32[] reduce(%sin.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=3)}
  %mul.1 = f32[8]{{0}} multiply(%sin.1, %q){named("mul", frame=3)}
  %spread.1 = f32[4,8]{{1,0}} broadcast(%sin.1), dimensions={{1}}{place}
  %broadcast.1 = f32[4,8]{{1,0}} broadcast(%neg.1), dimensions={{1}}{place}
  %broadcast.2 = f32[4,8]{{1,0}} broadcast(%mul.1), dimensions={{1}}{place}
  ROOT %r.1 = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}, f32[4,8]{{1,0}}, f32[], f32[]) \
tuple(%spread.1, %broadcast.1, %broadcast.2, %reduce.2, %reduce.3)"""
    assert users_of("sin.1", body, ids=made, tables=tables) == users


@pytest.mark.parametrize(
    ("within", "users"), [(20, ["broadcast.2", "spread.1"]), (90, ["spread.1", "broadcast.2"])]
)
def test_a_transpose_of_what_was_broadcast_takes_the_place_of_its_reshape(
    within: int, users: list[str]
) -> None:
    """`y @ y.T` of `y = broadcast_to(x[None], (4, 8))`: the transpose became a broadcast of `x` as well."""
    tables = places_in_source(("f", 1, 10, 80), ("f", 1, within, within + 7), ("f", 2, 1, 9))
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %sin.1 = f32[8]{{0}} sine(%p){named("sin")}
  %spread.1 = f32[4,8]{{1,0}} broadcast(%sin.1), dimensions={{1}}{named("broadcast_in_dim", frame=1)}
  %broadcast.2 = f32[8,4]{{1,0}} broadcast(%sin.1), dimensions={{0}}{named("transpose", frame=3)}
  ROOT %dot.1 = f32[4,4]{{1,0}} dot(%spread.1, %broadcast.2), lhs_contracting_dims={{1}}, \
rhs_contracting_dims={{0}}{named("dot_general", frame=3)}"""
    assert users_of("sin.1", body, tables=tables) == users
    assert users_as_guessed("sin.1", body, tables=tables) == users


@pytest.mark.parametrize(
    ("met", "made", "users"),
    [
        ("TNS", "spread.1 mul.1 r.1 neg.1 broadcast.3 broadcast.2", ["neg.1", "broadcast.2", "spread.1"]),
        ("NST", "spread.1 mul.1 r.1 neg.1 broadcast.3 broadcast.2", ["broadcast.2", "spread.1", "neg.1"]),
        ("SNT", "mul.1 r.1 neg.1 broadcast.3 broadcast.2 spread.1", ["neg.1", "spread.1", "broadcast.2"]),
    ],
    ids=["met first", "met behind what was sunk", "beneath a broadcast made anew"],
)
def test_a_transpose_of_what_was_broadcast_comes_behind_unless_met_first(
    met: str, made: str, users: list[str]
) -> None:
    """`y.T * q`, `-y` and `y` of `y = broadcast_to(x[None], (4, 8))`, in the order in which they are met."""
    place, turned = named("broadcast_in_dim", frame=1), named("transpose", frame=3)
    tables = places_in_source(("f", 1, 10, 80), ("f", 1, 20, 27), ("f", 2, 1, 9))
    lines = {
        "T": f"""  %broadcast.2 = f32[8,4]{{1,0}} broadcast(%sin.1), dimensions={{0}}{turned}
  %mul.1 = f32[8,4]{{1,0}} multiply(%broadcast.2, %q){named("mul", frame=3)}""",
        "N": f"""  %neg.1 = f32[8]{{0}} negate(%sin.1){named("neg", frame=3)}
  %broadcast.3 = f32[4,8]{{1,0}} broadcast(%neg.1), dimensions={{1}}{place}""",
        "S": f"  %spread.1 = f32[4,8]{{1,0}} broadcast(%sin.1), dimensions={{1}}{place}",
    }
    between = "\n".join(lines[x] for x in met)
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8,4]{{1,0}} parameter(1)
  %sin.1 = f32[8]{{0}} sine(%p){named("sin")}
{between}
  ROOT %r.1 = (f32[8,4]{{1,0}}, f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(%mul.1, %broadcast.3, %spread.1)"""
    assert users_of("sin.1", body, ids=f"p q sin.1 {made}", tables=tables) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [(1, ["broadcast.2", "mul.1", "mul.2"]), (2, ["mul.2", "broadcast.2", "mul.1"])],
    ids=["sunk beneath the same broadcast", "moved by ReshapeMover"],
)
def test_what_was_sunk_is_read_by_its_own_broadcast_first(frame: int, users: list[str]) -> None:
    """`y = x * c` and `y * d`, `y * e` for what was broadcast: all are made anew in front of broadcasts."""
    place = named("broadcast_in_dim", frame=1)
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(3)
  %spread.1 = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %mul.0 = f32[8]{{0}} multiply(%p, %spread.1){named("mul")}
  %mul.1 = f32[8]{{0}} multiply(%mul.0, %spread.1){named("mul")}
  %broadcast.3 = f32[4,8]{{1,0}} broadcast(%mul.1), dimensions={{1}}{place}
  %mul.2 = f32[8]{{0}} multiply(%mul.0, %spread.1){named("mul")}
  %broadcast.4 = f32[4,8]{{1,0}} broadcast(%mul.2), dimensions={{1}}{place}
  %broadcast.2 = f32[4,8]{{1,0}} broadcast(%mul.0), dimensions={{1}}{named("broadcast_in_dim", frame=frame)}
  ROOT %r.1 = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) \
tuple(%broadcast.2, %broadcast.3, %broadcast.4)"""
    made = "p c spread.1 r.1 mul.0 broadcast.2 mul.1 broadcast.3 mul.2 broadcast.4"
    assert users_of("mul.0", body, ids=made) == users


@pytest.mark.parametrize(
    ("frame", "name", "users"),
    [
        (1, "convert.1", ["max.1", "sum.1"]),
        (2, "convert.1", ["sum.1", "max.1"]),
        (1, "convert_element_type.2", ["sum.1", "max.1"]),
    ],
    ids=["narrow", "in single precision", "of a convert of the program"],
)
def test_a_sum_of_what_is_narrow_read_a_convert_to_single_precision_too(
    frame: int, name: str, users: list[str]
) -> None:
    """`x.astype(bfloat16)` of f64: what sums that has a convert of the program, and so does the largest."""
    body = f"""  %p = f64[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %none = bf16[] constant(-inf)
  %{name} = f32[8]{{0}} convert(%p)
  %convert.2 = f32[] convert(%none)
  %max.1 = f32[] reduce(%{name}, %convert.2), dimensions={{0}}, to_apply=%sum{named("reduce_max")}
  %convert.3 = bf16[] convert(%max.1)
  %sum.1 = f32[] reduce(%{name}, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=1)}
  %convert_element_type.1 = bf16[] convert(%sum.1){named("convert_element_type", frame=frame)}
  ROOT %r.1 = (bf16[], bf16[]) tuple(%convert.3, %convert_element_type.1)"""
    assert users_of(name, body) == users


@pytest.mark.parametrize(
    ("source", "users"), [("convert.1", ["clamp.1", "exp.1"]), ("q", ["max.1", "exp.1", "clamp.1"])]
)
def test_a_clamp_that_reads_what_was_widened_comes_where_the_walk_met_it(
    source: str, users: list[str]
) -> None:
    """CSE made one of the converts of both; what was in single precision sees the clamp behind all others."""
    inner = (
        "" if source == "convert.1" else '  %max.1 = f32[8]{0} maximum(%low, %q), metadata={op_name="max"}\n'
    )
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %low = f32[8]{{0}} parameter(1)
  %high = f32[8]{{0}} parameter(2)
  %q = f32[8]{{0}} parameter(3)
  %convert.1 = f32[8]{{0}} convert(%p)
  %clamp.1 = f32[8]{{0}} clamp(%low, %{source}, %high){named("min")}
{inner}  %exp.1 = f32[8]{{0}} exponential(%{source}){named("exp")}
  ROOT %r.1 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%clamp.1, %exp.1)"""
    assert users_of(source, body) == users


@pytest.mark.parametrize(
    ("first", "users"),
    [
        ("bits", ["add.5", "and.2", "select.3", "select.4", "and.1"]),
        ("q", ["and.2", "select.3", "add.5", "select.4"]),
    ],
    ids=["of equal numbers", "of others"],
)
def test_the_bits_of_what_nextafter_is_given_twice_are_one(first: str, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %t = pred[8]{{0}} parameter(2)
  %bits = s32[8]{{0}} bitcast(%p){named("nextafter")}
  %and.1 = s32[8]{{0}} and(%{first}, %q){named("nextafter")}
  %and.2 = s32[8]{{0}} and(%bits, %q){named("nextafter")}
  %select.3 = s32[8]{{0}} select(%t, %bits, %and.2){named("nextafter")}
  %add.5 = s32[8]{{0}} add(%bits, %and.1){named("nextafter")}
  %select.4 = s32[8]{{0}} select(%t, %bits, %add.5){named("nextafter")}
  ROOT %r.1 = (s32[8]{{0}}, s32[8]{{0}}) tuple(%select.3, %select.4)"""
    assert users_of("bits", body) == users


@pytest.mark.parametrize(
    ("name", "users"), [("select_n", ["mul.2", "select_n.3"]), ("rem", ["select_n.3", "mul.2"])]
)
def test_a_result_that_the_call_ahead_was_like_has_no_tuple(name: str, users: list[str]) -> None:
    """`y = where(bits, y * x, y)`, in several turns of a loop in Python: each call has a single result."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %t = pred[8]{{0}} parameter(1)
  %ne.1 = f32[8]{{0}} negate(%p){named("jit(_where)/neg")}
  %{name}.1 = f32[8]{{0}} select(%t, %p, %ne.1){named(f"jit(_where)/{name}")}
  %mul.1 = f32[8]{{0}} multiply(%{name}.1, %p){named("mul")}
  %select_n.2 = f32[8]{{0}} select(%t, %mul.1, %{name}.1){named("jit(_where)/select_n")}
  %mul.2 = f32[8]{{0}} multiply(%select_n.2, %p){named("mul")}
  %select_n.3 = f32[8]{{0}} select(%t, %mul.2, %select_n.2){named("jit(_where)/select_n")}
  ROOT %r.1 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%select_n.3, %mul.1)"""
    assert users_of("select_n.2", body) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("scatter-add", ["neg.1", "put.1", "slice.1"]), ("add", ["slice.1", "neg.1", "put.1"])],
)
def test_what_is_taken_out_to_be_added_to_comes_last_in_whichever_precision(
    name: str, users: list[str]
) -> None:
    """`x.at[1:].add(y)`: the window is widened, and what it becomes made narrow."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %q = f32[7]{{0}} parameter(1)
  %one = s32[] constant(1)
  %slice.1 = bf16[7]{{0}} slice(%p), slice={{[1:8]}}
  %convert.1 = f32[7]{{0}} convert(%slice.1)
  %add.1 = f32[7]{{0}} add(%convert.1, %q){named("scatter-add")}
  %convert.2 = bf16[7]{{0}} convert(%add.1)
  %neg.1 = bf16[8]{{0}} negate(%p){named("neg")}
  %put.1 = bf16[8]{{0}} dynamic-update-slice(%p, %convert.2, %one){named(name)}
  ROOT %r.1 = (bf16[8]{{0}}, bf16[8]{{0}}) tuple(%neg.1, %put.1)"""
    assert users_of("p", body) == users


@pytest.mark.parametrize(
    ("kind", "users"),
    [
        ("bitcast", ["mul.1", "add.1", "max.1", "sum.1"]),
        ("negate", ["max.1", "add.1", "sum.1", "mul.1"]),
    ],
)
def test_what_reads_a_reshape_takes_the_place_of_reductions_of_it(kind: str, users: list[str]) -> None:
    """`y = x.reshape(32)`, then `y * (y + max(y)) * sum(y)`: reductions read `x` for a while."""
    shape = "8,4]{1,0}" if kind == "bitcast" else "32]{0}"
    body = f"""  %p = f32[{shape} parameter(0)
  %zero = f32[] constant(0)
  %sin.1 = f32[{shape} sine(%p){named("sin")}
  %y.1 = f32[32]{{0}} {kind}(%sin.1){named("sin")}
  %max.1 = f32[] reduce(%y.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_max")}
  %spread.1 = f32[32]{{0}} broadcast(%max.1), dimensions={{}}{named("add")}
  %add.1 = f32[32]{{0}} add(%y.1, %spread.1){named("add")}
  %sum.1 = f32[] reduce(%y.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %spread.2 = f32[32]{{0}} broadcast(%sum.1), dimensions={{}}{named("mul")}
  %mul.0 = f32[32]{{0}} multiply(%add.1, %spread.2){named("mul")}
  ROOT %mul.1 = f32[32]{{0}} multiply(%y.1, %mul.0){named("mul")}"""
    assert users_of("y.1", body) == users


@pytest.mark.parametrize(
    ("given_back", "users"),
    [("bitcast.1", ["exp.1", "neg.1", "bitcast.1"]), ("sin.1", ["bitcast.1", "neg.1", "exp.1"])],
    ids=["reshaped by the program", "read in the function"],
)
def test_a_reshape_that_the_program_gives_back_is_of_no_function(given_back: str, users: list[str]) -> None:
    """`y = clip(x)` and `y.reshape(32)`: the bitcast bears the name of what was reshaped."""
    read = f"  %sin.1 = f32[32]{{0}} sine(%bitcast.1){named('jit(clip)/sin')}\n"
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %clamp.1 = f32[8,4]{{1,0}} negate(%p){named("jit(clip)/min")}
  %exp.1 = f32[8,4]{{1,0}} exponential(%clamp.1){named("exp")}
  %neg.1 = f32[8,4]{{1,0}} negate(%clamp.1){named("neg")}
  %bitcast.1 = f32[32]{{0}} bitcast(%clamp.1){named("jit(clip)/min")}
{read if given_back == "sin.1" else ""}  ROOT %r = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}, f32[32]{{0}}) \
tuple(%exp.1, %neg.1, %{given_back})"""
    assert users_of("clamp.1", body) == users


@pytest.mark.parametrize(
    ("name", "users"), [("select_n", ["slice.1", "clamp.1"]), ("clamp", ["clamp.1", "slice.1"])]
)
def test_what_bounds_the_start_of_a_window_in_a_window_comes_behind_both(name: str, users: list[str]) -> None:
    """`x[i:][j:]` with numbers for sizes: the places are added when each is known to be within."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = s32[] parameter(1)
  %none = s32[] constant(0)
  %most = s32[] constant(4)
  %select_n.1 = s32[] negate(%q){named("select_n")}
  %clamp.1 = s32[] clamp(%none, %select_n.1, %most){named(name)}
  %add.1 = s32[] add(%clamp.1, %q)
  %slice.2 = f32[2]{{0}} dynamic-slice(%p, %add.1), dynamic_slice_sizes={{2}}{named("dynamic_slice")}
  %slice.1 = f32[4]{{0}} dynamic-slice(%p, %select_n.1), dynamic_slice_sizes={{4}}{named("dynamic_slice")}
  ROOT %r = (f32[2]{{0}}, f32[4]{{0}}) tuple(%slice.2, %slice.1)"""
    assert users_of("select_n.1", body) == users


@pytest.mark.parametrize(
    ("first", "users"), [("convert.6", ["convert.9", "reduce.1"]), ("lowest", ["reduce.1", "convert.9"])]
)
def test_a_reduction_of_several_values_was_narrow_where_it_starts_at_a_narrow_number(
    first: str, users: list[str]
) -> None:
    """`argmax(x + x)` of what is narrow: the initial values come behind both arrays."""
    head = """%larger (a: f32[], b: s32[], c: f32[], d: s32[]) -> (f32[], s32[]) {
  %a = f32[] parameter(0)
  %b = s32[] parameter(1)
  %c = f32[] parameter(2)
  %d = s32[] parameter(3)
  ROOT %t = (f32[], s32[]) tuple(%a, %b)
}"""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %iota.1 = s32[8]{{0}} iota(), iota_dimension=0
  %zero = s32[] constant(0)
  %none = bf16[] constant(-inf)
  %lowest = f32[] constant(-inf)
  %convert.1 = f32[8]{{0}} convert(%p)
  %convert.6 = f32[] convert(%none)
  %add.1 = f32[8]{{0}} add(%convert.1, %convert.1){named("add")}
  %reduce.1 = (f32[], s32[]) reduce(%add.1, %iota.1, %{first}, %zero), dimensions={{0}}, \
to_apply=%larger{named("argmax")}
  %place.1 = s32[] get-tuple-element(%reduce.1), index=1
  %convert.9 = bf16[8]{{0}} convert(%add.1)
  ROOT %r = (bf16[8]{{0}}, s32[]) tuple(%convert.9, %place.1)"""
    assert users_of("add.1", body, head=head) == users


@pytest.mark.parametrize(
    ("kind", "users"), [("f16", ["convert.2", "half.1"]), ("f64", ["half.1", "convert.2"])]
)
def test_a_convert_to_half_precision_comes_behind_the_convert_back(kind: str, users: list[str]) -> None:
    """`y = (x + x)` of bfloat16, `y.astype(float16)`: the pair of converts became one, made anew."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %convert.1 = f32[8]{{0}} convert(%p)
  %add.1 = f32[8]{{0}} add(%convert.1, %convert.1){named("add")}
  %half.1 = {kind}[8]{{0}} convert(%add.1){named("convert_element_type")}
  %convert.2 = bf16[8]{{0}} convert(%add.1)
  ROOT %r = (bf16[8]{{0}}, {kind}[8]{{0}}) tuple(%convert.2, %half.1)"""
    assert users_of("add.1", body) == users


@pytest.mark.parametrize(
    ("number", "frame", "users"),
    [
        (15, 2, ["reduce_max.14.0", "bitcast.1"]),
        (13, 2, ["bitcast.1", "reduce_max.14.0"]),
        (15, 1, ["bitcast.1", "reduce_max.14.0"]),
    ],
    ids=["of the maxima", "ahead of them", "in one place"],
)
def test_the_maximum_of_maxima_came_to_read_what_they_are_of(
    number: int, frame: int, users: list[str]
) -> None:
    """`max(m) + m` of `m = max(x, 1)`; the outer one was grouped, and split in two."""
    last, inner = f"reduce_max.{number}.0", named("reduce_max", frame=1)
    body = f"""  %p = f32[200,130]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[130,200]{{1,0}} bitcast(%p)
  %reduce.1 = f32[130]{{0}} reduce(%bitcast.1, %zero), dimensions={{1}}, to_apply=%sum
  %{last} = f32[] reduce(%reduce.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_max", frame=frame)}
  %add.1 = f32[200]{{0}} broadcast(%{last}), dimensions={{}}{named("add", frame=frame)}
  %reduce_max.14.0 = f32[200]{{0}} reduce(%p, %zero), dimensions={{1}}, to_apply=%sum{inner}
  ROOT %add.2 = f32[200]{{0}} add(%add.1, %reduce_max.14.0){named("add", frame=frame)}"""
    assert users_of("p", body) == users


@pytest.mark.parametrize(
    ("behind", "users", "readers"),
    [
        ("1:8", ["slice.1", "convert.1"], ["sub.1", "exp.1"]),
        ("0:7", ["convert.1", "slice.1"], ["exp.1", "sub.1"]),
    ],
    ids=["the same part", "another part"],
)
def test_a_whole_that_was_converted_behind_a_slice(behind: str, users: list[str], readers: list[str]) -> None:
    """`y = x[1:]; w = f32(y); exp(w), w - y`: each converts the slice, SliceSinker the whole instead."""
    tables = places_in_source(("f", 1, 10, 20), ("f", 1, 30, 40))
    body = f"""  %x = s32[8]{{0}} parameter(0)
  %convert.1 = f32[8]{{0}} convert(%x){named("convert_element_type", frame=1)}
  %slice.2 = f32[7]{{0}} slice(%convert.1), slice={{[{behind}]}}{named("slice")}
  %exp.1 = f32[7]{{0}} exponential(%slice.2){named("exp", frame=2)}
  %sub.1 = f32[7]{{0}} subtract(%slice.2, %exp.1){named("sub", frame=1)}
  %slice.1 = s32[7]{{0}} slice(%x), slice={{[1:8]}}{named("slice")}
  ROOT %r = (f32[7]{{0}}, s32[7]{{0}}) tuple(%sub.1, %slice.1)"""
    ids = "x slice.1 exp.1 sub.1 r convert.1 slice.2"
    assert users_of("x", body, tables=tables, ids=ids) == users
    for ids_known in (True, False):
        assert users_of("slice.2", body, tables=tables, ids=ids, ids_known=ids_known) == readers


@pytest.mark.parametrize(
    ("kind", "users"), [("s64", ["reduce.1", "reduce.2"]), ("f32", ["reduce.2", "reduce.1"])]
)
def test_indices_in_reductions_were_never_narrowed(kind: str, users: list[str]) -> None:
    """Two searches for the largest of narrow values count places in one iota."""
    head = f"""
%larger (a: f32[], i: {kind}[], b: f32[], j: {kind}[]) -> (f32[], {kind}[]) {{
  %a = f32[] parameter(0)
  %i = {kind}[] parameter(1)
  %b = f32[] parameter(2)
  %j = {kind}[] parameter(3)
  %m = f32[] maximum(%a, %b)
  ROOT %r = (f32[], {kind}[]) tuple(%m, %i)
}}
"""
    body = f"""  %p = bf16[8,16]{{1,0}} parameter(0)
  %k = bf16[] parameter(1)
  %q = {kind}[128]{{0}} parameter(2)
  %zero = {kind}[] constant(0)
  %least = f32[] convert(%k)
  %bitcast.1 = {kind}[8,16]{{1,0}} bitcast(%q){named("iota")}
  %convert.1 = f32[8,16]{{1,0}} convert(%p)
  %reduce.1 = (f32[8]{{0}}, {kind}[8]{{0}}) reduce(%convert.1, %bitcast.1, %least, %zero), dimensions={{1}},\
 to_apply=%larger{named("reduce")}
  %neg.1 = bf16[8,16]{{1,0}} negate(%p){named("neg")}
  %convert.2 = f32[8,16]{{1,0}} convert(%neg.1)
  %reduce.2 = (f32[8]{{0}}, {kind}[8]{{0}}) reduce(%convert.2, %bitcast.1, %least, %zero), dimensions={{1}},\
 to_apply=%larger{named("reduce")}
  ROOT %t = ((f32[8]{{0}}, {kind}[8]{{0}}), (f32[8]{{0}}, {kind}[8]{{0}})) tuple(%reduce.1, %reduce.2)"""
    assert users_of("bitcast.1", body, head=head) == users


@pytest.mark.parametrize(
    ("later", "users"),
    [("reduce", ["sin.1", "reduce.1"]), ("reduce_max", ["reduce.1", "sin.1"])],
)
def test_what_a_reduction_was_split_for_is_behind_what_the_walk_met_first(
    later: str, users: list[str]
) -> None:
    """The program had the same bitcast already. One reduction after the other it had itself."""
    body = f"""  %p = f32[128]{{0}} parameter(0)
  %least = f32[] constant(-inf)
  %bitcast.1 = f32[8,16]{{1,0}} bitcast(%p){named("tile")}
  %reduce.1 = f32[8]{{0}} reduce(%bitcast.1, %least), dimensions={{1}}, to_apply=%sum{named("reduce")}
  %reduce.2 = f32[] reduce(%reduce.1, %least), dimensions={{0}}, to_apply=%sum{named(later)}
  %sin.1 = f32[8,16]{{1,0}} sine(%bitcast.1){named("sin")}
  ROOT %t = (f32[8,16]{{1,0}}, f32[]) tuple(%sin.1, %reduce.2)"""
    assert users_of("bitcast.1", body) == users


def test_what_a_reduction_was_split_for_may_be_what_a_product_was_split_for() -> None:
    """The gradient of a bias, and that of weights: passes made the bitcasts of both, and neither is moved."""
    body = f"""  %p = f32[128,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[8,16,4]{{2,1,0}} bitcast(%p){named("mul")}
  %transpose.1 = f32[8,4,16]{{2,1,0}} transpose(%bitcast.1), dimensions={{0,2,1}}
  %reduce.1 = f32[8,4]{{1,0}} reduce(%bitcast.1, %zero), dimensions={{1}}, to_apply=%sum{named("reduce")}
  %reduce.2 = f32[4]{{0}} reduce(%reduce.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce")}
  ROOT %t = (f32[4]{{0}}, f32[8,4,16]{{2,1,0}}) tuple(%reduce.2, %transpose.1)"""
    assert users_of("bitcast.1", body) == ["transpose.1", "reduce.1"]
