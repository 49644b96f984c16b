"""Predicates spread for every select, as XLA's records show them."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.calls.branch_predicates import in_order_of_results

from ...running import find
from .lists import HEAD, named, places_in_source, users_of


@pytest.mark.parametrize(
    ("scope", "users"),
    [
        ("transpose(jvp(vmap()))/broadcast_in_dim", ["select_n.2", "select_n.1"]),
        ("jvp(jit(_where))/broadcast_in_dim", ["select_n.1", "select_n.2"]),
    ],
)
def test_a_walk_comes_to_a_predicate_ahead_of_what_is_chosen(scope: str, users: list[str]) -> None:
    """The second select had a predicate of its own, and reads the first one."""
    body = f"""  %p = pred[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %broadcast_in_dim.1 = pred[8]{{0}} broadcast(%p), dimensions={{}}{named(scope)}
  %select_n.1 = f32[8]{{0}} select(%broadcast_in_dim.1, %x, %q){named("select_n")}
  %cos.1 = f32[8]{{0}} cosine(%select_n.1){named("cos")}
  ROOT %select_n.2 = f32[8]{{0}} select(%broadcast_in_dim.1, %cos.1, %q){named("select_n")}"""
    assert users_of("broadcast_in_dim.1", body) == users


@pytest.mark.parametrize(
    ("opcode", "users"), [("bitcast", ["spread", "select.4.0"]), ("negate", ["select.4.0", "spread"])]
)
def test_a_reshaped_predicate_had_the_conditionals_in_reverse(opcode: str, users: list[str]) -> None:
    """Of what two conditionals gave only one was a scalar; CSE made one of broadcasts."""
    made = "bitcast(%p)" if opcode == "bitcast" else "not(%p)"
    body = f"""  %p = pred{"[1]{0}" if opcode == "bitcast" else "[]"} parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %y = f32[8]{{0}} parameter(2)
  %s = f32[] parameter(3)
  %t = f32[] parameter(4)
  %go = pred[] {made}
  %spread = pred[8]{{0}} broadcast(%go), dimensions={{}}
  %select.3.0 = f32[8]{{0}} select(%spread, %x, %y){named("cond", frame=1)}
  %select.4.0 = f32[] select(%go, %s, %t){named("cond", frame=1)}
  %select.5.0 = f32[8]{{0}} select(%spread, %y, %x){named("cond", frame=1)}
  %select.6.0 = f32[8]{{0}} select(%spread, %x, %select.3.0){named("cond", frame=2)}
  %select.7.0 = f32[8]{{0}} select(%spread, %select.3.0, %x){named("cond", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[], f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(
    %select.3.0, %select.4.0, %select.5.0, %select.6.0, %select.7.0)"""
    module = parse_module(f"{HEAD}ENTRY %main {{\n{body}\n}}\n")
    go = find(module, "go")
    order = {x: k for k, x in enumerate(module.entry.post_order())}
    assert [u.name for u in in_order_of_results(go, go.users, order)] == users


@pytest.mark.parametrize(
    ("results", "users"),
    [
        ("%select.9.0, %select.3.0, %select.4.0", ["select.4.0", "spread", "select.3.0"]),
        ("%select.3.0, %select.4.0, %select.9.0", ["spread", "select.3.0", "select.4.0"]),
    ],
    ids=["first", "last"],
)
def test_the_first_result_of_a_conditional_may_have_been_made_anew(results: str, users: list[str]) -> None:
    """It has the highest number since. The last result takes the place of the conditional."""
    kinds = "f32[8]{0}, f32[], f32[]" if results[8] == "9" else "f32[], f32[], f32[8]{0}"
    body = f"""  %go = pred[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %s = f32[] parameter(2)
  %t = f32[] parameter(3)
  %spread = pred[8]{{0}} broadcast(%go), dimensions={{}}
  %select.9.0 = f32[8]{{0}} select(%spread, %x, %x){named("cond", frame=1)}
  %select.3.0 = f32[] select(%go, %s, %t){named("cond", frame=1)}
  %select.4.0 = f32[] select(%go, %t, %s){named("cond", frame=1)}
  ROOT %r = ({kinds}) tuple({results})"""
    module = parse_module(f"{HEAD}ENTRY %main {{\n{body}\n}}\n")
    go = find(module, "go")
    order = {x: k for k, x in enumerate(module.entry.post_order())}
    assert [u.name for u in in_order_of_results(go, go.users, order)] == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [(1, ["select.1.0", "select.2.0", "select.3.0"]), (2, ["select.1.0", "select.3.0", "select.2.0"])],
)
def test_a_walk_comes_to_all_results_of_a_conditional_at_once(frame: int, users: list[str]) -> None:
    body = f"""  %go = pred[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %y = f32[8]{{0}} parameter(2)
  %spread = pred[8]{{0}} broadcast(%go), dimensions={{}}
  %select.1.0 = f32[8]{{0}} select(%spread, %x, %y){named("jvp()/cond", frame=1)}
  %select.3.0 = f32[8]{{0}} select(%spread, %y, %select.1.0){named("transpose(jvp())/cond", frame=1)}
  %select.2.0 = f32[8]{{0}} select(%spread, %select.1.0, %x){named("transpose(jvp())/cond", frame=frame)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%select.1.0, %select.3.0, %select.2.0)"""
    made = "go x y r spread - select.1.0 - select.3.0 - select.2.0"
    assert users_of("spread", body, ids=made) == users


@pytest.mark.parametrize(
    ("scope", "users"),
    [("jvp()", ["select_n.1", "select_n.2"]), ("transpose(jvp())", ["select_n.2", "select_n.1"])],
)
def test_a_derivative_chooses_by_what_was_spread_before(scope: str, users: list[str]) -> None:
    """Two of the derivative had a predicate each."""
    back = "transpose(jvp())/select_n"
    body = f"""  %p = pred[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %broadcast_in_dim.1 = pred[8]{{0}} broadcast(%p), dimensions={{}}{named("jvp()/broadcast_in_dim")}
  %select_n.1 = f32[8]{{0}} select(%broadcast_in_dim.1, %x, %q){named(f"{scope}/select_n", frame=1)}
  %cos.1 = f32[8]{{0}} cosine(%select_n.1){named("cos")}
  ROOT %select_n.2 = f32[8]{{0}} select(%broadcast_in_dim.1, %cos.1, %q){named(back, frame=1)}"""
    assert users_of("broadcast_in_dim.1", body) == users


@pytest.mark.parametrize(
    ("start", "users"),
    [(5, ["select_n.2", "select_n.1"]), (50, ["select_n.1", "select_n.2"])],
    ids=["within the choice", "elsewhere"],
)
def test_a_predicate_that_is_written_by_itself_is_computed_once(start: int, users: list[str]) -> None:
    """Its number does not tell: what had the one in front may have been something else."""
    tables = places_in_source(("f", 7, 1, 40), ("f", 7, start, start + 5))
    body = f"""  %n = f32[] parameter(0)
  %x = f32[] parameter(1)
  %one = f32[] constant(1)
  %eq.3.0 = pred[] compare(%n, %x), direction=EQ{named("eq", frame=2)}
  %select_n.1 = f32[] select(%eq.3.0, %one, %n){named("jit(_where)/select_n", frame=2)}
  %div.1 = f32[] divide(%x, %select_n.1){named("div", frame=2)}
  %select_n.2 = f32[] select(%eq.3.0, %x, %div.1){named("jit(_where)/select_n", frame=1)}
  ROOT %r = (f32[], f32[]) tuple(%select_n.2, %select_n.1)"""
    assert users_of("eq.3.0", body, tables=tables) == users


@pytest.mark.parametrize(
    ("predicate", "divisor", "users"),
    [
        ("eq.3.0", "%select_n.1", ["select_n.2", "select_n.1"]),
        ("eq.2.0", "%select_n.1", ["select_n.1", "select_n.2"]),
        ("eq.3.0", "%q", ["select_n.1", "select_n.2"]),
    ],
    ids=["twice", "once", "by another"],
)
def test_a_quotient_is_chosen_by_a_predicate_of_its_own(
    predicate: str, divisor: str, users: list[str]
) -> None:
    """`where(n == 0, 0, x / where(n == 0, 1, n))`: the comparison for the divisor was made first."""
    body = f"""  %n = f32[] parameter(0)
  %x = f32[] parameter(1)
  %q = f32[] parameter(2)
  %one = f32[] constant(1)
  %eq.1.0 = pred[] compare(%x, %one), direction=EQ{named("eq")}
  %{predicate} = pred[] compare(%n, %x), direction=EQ{named("eq")}
  %select_n.1 = f32[] select(%{predicate}, %one, %n){named("jit(_where)/select_n")}
  %div.1 = f32[] divide(%x, {divisor}){named("div")}
  %select_n.2 = f32[] select(%{predicate}, %x, %div.1){named("jit(_where)/select_n")}
  ROOT %r = (pred[], f32[], f32[]) tuple(%eq.1.0, %select_n.2, %select_n.1)"""
    assert users_of(predicate, body) == users


@pytest.mark.parametrize(
    ("behind", "users"),
    [
        ("nextafter.9.0", ["nextafter.5.0", "nextafter.4.0"]),
        ("nextafter.3.0", ["nextafter.4.0", "nextafter.5.0"]),
    ],
    ids=["twice", "once"],
)
def test_an_operation_compared_again_for_a_select_within_another(behind: str, users: list[str]) -> None:
    """`nextafter.3` had been the comparison that `nextafter.4` chose by; the walk met the other's first."""
    body = f"""  %n = f32[] parameter(0)
  %x = f32[] parameter(1)
  %{behind} = f32[] add(%n, %x){named("nextafter")}
  %nextafter.2.0 = pred[] compare(%n, %x), direction=EQ{named("nextafter")}
  %nextafter.4.0 = f32[] select(%nextafter.2.0, %n, %{behind}){named("nextafter")}
  ROOT %nextafter.5.0 = f32[] select(%nextafter.2.0, %nextafter.4.0, %n){named("nextafter")}"""
    assert users_of("nextafter.2.0", body) == users


@pytest.mark.parametrize(
    ("layers", "users"),
    [
        ((1, 2, 3, 4), ["select_n.2", "select_n.3", "select_n.1", "select_n.4"]),
        ((1, 2, 4, 3), ["select_n.2", "select_n.4", "select_n.1", "select_n.3"]),
    ],
    ids=["as named", "named otherwise"],
)
def test_a_choice_in_each_of_two_layers_has_its_derivative_behind(
    layers: tuple[int, ...], users: list[str]
) -> None:
    """`jnp.where(mask, …)`: each call spreads the mask, and gives it to its derivative.

    A walk comes to the mask of the second layer ahead of the first layer.
    """
    first, second, behind, last = (f"select_n.{k}" for k in layers)
    forward = named("jvp(jit(_where))/select_n", frame=1)
    backward = named("transpose(jvp(jit(_where)))/select_n", frame=1)
    spread = named("jvp(jit(_where))/broadcast_in_dim", frame=1)
    body = f"""  %m = pred[4]{{0}} parameter(0)
  %x = f32[8,4]{{1,0}} parameter(1)
  %zero = f32[8,4]{{1,0}} parameter(2)
  %mask = pred[8,4]{{1,0}} broadcast(%m), dimensions={{1}}{spread}
  %{first} = f32[8,4]{{1,0}} select(%mask, %x, %zero){forward}
  %cos.1 = f32[8,4]{{1,0}} cosine(%{first}){named("jvp()/cos")}
  %{second} = f32[8,4]{{1,0}} select(%mask, %cos.1, %zero){forward}
  %{behind} = f32[8,4]{{1,0}} select(%mask, %{second}, %zero){backward}
  %sin.1 = f32[8,4]{{1,0}} sine(%{behind}){named("transpose(jvp())/sin")}
  ROOT %{last} = f32[8,4]{{1,0}} select(%mask, %sin.1, %zero){backward}"""
    tables = places_in_source(("f", 1, 2, 3))
    ids = f"m x zero mask {second} {first} cos.1 {behind} sin.1 {last}"
    assert users_of("mask", body, tables=tables, ids=ids) == users
    of_first = [first, last, second, behind]
    assert users_of("mask", body, tables=tables) == of_first  # its mask was kept: no such walk


@pytest.mark.parametrize(
    ("names", "users"),
    [
        (("lt", "select_n"), ["select_n.3", "select_n.2"]),
        (("digamma", "digamma"), ["digamma.2", "digamma.3"]),
    ],
    ids=["of a function", "of one operation"],
)
def test_an_operation_of_the_framework_compares_once(names: tuple[str, str], users: list[str]) -> None:
    """A function may have computed the predicate of each of two selects, one within the other."""
    compared, chosen = names
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %{compared}.1 = pred[8]{{0}} compare(%x, %y), direction=LT{named(f"jit(g)/{compared}")}
  %{chosen}.2 = f32[8]{{0}} select(%{compared}.1, %x, %y){named(f"jit(g)/{chosen}")}
  %cos.1 = f32[8]{{0}} cosine(%{chosen}.2){named("jit(g)/cos")}
  ROOT %{chosen}.3 = f32[8]{{0}} select(%{compared}.1, %cos.1, %x){named(f"jit(g)/{chosen}")}"""
    assert users_of(f"{compared}.1", body) == users
