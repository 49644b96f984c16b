"""Values that CSE made one: whose users come first, and what goes from among them then."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_HERE, _ELSEWHERE = 1, 5
_PLACES = places_in_source(*4 * [("f", 2, 12, 20)], ("f", 3, 12, 20))


# ---------------------------------------------------------------- indices


def _gather(name: str, place: str) -> str:
    attributes = "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1"
    return f"%{name} = f32[8,1,4]{{2,1,0}} gather(%q, %i), {attributes}, slice_sizes={{1,4}}{place}"


def _scatter(name: str, updates: str, place: str) -> str:
    attributes = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}"
    head = f"%{name} = f32[9,4]{{1,0}} scatter(%q, %i, %{updates})"
    return f"{head}, {attributes}, index_vector_dim=1, to_apply=%sum{place}"


@pytest.mark.parametrize(
    ("shape", "place", "users"),
    [
        ("2,4]{1,0}", _HERE, ["scatter.1", "gather.1"]),
        ("8]{0}", _HERE, ["gather.1", "scatter.1"]),
        ("8]{0}", _ELSEWHERE, ["scatter.1", "gather.1"]),
    ],
)
def test_the_walk_meets_the_indices_of_a_scatter_before_its_updates(
    shape: str, place: int, users: list[str]
) -> None:
    """Each reader had some of its own if they were flattened; else what is written in one place shared."""
    body = f"""  %p = s32[{shape} parameter(0)
  %q = f32[9,4]{{1,0}} parameter(1)
  %x = s32[{shape} negate(%p){named("neg")}
  %i = s32[8,1]{{1,0}} bitcast(%x){named("neg")}
  {_gather("gather.1", named("jvp()/gather", frame=_HERE))}
  {_scatter("scatter.1", "gather.1", named("transpose(jvp())/scatter-add", frame=place))}
  ROOT %r = (f32[9,4]{{1,0}}) tuple(%scatter.1)"""
    assert users_of("i", body, tables=_PLACES) == users


@pytest.mark.parametrize(
    ("operation", "users"),
    [("transpose", ["gather.1", "scatter.1"]), ("scatter-add", ["scatter.1", "gather.1"])],
)
def test_a_scatter_that_bears_another_name_is_of_what_has_its_size(operation: str, users: list[str]) -> None:
    """It was made anew when a transpose was moved behind it, with the place of that."""
    name = named(f"transpose(jvp())/{operation}", frame=_ELSEWHERE)
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[9,4]{{1,0}} parameter(1)
  %x = s32[8]{{0}} negate(%p){named("neg")}
  %i = s32[8,1]{{1,0}} bitcast(%x){named("neg")}
  {_gather("gather.1", named("jvp()/gather", frame=_HERE))}
  {_scatter("scatter.1", "gather.1", name)}
  ROOT %r = (f32[9,4]{{1,0}}) tuple(%scatter.1)"""
    assert users_of("i", body, tables=_PLACES) == users


def test_what_compares_indices_with_their_bounds_goes_with_the_indices() -> None:
    """The derivative of each scatter compared the indices of that with the bounds."""
    forward, derivative = "jvp()/scatter-add", "transpose(jvp())"
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[9,4]{{1,0}} parameter(1)
  %u = f32[8,1,4]{{2,1,0}} parameter(2)
  %i = s32[8,1]{{1,0}} bitcast(%p)
  {_scatter("scatter.1", "u", named(forward, frame=1))}
  {_scatter("scatter.2", "u", named(forward, frame=2))}
  {_gather("gather.2", named(f"{derivative}/gather", frame=3))}
  {_gather("gather.1", named(f"{derivative}/gather", frame=4))}
  %ge.1 = pred[8,1]{{1,0}} compare(%i, %i), direction=GE{named(f"{derivative}/ge", frame=4)}
  %le.1 = pred[8,1]{{1,0}} compare(%i, %i), direction=LE{named(f"{derivative}/le", frame=4)}
  %both.1 = pred[8,1]{{1,0}} and(%ge.1, %le.1){named(f"{derivative}/and", frame=4)}
  ROOT %r = (pred[8,1]{{1,0}}, f32[9,4]{{1,0}}, f32[9,4]{{1,0}}, f32[8,1,4]{{2,1,0}}, f32[8,1,4]{{2,1,0}})\
 tuple(%both.1, %scatter.1, %scatter.2, %gather.2, %gather.1)"""
    first = ["scatter.1", "gather.1", "ge.1", "le.1"]
    assert users_of("i", body, tables=_PLACES) == [*first, "gather.2", "scatter.2"]


def test_a_scatter_goes_with_the_gather_it_is_the_derivative_of_whose_layout_is_another() -> None:
    """Convolutions want dimensions in another order; in a text the scatter may come first."""
    forward = named("jvp()/gather", frame=_HERE)
    derivative = named("transpose(jvp())/scatter-add", frame=_HERE)
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[9,4]{{1,0}} parameter(1)
  %o = f32[4,9]{{1,0}} parameter(2)
  %u = f32[4,8,1]{{2,1,0}} parameter(3)
  %x = s32[8]{{0}} negate(%p){named("neg")}
  %i = s32[8,1]{{1,0}} bitcast(%x){named("neg")}
  %scatter.1 = f32[4,9]{{1,0}} scatter(%o, %i, %u), update_window_dims={{0,2}}, inserted_window_dims={{}}, \
scatter_dims_to_operand_dims={{1}}, index_vector_dim=1, to_apply=%sum{derivative}
  {_gather("gather.1", forward)}
  ROOT %r = (f32[4,9]{{1,0}}, f32[8,1,4]{{2,1,0}}) tuple(%scatter.1, %gather.1)"""
    assert users_of("i", body, tables=_PLACES) == ["gather.1", "scatter.1"]


def test_the_derivative_of_a_merged_gather_comes_where_its_indices_were() -> None:
    """Two layers; in each, CSE made what is gathered again for the messages one with the first gather."""
    forward, derivative = "jvp()/gather", "transpose(jvp())/scatter-add"
    tables = places_in_source(*(("f", line, 12, 20) for line in (2, 3)))
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[9,4]{{1,0}} parameter(1)
  %x = s32[8]{{0}} negate(%p){named("neg")}
  %i = s32[8,1]{{1,0}} bitcast(%x){named("neg")}
  {_gather("gather.1", named(forward, frame=1))}
  %n = f32[8,1,4]{{2,1,0}} negate(%gather.1)
  {_gather("gather.2", named(forward, frame=1))}
  {_scatter("scatter.4", "n", named(derivative, frame=2))}
  {_scatter("scatter.3", "gather.2", named(derivative, frame=1))}
  {_scatter("scatter.2", "n", named(derivative, frame=2))}
  {_scatter("scatter.1", "gather.1", named(derivative, frame=1))}
  ROOT %r = ({", ".join(4 * ["f32[9,4]{1,0}"])}) tuple(%scatter.4, %scatter.3, %scatter.2, %scatter.1)"""
    users = ["gather.1", "scatter.1", "scatter.2", "gather.2", "scatter.3", "scatter.4"]
    assert users_of("i", body, tables=tables) == users


_SUM = named("jvp()/reduce_sum")
_LOSS = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[9,4]{{1,0}} parameter(1)
  %none = f32[] constant(0)
  %i = s32[8,1]{{1,0}} bitcast(%p)
  {_gather("gather.1", named("jvp()/gather", frame=_HERE))}
  {_scatter("scatter.1", "gather.1", named("transpose(jvp())/scatter-add", frame=_ELSEWHERE))}
  %reduce_sum.1 = f32[8]{{0}} reduce(%gather.1, %none), dimensions={{1,2}}, to_apply=%sum{_SUM}
  %reduce_sum.2 = f32[] reduce(%reduce_sum.1, %none), dimensions={{0}}, to_apply=%sum{_SUM}
  %NAME.1 = f32[] negate(%reduce_sum.2){named("jvp()/neg")}
  ROOT %r = (f32[9,4]{{1,0}}, f32[]) tuple(%scatter.1, %NAME.1)"""


@pytest.mark.parametrize(
    ("name", "users"), [("negate", ["gather.1", "scatter.1"]), ("neg", ["scatter.1", "gather.1"])]
)
def test_a_walk_starts_from_what_was_negated_before_it_was_summed(name: str, users: list[str]) -> None:
    """The loss, a number, is the sum of what was negated; that is dead and still there."""
    ids = f"p q none gather.1 scatter.1 reduce_sum.1 reduce_sum.2 r {name}.1 i"
    assert users_of("i", _LOSS.replace("NAME", name), ids=ids, tables=_PLACES) == users


# ---------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("read", "users"),
    [
        ("mean.1", ["less.1", "scaled.1", "total.1", "last.1"]),
        ("q", ["less.1", "scaled.1", "last.1", "total.1"]),
    ],
)
def test_the_sum_of_a_function_takes_the_place_of_the_like_outside(read: str, users: list[str]) -> None:
    """The variance sums what it is given, the mean that is read outside summed it as well."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %none = f32[] constant(0)
  %x.1 = f32[8,4]{{1,0}} negate(%p){named("x")}
  %total.1 = f32[8]{{0}} reduce(%x.1, %none), dimensions={{1}}, to_apply=%sum{named("jit(var)/total")}
  %mean.1 = f32[8]{{0}} negate(%total.1){named("jit(var)/mean")}
  %means.1 = f32[8,4]{{1,0}} broadcast(%mean.1), dimensions={{0}}{named("jit(var)/means")}
  %less.1 = f32[8,4]{{1,0}} subtract(%x.1, %means.1){named("jit(var)/less")}
  %scaled.1 = f32[8,4]{{1,0}} multiply(%x.1, %less.1){named("scaled")}
  %shift.1 = f32[8]{{0}} sine(%{read}){named("shift")}
  %last.1 = f32[8,4]{{1,0}} multiply(%x.1, %scaled.1){named("last")}
  ROOT %tuple.2 = (f32[8,4]{{1,0}}, f32[8]{{0}}, f32[8,4]{{1,0}}) tuple(%scaled.1, %shift.1, %last.1)"""
    ids = "p q none x.1 scaled.1 shift.1 last.1 tuple.2 total.1 mean.1 means.1 less.1"
    assert users_of("x.1", body, ids=ids) == users


@pytest.mark.parametrize("around", ["", "while/body/eval_jaxpr/"])
@pytest.mark.parametrize(
    ("second", "users"),
    [
        ("jit(remainder)", ["ne.1", "lt.1", "choice.1", "add.1"]),
        ("jit(floor_divide)", ["ne.1", "lt.1", "add.1", "choice.1"]),
    ],
)
def test_a_quotient_and_a_remainder_are_two_functions_with_one_remainder(
    around: str, second: str, users: list[str]
) -> None:
    """Both compared it with zero; where the second comparison had been the last user stands."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %rem.1 = s32[8]{{0}} remainder(%p, %q){named(f"{around}jit(floor_divide)/rem")}
  %ne.1 = pred[8]{{0}} compare(%rem.1, %q), direction=NE{named(f"{around}jit(floor_divide)/ne")}
  %quotient.1 = s32[8]{{0}} select(%ne.1, %p, %q){named(f"{around}jit(floor_divide)/select_n")}
  %lt.1 = pred[8]{{0}} compare(%rem.1, %q), direction=LT{named(f"{around}{second}/lt")}
  %and.1 = pred[8]{{0}} and(%lt.1, %ne.1){named(f"{around}{second}/and")}
  %add.1 = s32[8]{{0}} add(%rem.1, %q){named(f"{around}{second}/add")}
  %choice.1 = s32[8]{{0}} select(%and.1, %add.1, %rem.1){named(f"{around}{second}/select_n")}
  %o.1 = s32[8]{{0}} add(%choice.1, %quotient.1){named("o")}
  ROOT %r = (s32[8]{{0}}) tuple(%o.1)"""
    ids = "p q o.1 r rem.1 ne.1 quotient.1 lt.1 and.1 add.1 choice.1"
    assert users_of("rem.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("operation", "users"), [("reduce_window_sum", ["div.1", "rem.1"]), ("add", ["rem.1", "div.1"])]
)
def test_a_running_sum_bears_the_name_of_the_call_that_was_given_it(operation: str, users: list[str]) -> None:
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %sums.1 = s32[8]{{0}} add(%p, %p), metadata={{op_name="{operation}"}}
  %slice.1 = s32[4]{{0}} slice(%sums.1), slice={{[0:4]}}{named("jit(g)/div")}
  %rem.1 = s32[4]{{0}} negate(%slice.1){named("jit(g)/rem")}
  %div.1 = s32[4]{{0}} not(%slice.1){named("jit(g)/div")}
  %o.1 = s32[4]{{0}} add(%rem.1, %div.1){named("o")}
  ROOT %r = (s32[4]{{0}}) tuple(%o.1)"""
    assert users_of("slice.1", body, ids="p o.1 r rem.1 div.1 sums.1 slice.1") == users


# ---------------------------------------------------------------- what gemms took along


_GEMM = """%gemm (p0: f32[8,8], p1: f32[8,8]) -> f32[8,8] {
  %p0 = f32[8,8]{1,0} parameter(0)
  %p1 = f32[8,8]{1,0} parameter(1)
  %c = f32[] constant(0)
  %split = f32[SPLIT]{2,1,0} bitcast(%p0)
  %none = f32[SPLIT]{2,1,0} broadcast(%c), dimensions={}
  %max.9 = f32[SPLIT]{2,1,0} maximum(%split, %none), metadata={op_name="jit(f)/jit(relu)/max"}
  %whole = f32[8,8]{1,0} bitcast(%max.9)
  ROOT %dot = f32[8,8]{1,0} dot(%whole, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize(
    ("split", "users"),
    [
        ("8,2,4", ["gt.1", "choice.2", "choice.1"]),
        ("4,2,8", ["gt.1", "choice.2", "choice.1"]),
        ("4,4,4", ["gt.1", "choice.1", "choice.2"]),
    ],
)
def test_a_gemm_splits_the_constant_that_it_takes_along(split: str, users: list[str]) -> None:
    """Until then all had been users of one constant, which functions had of their own before."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8,8]{{1,0}} broadcast(%zero), dimensions={{}}
  %gt.1 = pred[8,8]{{1,0}} compare(%p, %zeros), direction=GT{named("jit(relu)/gt")}
  %g = f32[8,8]{{1,0}} fusion(%p, %q), kind=kCustom, calls=%gemm
  %choice.1 = f32[8,8]{{1,0}} select(%gt.1, %g, %zeros){named("jit(g)/choice")}
  %choice.2 = f32[8,8]{{1,0}} select(%gt.1, %choice.1, %zeros){named("jit(h)/choice")}
  ROOT %r = (f32[8,8]{{1,0}}) tuple(%choice.2)"""
    assert users_of("zeros", body, head=_GEMM.replace("SPLIT", split)) == users


@pytest.mark.parametrize(
    ("sign", "users"),
    [
        ("lt.1", ["lt.1", "add.1", "select_n.1", "select_n.2", "add.2"]),
        ("lt.2", ["lt.1", "add.1", "select_n.1", "lt.2", "add.2", "select_n.2"]),
    ],
)
def test_the_last_user_of_an_index_takes_the_place_of_its_second_comparison_with_zero(
    sign: str, users: list[str]
) -> None:
    """An index of two dimensions may be negative in each; one comparison was written for each of them."""
    other = "" if sign == "lt.1" else f"  %lt.2 = pred[] compare(%i, %one), direction=LT{named('lt')}\n"
    body = f"""  %p = s32[] parameter(0)
  %zero = s32[] constant(0)
  %one = s32[] constant(1)
  %many = s32[] constant(9)
  %i = s32[] negate(%p){named("neg")}
  %lt.1 = pred[] compare(%i, %zero), direction=LT{named("lt")}
  %add.1 = s32[] add(%i, %one){named("add")}
  %select_n.1 = s32[] select(%lt.1, %add.1, %i){named("select_n")}
{other}  %add.2 = s32[] add(%i, %many){named("add")}
  %select_n.2 = s32[] select(%{sign}, %add.2, %i){named("select_n")}
  ROOT %r = (s32[], s32[]) tuple(%select_n.1, %select_n.2)"""
    assert users_of("i", body) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [
        (5, ["lt.1", "add.1", "select_n.1", "next.1", "add.2"]),
        (6, ["lt.1", "add.1", "select_n.1", "add.2", "next.1"]),
    ],
)
def test_what_uses_an_index_in_another_place_had_normalized_it_there(frame: int, users: list[str]) -> None:
    """The last two users of the index take turns in the places of comparison, sum and select that went."""
    body = f"""  %p = s32[] parameter(0)
  %x = f32[9]{{0}} parameter(1)
  %zero = s32[] constant(0)
  %many = s32[] constant(9)
  %one = s32[] constant(1)
  %i = s32[] negate(%p){named("neg", frame=4)}
  %lt.1 = pred[] compare(%i, %zero), direction=LT{named("lt", frame=5)}
  %add.1 = s32[] add(%i, %many){named("add", frame=5)}
  %select_n.1 = s32[] select(%lt.1, %add.1, %i){named("select_n", frame=5)}
  %read.1 = f32[1]{{0}} dynamic-slice(%x, %select_n.1), dynamic_slice_sizes={{1}}{named("read", frame=frame)}
  %next.1 = s32[] add(%i, %one){named("add", frame=7)}
  %add.2 = s32[] add(%i, %many){named("add", frame=8)}
  ROOT %r = (f32[1]{{0}}, s32[], s32[]) tuple(%read.1, %next.1, %add.2)"""
    assert users_of("i", body) == users


@pytest.mark.parametrize(
    ("starts", "users"),
    [
        ("%select_n.1, %select_n.2", ["lt.1", "add.1", "select_n.1", "select_n.2", "add.2"]),
        ("%select_n.1, %select_n.1, %select_n.2", ["lt.1", "add.1", "select_n.1", "add.2", "select_n.2"]),
    ],
)
def test_an_index_was_normalized_for_each_dimension_in_each_place(starts: str, users: list[str]) -> None:
    """What is equal goes as it is met, the last user in its place; the update had all once more."""
    sizes = ",".join("1" for _ in starts.split(", "))
    shape = ",".join("9" for _ in starts.split(", "))
    body = f"""  %p = s32[] parameter(0)
  %x = f32[{shape}] parameter(1)
  %zero = s32[] constant(0)
  %one = s32[] constant(1)
  %many = s32[] constant(9)
  %i = s32[] negate(%p){named("neg", frame=4)}
  %lt.1 = pred[] compare(%i, %zero), direction=LT{named("lt", frame=5)}
  %add.1 = s32[] add(%i, %one){named("add", frame=5)}
  %select_n.1 = s32[] select(%lt.1, %add.1, %i){named("select_n", frame=5)}
  %add.2 = s32[] add(%i, %many){named("add", frame=5)}
  %select_n.2 = s32[] select(%lt.1, %add.2, %i){named("select_n", frame=5)}
  %read.1 = f32[{sizes}] dynamic-slice(%x, {starts}), dynamic_slice_sizes={{{sizes}}}{named("read", frame=5)}
  ROOT %write.1 = f32[{shape}] dynamic-update-slice(%x, %read.1, {starts}){named("write", frame=6)}"""
    assert users_of("i", body) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("jit(relu)/max", ["gt.1", "choice.1", "choice.2"]), ("max", ["gt.1", "choice.2", "choice.1"])],
)
def test_what_a_gemm_took_along_was_of_the_function_that_its_name_tells(name: str, users: list[str]) -> None:
    """That function had the constant once more; its reader came behind those of the program's own."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8,8]{{1,0}} broadcast(%zero), dimensions={{}}
  %gt.1 = pred[8,8]{{1,0}} compare(%p, %zeros), direction=GT{named("gt")}
  %g = f32[8,8]{{1,0}} fusion(%p, %q), kind=kCustom, calls=%gemm
  %choice.1 = f32[8,8]{{1,0}} select(%gt.1, %g, %zeros){named("choice")}
  %choice.2 = f32[8,8]{{1,0}} select(%gt.1, %choice.1, %zeros){named("choice")}
  ROOT %r = (f32[8,8]{{1,0}}) tuple(%choice.2)"""
    head = _GEMM.replace("SPLIT", "8,2,4").replace("jit(relu)/max", name)
    assert users_of("zeros", body, head=head) == users


@pytest.mark.parametrize(
    ("between", "users"),
    [("-", ["gt.1", "first.1", "second.1"]), ("- -", ["gt.1", "second.1", "first.1"])],
)
def test_readers_made_close_together_are_of_one_call(between: str, users: list[str]) -> None:
    """A call brings the constant and its broadcast along, so that two in between are gone at least."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %gt.1 = pred[8]{{0}} compare(%p, %zeros), direction=GT{named("gt")}
  %second.1 = f32[8]{{0}} select(%gt.1, %p, %zeros){named("transpose(jvp())/jit(_where)/select_n")}
  %first.1 = f32[8]{{0}} select(%gt.1, %zeros, %p){named("transpose(jvp())/jit(_where)/select_n")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%second.1, %first.1)"""
    ids = f"p zero zeros gt.1 r - - first.1 {between} second.1"
    assert users_of("zeros", body, ids=ids) == users


# ---------------------------------------------------------------- expressions


@pytest.mark.parametrize(("opcode", "first"), [("complex", "gt.1"), ("add", "add.1")])
def test_a_part_of_a_complex_number_is_read_without_a_twin(opcode: str, first: str) -> None:
    """In `z > 0` for `z = complex(x, 2 * x)` the comparison reads `2 * x`, not another like it."""
    number = f"{'c64' if opcode == 'complex' else 'f32'}[3,2]{{1,0}} {opcode}(%p, %mul.1)"
    body = f"""  %p = f32[3,2]{{1,0}} parameter(0)
  %two = f32[3,2]{{1,0}} parameter(1)
  %mul.1 = f32[3,2]{{1,0}} multiply(%p, %two){named("mul", frame=1)}
  %gt.1 = pred[3,2]{{1,0}} compare(%mul.1, %p), direction=GT{named("gt", frame=2)}
  %{opcode}.1 = {number}{named(opcode, frame=3)}
  ROOT %r = (pred[3,2]{{1,0}}, f32[3,2]{{1,0}}) tuple(%gt.1, %{opcode}.1)"""
    tables = places_in_source(("f", 2, 20, 25), ("f", 3, 12, 20), ("f", 2, 12, 26))
    assert users_of("mul.1", body, tables=tables)[0] == first


@pytest.mark.parametrize(
    ("name", "users"),
    [("broadcast_in_dim", ["product", "integer_pow.1"]), ("mul", ["integer_pow.1", "product"])],
)
def test_a_product_merged_with_a_broadcast_of_the_derivative_has_no_twin(name: str, users: list[str]) -> None:
    """`2 * x * broadcast(d)` became `x * broadcast(2 * d)`, and bears the place of the broadcast."""
    op_name = f"transpose(jvp())/mul;jit(f)/transpose(jvp())/{name}"
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %two = f32[4]{{0}} parameter(1)
  %sub.1 = f32[4]{{0}} subtract(%p, %two){named("jvp()/sub", frame=1)}
  %{name}.3 = f32[4]{{0}} multiply(%sub.1, %two){named(op_name, frame=3)}
  %integer_pow.1 = f32[4]{{0}} multiply(%sub.1, %sub.1){named("jvp()/integer_pow", frame=2)}
  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}) tuple(%{name}.3, %integer_pow.1)"""
    tables = places_in_source(("f", 2, 20, 25), ("f", 2, 12, 30), ("f", 7, 2, 9))
    found = users_of("sub.1", body, tables=tables)
    assert ["product" if u == f"{name}.3" else u for u in found] == users


@pytest.mark.parametrize(("last", "users"), [(5, ["a.2", "a.3"]), (4, ["a.3", "a.2"])])
def test_a_scalar_that_was_computed_for_each_use_went_as_its_broadcasts_did(
    last: int, users: list[str]
) -> None:
    """The numbers of the other scalars are missing."""
    updates = "".join(
        f"""  %p.{k} = f32[{size}]{{0}} parameter({k})
  %mul.{2 * k} = f32[{size}]{{0}} multiply(%p.{k}, %a.{a}){named("mul")}
  %mul.{2 * k + 1} = f32[{size}]{{0}} multiply(%mul.{2 * k}, %b.{a}){named("mul")}
"""
        for k, (a, size) in enumerate([(1, 4), (1, 4), (2, 5), (3, 6)])
    )
    spread = "".join(
        f"""  %a.{a} = f32[{a + 3}]{{0}} broadcast(%decay.1), dimensions={{}}{named("a")}
  %b.{a} = f32[{a + 3}]{{0}} broadcast(%sub.1.0), dimensions={{}}{named("b")}
"""
        for a in (1, 2, 3)
    )
    body = f"""  %x = f32[] parameter(4)
  %one = f32[] constant(1)
  %decay.1 = f32[] negate(%x){named("decay")}
  %sub.1.0 = f32[] subtract(%one, %decay.1){named("sub")}
{spread}{updates}  %sub.{last}.0 = f32[4]{{0}} subtract(%mul.3, %p.0){named("sub")}
  %t = (f32[5]{{0}}, f32[6]{{0}}) tuple(%mul.5, %mul.7)
  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}, (f32[5]{{0}}, f32[6]{{0}})) tuple(%mul.1, %sub.{last}.0, %t)"""
    assert users_of("decay.1", body) == ["a.1", "sub.1.0", *users]


# ---------------------------------------------------------------- constants of calls


@pytest.mark.parametrize(
    ("other", "users"),
    [
        ("jit(uniform)", ["or.1", "add.1", "add.3", "or.3", "add.2", "or.2"]),
        ("jit(split)", ["or.1", "add.1", "add.2", "or.2", "add.3", "or.3"]),
    ],
)
def test_calls_read_a_constant_in_the_order_in_which_the_walk_met_theirs(
    other: str, users: list[str]
) -> None:
    """It is the first call's; within each of them users are as old as the call was walked.

    Calls of one function alone come by age.
    """
    split = "jit(split)"
    body = f"""  %p = u32[8]{{0}} parameter(0)
  %one = u32[] constant(1)
  %ones = u32[8]{{0}} broadcast(%one), dimensions={{}}{named(split, frame=1)}
  %add.1 = u32[8]{{0}} add(%p, %ones){named(f"{split}/add", frame=1)}
  %or.1 = u32[8]{{0}} or(%add.1, %ones){named(f"{split}/or", frame=1)}
  %or.3 = u32[8]{{0}} or(%or.1, %ones){named(f"{other}/or", frame=5)}
  %add.3 = u32[8]{{0}} add(%or.3, %ones){named(f"{other}/add", frame=5)}
  %add.2 = u32[8]{{0}} add(%or.1, %ones){named(f"{split}/add", frame=3)}
  %or.2 = u32[8]{{0}} or(%add.2, %ones){named(f"{split}/or", frame=3)}
  ROOT %r = (u32[8]{{0}}, u32[8]{{0}}) tuple(%add.3, %or.2)"""
    ids = "p r one ones or.1 add.1 - add.2 or.2 add.3 or.3"
    assert users_of("ones", body, ids=ids, tables=_PLACES) == users


@pytest.mark.parametrize(
    ("updates", "users"),
    [("chosen", ["chosen", "scatter", "rest"]), ("other", ["scatter", "chosen", "rest"])],
)
def test_a_scatter_of_what_was_made_of_zeros_shares_them(updates: str, users: list[str]) -> None:
    """One that a pass made has zeros of its own otherwise, and a walk meets these first."""
    attributes = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}"
    body = f"""  %o = f32[9,4]{{1,0}} parameter(0)
  %i = s32[9,1]{{1,0}} parameter(1)
  %other = f32[9,4]{{1,0}} negate(%o){named("neg")}
  %zero = f32[] constant(0)
  %zeros = f32[9,4]{{1,0}} broadcast(%zero), dimensions={{}}
  %gt = pred[9,4]{{1,0}} compare(%o, %other), direction=GT{named("gt")}
  %chosen = f32[9,4]{{1,0}} select(%gt, %o, %zeros){named("select_n")}
  %update = f32[9,1,4]{{2,1,0}} bitcast(%{updates})
  %scatter = f32[9,4]{{1,0}} scatter(%zeros, %i, %update), {attributes}, index_vector_dim=1,\
 to_apply=%sum{named("scatter-add")}
  %rest = f32[9,4]{{1,0}} select(%gt, %scatter, %zeros){named("select_n")}
  ROOT %add = f32[9,4]{{1,0}} add(%rest, %chosen){named("add")}"""
    ids = "o i other zero zeros gt chosen rest add scatter update"
    assert users_of("zeros", body, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p n count.1 small.1 mul.1 mul.2 wide.1 k a.1 b.1 r", ["a.1", "b.1"]),
        ("p n count.1 wide.1 k a.1 b.1 r small.1 mul.1 mul.2", ["b.1", "a.1"]),
    ],
    ids=["of the program", "made anew"],
)
def test_what_is_computed_ahead_of_a_broadcast_since_read_the_number_for_all(
    ids: str, users: list[str]
) -> None:
    """`broadcast(count) * 32` is `broadcast(count * 32)`; its place among the users went to the last."""
    body = f"""  %p = u64[32,32]{{1,0}} parameter(0)
  %n = u64[] constant(32){named("jit(f)")}
  %k = u64[32,32]{{1,0}} parameter(1)
  %count.1 = u64[32]{{0}} iota(), iota_dimension=0
  %wide.1 = u64[32,32]{{1,0}} broadcast(%n), dimensions={{}}{named("jit(f)")}
  %small.1 = u64[32]{{0}} broadcast(%n), dimensions={{}}{named("jit(f)")}
  %mul.1 = u64[32]{{0}} multiply(%count.1, %small.1){named("jit(f)/mul")}
  %mul.2 = u64[32,32]{{1,0}} broadcast(%mul.1), dimensions={{0}}{named("jit(f)/mul")}
  %a.1 = u64[32,32]{{1,0}} subtract(%mul.2, %wide.1){named("jit(f)/a")}
  %b.1 = u64[32,32]{{1,0}} divide(%a.1, %wide.1){named("jit(f)/b")}
  ROOT %r = (u64[32,32]{{1,0}}, u64[32,32]{{1,0}}) tuple(%b.1, %p)"""
    assert users_of("wide.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("kind", "users"),
    [("f16", ["sum.1", "abs.1", "sum.2", "sub.2"]), ("f64", ["sum.1", "sub.2", "abs.1", "sum.2"])],
)
def test_a_function_converts_what_it_is_given_itself(kind: str, users: list[str]) -> None:
    """mean(x) and var(x), of which each is in the precision of `x`: what is given wide is not narrowed."""
    in_call = ("jit(_var)/sum", "jit(_var)/sub", "jit(_var)/convert_element_type")
    total, difference, back = (named(name, frame=2) for name in in_call)
    body = f"""  %p = f16[8,8]{{1,0}} parameter(0)
  %low = f32[] constant(0)
  %convert_element_type.1 = f32[8,8]{{1,0}} convert(%p){named("convert_element_type", frame=1)}
  %sum.1 = f32[8]{{0}} reduce(%convert_element_type.1, %low), dimensions={{1}}, to_apply=%sum{named("sum")}
  %sum.2 = f32[8]{{0}} reduce(%convert_element_type.1, %low), dimensions={{1}}, to_apply=%sum{total}
  %spread.2 = f32[8,8]{{1,0}} broadcast(%sum.2), dimensions={{0}}{difference}
  %sub.2 = f32[8,8]{{1,0}} subtract(%convert_element_type.1, %spread.2){difference}
  %convert_element_type.2 = {kind}[8,8]{{1,0}} convert(%sub.2){back}
  %abs.1 = f32[8,8]{{1,0}} abs(%convert_element_type.1){named("abs")}
  ROOT %r = (f32[8]{{0}}) tuple(%sum.1)"""
    assert users_of("convert_element_type.1", body) == users


@pytest.mark.parametrize(
    ("called_from", "users"), [({3: 2}, ["div.1", "mul.1", "neg.1"]), ({}, ["div.1", "neg.1", "mul.1"])]
)
def test_what_is_called_around_an_expression_is_around_it(
    called_from: dict[int, int], users: list[str]
) -> None:
    body = f"""
  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %add.1 = f32[8]{{0}} add(%x, %y){named("add", frame=1)}
  %div.1 = f32[8]{{0}} divide(%x, %add.1){named("div", frame=2)}
  %mul.1 = f32[8]{{0}} multiply(%add.1, %add.1){named("mul", frame=3)}
  %neg.1 = f32[8]{{0}} negate(%add.1){named("neg", frame=1)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%div.1, %mul.1, %neg.1)
"""
    tables = places_in_source(("f", 2, 41, 46), ("f", 2, 22, 51), ("g", 7, 2, 9), called_from=called_from)
    assert users_of("add.1", body, tables=tables) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [
        (3, ["gather.1", "scatter-add.4", "gather.2", "scatter-add.3"]),
        (5, ["gather.1", "gather.2", "scatter-add.3", "scatter-add.4"]),
    ],
    ids=["all in one place", "in two places"],
)
def test_places_joined_for_each_gather_of_a_tree_are_read_by_its_derivative_too(
    frame: int, users: list[str]
) -> None:
    """XLA has them so in Flax's `RNN`, which takes the last of each array of a carry."""
    forward, back = named("jvp()/gather", frame=frame), named("transpose(jvp())/scatter-add", frame=frame)
    window = "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1"
    into = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}"
    into += f", index_vector_dim=1, to_apply=%sum{back}"
    body = f"""  %x = f32[8,16]{{1,0}} parameter(0)
  %y = f32[8,16]{{1,0}} parameter(1)
  %i = s32[4,1]{{1,0}} parameter(2)
  %j = s32[4,1]{{1,0}} parameter(3)
  %joined = s32[4,2]{{1,0}} concatenate(%i, %j), dimensions={{1}}{named("jvp()/concatenate", frame=3)}
  %gather.1 = f32[4,1,16]{{2,1,0}} gather(%x, %joined), {window}, slice_sizes={{1,16}}{forward}
  %gather.2 = f32[4,1,16]{{2,1,0}} gather(%y, %joined), {window}, slice_sizes={{1,16}}{forward}
  %to = f32[8,16]{{1,0}} parameter(4)
  %scatter-add.3 = f32[8,16]{{1,0}} scatter(%to, %joined, %gather.2), {into}
  %scatter-add.4 = f32[8,16]{{1,0}} scatter(%to, %joined, %gather.1), {into}
  ROOT %r = (f32[8,16]{{1,0}}, f32[8,16]{{1,0}}) tuple(%scatter-add.4, %scatter-add.3)"""
    assert users_of("joined", body) == users


@pytest.mark.parametrize(
    ("operation", "users"), [("sub", ["sub.1", "max.1", "exp.1"]), ("exp", ["max.1", "sub.1", "exp.1"])]
)
def test_what_goes_on_with_a_sum_has_its_place(operation: str, users: list[str]) -> None:
    """Of `a + b - c` the sum is written for the difference; `max(a + b, c)` had one of its own."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %add.1 = f32[8]{{0}} add(%x, %y){named("add", frame=1)}
  %max.1 = f32[8]{{0}} maximum(%add.1, %y){named("max", frame=2)}
  %sub.1 = f32[8]{{0}} subtract(%add.1, %max.1){named(operation, frame=1)}
  %exp.1 = f32[8]{{0}} exponential(%add.1){named("exp", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%sub.1, %exp.1)"""
    tables = places_in_source(("f", 3, 31, 38), ("f", 2, 20, 43))
    assert users_of("add.1", body, tables=tables) == users


@pytest.mark.parametrize(
    ("made_for", "users"), [("lt", ["lt.1", "gt.1", "ge.1"]), ("ge", ["ge.1", "lt.1", "gt.1"])]
)
def test_what_an_index_has_to_be_at_least_had_another_dimension(made_for: str, users: list[str]) -> None:
    """ReshapeMover took that from the comparison when CSE had merged the other zeros."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[9,4]{{1,0}} parameter(1)
  %zero = s32[] constant(0)
  %zeros = s32[8]{{0}} broadcast(%zero), dimensions={{}}{named(f"jit(take)/{made_for}")}
  %lt.1 = pred[8]{{0}} compare(%p, %zeros), direction=LT{named("jit(take)/lt")}
  %x = s32[8]{{0}} select(%lt.1, %p, %p){named("jit(take)/select_n")}
  %ge.1 = pred[8]{{0}} compare(%x, %zeros), direction=GE{named("jit(take)/ge")}
  %i = s32[8,1]{{1,0}} bitcast(%x){named("jit(take)/select_n")}
  {_gather("gather.1", named("jit(take)/gather"))}
  %gt.1 = pred[8]{{0}} compare(%p, %zeros), direction=GT{named("gt")}
  ROOT %r = (pred[8]{{0}}, f32[8,1,4]{{2,1,0}}, pred[8]{{0}}) tuple(%ge.1, %gather.1, %gt.1)"""
    assert users_of("zeros", body) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [(2, ["bitcast.1", "mul.1", "mul.2"]), (3, ["bitcast.1", "mul.2", "mul.1"])],
)
def test_what_derives_an_older_user_was_given_the_value_with_it(frame: int, users: list[str]) -> None:
    """`1 - x` is written in two places; the product with the other one is older than what was kept."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %sub.1 = f32[8]{{0}} subtract(%p, %q){named("jvp()/sub", frame=1)}
  %bitcast.1 = f32[1,8]{{1,0}} bitcast(%sub.1){named("jvp()/sub", frame=1)}
  %mul.1 = f32[8]{{0}} multiply(%sub.1, %p){named("jvp()/mul", frame=2)}
  %mul.2 = f32[8]{{0}} multiply(%sub.1, %q){named("transpose(jvp())/mul", frame=frame)}
  ROOT %r = (f32[1,8]{{1,0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%bitcast.1, %mul.1, %mul.2)"""
    tables = places_in_source(("f", 2, 19, 29), ("g", 7, 27, 53), ("h", 9, 27, 53))
    assert users_of("sub.1", body, ids="p q mul.1 sub.1 mul.2 r bitcast.1", tables=tables) == users


def test_the_reshape_of_a_number_of_each_call_was_made_one_with_the_first_at_once() -> None:
    """Each call of `remainder` had a number for its remainder, which ReshapeMover moved, and for its sum."""
    moved = named("jit(remainder)/rem")
    sums = "".join(
        f"  %add.{k} = s32[8]{{0}} add(%p.{k}, %rem.9){named('jit(remainder)/add')}\n" for k in range(1, 5)
    )
    given = "".join(f"  %p.{k} = s32[8]{{0}} parameter({k})\n" for k in range(1, 5))
    body = f"""  %q = s32[2,4]{{1,0}} parameter(0)
{given}  %n = s32[] constant(9)
  %rem.9 = s32[8]{{0}} broadcast(%n), dimensions={{}}{moved}
  %broadcast.1 = s32[2,4]{{1,0}} broadcast(%n), dimensions={{}}{moved}
{sums}  %rem.1 = s32[2,4]{{1,0}} remainder(%q, %broadcast.1){moved}
  %rem.2 = s32[2,4]{{1,0}} remainder(%rem.1, %broadcast.1){moved}
  %one = (s32[2,4]{{1,0}}, s32[8]{{0}}) tuple(%rem.1, %add.1)
  ROOT %r = ((s32[2,4]{{1,0}}, s32[8]{{0}}), s32[2,4]{{1,0}}, s32[8]{{0}}, s32[8]{{0}}, s32[8]{{0}})\
 tuple(%one, %rem.2, %add.2, %add.3, %add.4)"""
    assert users_of("rem.9", body) == ["add.4", "add.1", "add.2", "add.3"]


@pytest.mark.parametrize(
    ("around", "users"),
    [(2, ["bitcast.1", "select_n.1"]), (3, ["select_n.1", "bitcast.1"])],
    ids=["within the expression", "elsewhere"],
)
@pytest.mark.parametrize("reshape", [named("eq", frame=1), ""], ids=["named", "put in for the reader"])
def test_what_reads_a_value_through_a_reshape_may_be_around_it(
    reshape: str, around: int, users: list[str]
) -> None:
    """In `where((x == 0)[:, None], ...)`, of which a line above has another comparison."""
    tables = places_in_source(("f", 5, 10, 14), ("f", 5, 2, 20), ("f", 4, 2, 20), ("f", 9, 2, 20))
    body = f"""  %p = f32[8,1]{{1,0}} parameter(0)
  %q = f32[8,1]{{1,0}} parameter(1)
  %eq.1 = pred[8,1]{{1,0}} compare(%p, %q), direction=EQ{named("eq", frame=1)}
  %select_n.1 = f32[8,1]{{1,0}} select(%eq.1, %p, %q){named("select_n", frame=4)}
  %bitcast.1 = pred[8]{{0}} bitcast(%eq.1){reshape}
  %spread.1 = pred[8,6]{{1,0}} broadcast(%bitcast.1), dimensions={{0}}{named("spread", frame=around)}
  ROOT %r = (f32[8,1]{{1,0}}, pred[8,6]{{1,0}}) tuple(%select_n.1, %spread.1)"""
    assert users_of("eq.1", body, ids="p q eq.1 select_n.1 spread.1 r bitcast.1", tables=tables) == users


def test_what_reads_a_value_through_a_reshape_may_be_in_the_same_call() -> None:
    """In `x.mean(0) + x.std(0)` of numbers that have to be converted for either."""
    tables = places_in_source(("f", 5, 2, 20), ("f", 5, 30, 40))
    body = f"""  %p = bf16[1,8,4]{{2,1,0}} parameter(0)
  %zero = f32[] parameter(1)
  %convert_element_type.1 = f32[1,8,4]{{2,1,0}} convert(%p){named("convert_element_type", frame=1)}
  %bitcast.1 = f32[8,4]{{1,0}} bitcast(%convert_element_type.1)
  %reduce.1 = f32[4]{{0}} reduce(%bitcast.1, %zero), dimensions={{0}}, to_apply=%sum{named("sum", frame=1)}
  %sub.1 = f32[1,8,4]{{2,1,0}} subtract(%convert_element_type.1, %convert_element_type.1)\
{named("jit(_std)/jit(_var)/sub", frame=2)}
  ROOT %r = (f32[4]{{0}}, f32[1,8,4]{{2,1,0}}) tuple(%reduce.1, %sub.1)"""
    ids = "p zero convert_element_type.1 sub.1 reduce.1 r bitcast.1"
    assert users_of("convert_element_type.1", body, ids=ids, tables=tables) == ["bitcast.1", "sub.1"]


@pytest.mark.parametrize(
    ("product", "users"),
    [
        ("div", ["broadcast.1", "broadcast.2", "broadcast.3"]),
        ("mul", ["broadcast.1", "broadcast.3", "broadcast.2"]),
    ],
)
def test_broadcasts_were_one_before_a_simplified_text_was_written(product: str, users: list[str]) -> None:
    """A product named after a division by a constant was simplified before; CSE had run as well."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[4]{{0}} parameter(1)
  %x = f32[2]{{0}} parameter(2)
  %y = f32[] parameter(3)
  %two.1 = f32[] constant(2)
  %two.2 = f32[8]{{0}} broadcast(%two.1), dimensions={{}}
  %{product}.1 = f32[8]{{0}} multiply(%p, %two.2)
  %sqrt.1 = f32[] sqrt(%y)
  %broadcast.1 = f32[8]{{0}} broadcast(%sqrt.1), dimensions={{}}
  %add.1 = f32[8]{{0}} add(%{product}.1, %broadcast.1)
  %sub.1 = f32[8]{{0}} subtract(%add.1, %broadcast.1)
  %broadcast.2 = f32[4]{{0}} broadcast(%sqrt.1), dimensions={{}}
  %add.2 = f32[4]{{0}} add(%q, %broadcast.2)
  %broadcast.3 = f32[2]{{0}} broadcast(%sqrt.1), dimensions={{}}
  %add.3 = f32[2]{{0}} add(%x, %broadcast.3)
  ROOT %r = (f32[8], f32[4], f32[2]) tuple(%sub.1, %add.2, %add.3)"""
    assert users_of("sqrt.1", body) == users


@pytest.mark.parametrize(
    ("operation", "users"),
    [("sub", ["mul.1.0", "mul.2.0", "square.1.0"]), ("reshape", ["square.1.0", "mul.1.0", "mul.2.0"])],
)
def test_what_was_equal_before_reshapes_were_put_behind_it_is_so_since(
    operation: str, users: list[str]
) -> None:
    """`x - mean` of rows, in a function and where that is called: ReshapeMover made it one of matrices."""
    tables = places_in_source(("norm", 2, 5, 20), ("norm", 2, 1, 30), ("var", 9, 5, 20))
    body = f"""  %p = f32[4,2,8]{{2,1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %sub.1 = f32[4,2,8]{{2,1,0}} subtract(%p, %p){named("sub", frame=1)}
  %bitcast.1 = f32[8,8]{{1,0}} bitcast(%sub.1){named(operation, frame=1)}
  %square.1.0 = f32[8,8]{{1,0}} multiply(%bitcast.1, %bitcast.1){named("jit(_var)/square", frame=3)}
  %mul.1.0 = f32[8,8]{{1,0}} multiply(%bitcast.1, %square.1.0){named("mul", frame=2)}
  %mul.2.0 = f32[8,8]{{1,0}} multiply(%bitcast.1, %q){named("mul", frame=2)}
  ROOT %r = (f32[8,8], f32[8,8]) tuple(%mul.1.0, %mul.2.0)"""
    ids = "p q mul.1.0 mul.2.0 r square.1.0 sub.1 bitcast.1"
    assert users_of("bitcast.1", body, ids=ids, tables=tables) == users


@pytest.mark.parametrize(
    ("end", "call", "users"),
    [
        (56, "", ["tanh.1", "multiply.1"]),
        (66, "", ["multiply.1", "tanh.1"]),
        (56, "jit(g)/", ["multiply.1", "tanh.1"]),
    ],
    ids=["no room", "written again", "computed in a function"],
)
def test_an_expression_is_read_by_name_where_it_has_no_room(end: int, call: str, users: list[str]) -> None:
    """`(m := x * 3) @ tanh(m[0])`, where `m` is written in 14 columns."""
    body = f"""  %x = f32[1,8]{{1,0}} parameter(0)
  %y = f32[1,8]{{1,0}} parameter(1)
  %mul.1 = f32[1,8]{{1,0}} multiply(%x, %y){named("mul", frame=1)}
  %tanh.1 = f32[1,8]{{1,0}} tanh(%mul.1){named(f"{call}tanh", frame=2)}
  %multiply.1 = f32[1,8]{{1,0}} multiply(%mul.1, %tanh.1){named("dot_general", frame=3)}
  ROOT %r = (f32[1,8]{{1,0}}) tuple(%multiply.1)"""
    tables = places_in_source(("f", 2, 24, 38), ("f", 2, 42, end), ("f", 2, 18, end))
    assert users_of("mul.1", body, tables=tables) == users


@pytest.mark.parametrize(("frame", "users"), [(2, ["multiply.1", "tanh.1"]), (1, ["tanh.1", "multiply.1"])])
def test_an_operation_reads_what_it_converted_before_others_do(frame: int, users: list[str]) -> None:
    """They converted the same since, until CSE."""
    body = f"""  %x = s64[1,8]{{1,0}} parameter(0)
  %dot_general.1 = f64[1,8]{{1,0}} convert(%x){named("dot_general", frame=2)}
  %tanh.1 = f64[1,8]{{1,0}} tanh(%dot_general.1){named("tanh", frame=1)}
  %multiply.1 = f64[1,8]{{1,0}} multiply(%dot_general.1, %tanh.1){named("dot_general", frame=frame)}
  ROOT %r = (f64[1,8]{{1,0}}) tuple(%multiply.1)"""
    assert users_of("dot_general.1", body) == users


def test_calls_have_what_each_computed_of_nothing_in_the_order_in_which_the_walk_meets_it() -> None:
    """It comes to the counter of the second call first, ahead of the key that the first call made."""
    body = f"""  %p = u32[2]{{0}} parameter(0)
  %i = s32[2]{{0}} iota(), iota_dimension=0
  %counter.2 = u32[2]{{0}} convert(%i){named("jit(split)/counter")}
  %add.1 = u32[2]{{0}} add(%counter.2, %p){named("jit(split)/add")}
  %not.1 = u32[2]{{0}} not(%add.1){named("not")}
  ROOT %add.2 = u32[2]{{0}} add(%counter.2, %not.1){named("jit(split)/add")}"""
    kept_of_second = "p not.1 add.1 i counter.2 add.2"
    assert users_of("counter.2", body, ids=kept_of_second) == ["add.2", "add.1"]
    kept_of_first = "p not.1 i counter.2 add.1 add.2"
    assert users_of("counter.2", body, ids=kept_of_first) == ["add.1", "add.2"]


@pytest.mark.parametrize(
    ("name", "users"), [("negate.1", ["add.1", "add.3", "add.2"]), ("neg.1", ["add.1", "add.2", "add.3"])]
)
def test_the_walk_that_merged_what_calls_computed_of_nothing_started_from_a_dead_negation(
    name: str, users: list[str]
) -> None:
    """That had been there until its sum was made one of what had been negated."""
    body = f"""  %p = u32[2]{{0}} parameter(0)
  %zero = u32[] constant(0)
  %i = s32[2]{{0}} iota(), iota_dimension=0
  %counter.1 = u32[2]{{0}} convert(%i){named("jit(split)/counter")}
  %add.3 = u32[2]{{0}} add(%counter.1, %p){named("jit(split)/add")}
  %add.2 = u32[2]{{0}} add(%counter.1, %p){named("jit(split)/add")}
  %add.1 = u32[2]{{0}} add(%counter.1, %p){named("jit(split)/add")}
  %reduce_sum.1 = u32[] reduce(%add.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %{name} = u32[] negate(%reduce_sum.1){named("neg")}
  ROOT %r = (u32[2]{{0}}, u32[2]{{0}}, u32[]) tuple(%add.3, %add.2, %{name})"""
    ids = f"p zero r i counter.1 add.1 add.2 add.3 reduce_sum.1 {name}"
    assert users_of("counter.1", body, ids=ids) == users


def test_of_sums_that_share_a_product_the_second_had_one_of_its_own_where_its_number_is_missing() -> None:
    """Two parameters with one gradient: `mul.3` stood in front of the other factor, as `mul.1` does."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %n = f32[] constant(0.25)
  %ns = f32[8]{{0}} broadcast(%n), dimensions={{}}
  %mul.1.0 = f32[8]{{0}} multiply(%p, %ns){named("mul")}
  %mul.2.0 = f32[8]{{0}} multiply(%q, %q){named("mul")}
  %add.1.0 = f32[8]{{0}} add(%mul.1.0, %mul.2.0){named("add")}
  %mul.4.0 = f32[8]{{0}} multiply(%q, %mul.2.0){named("mul")}
  %add.2.0 = f32[8]{{0}} add(%mul.1.0, %mul.4.0){named("add")}
  %mul.5.0 = f32[8]{{0}} multiply(%add.2.0, %ns){named("mul")}
  %mul.6.0 = f32[8]{{0}} multiply(%mul.5.0, %ns){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%add.1.0, %mul.6.0)"""
    assert users_of("ns", body) == ["mul.1.0", "mul.6.0", "mul.5.0"]
    shared = body.replace("mul.2.0", "mul.3.0")
    assert users_of("ns", shared) == ["mul.1.0", "mul.5.0", "mul.6.0"]
