"""Lists of users that passes before fusion rebuilt: compiled programs, the order as in XLA's records."""

from __future__ import annotations

import re

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.module import Module
from hlofuse.pipelines.users.common.visits import uses_in_order
from hlofuse.pipelines.users.duplicates.dead_at_cse import UsesAtCse
from hlofuse.pipelines.users.simplified.multiplied_constants import products_with_multiplied_constants

from .lists import HEAD, named, users_in, users_of


def module_of(body: str) -> Module:
    """`body` stands in the order of age; a text has operands first, and so have lists of users."""
    lines = {line.partition(" = ")[0].split("%")[1]: line for line in body.splitlines()}
    text: dict[str, str] = {}

    def write(name: str) -> None:
        if name in lines and name not in text:
            for operand in re.findall(r"%([\w.]+)", lines[name].partition(" = ")[2].partition("to_apply")[0]):
                write(operand)
            text[name] = lines[name]

    write(next(name for name, line in lines.items() if "ROOT" in line))
    for name in lines:
        write(name)
    body = "\n".join(text.values())
    module = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n")
    age = list(lines)
    module.entry.reorder(sorted(module.entry.instructions, key=lambda x: age.index(x.name)))
    return module


def users_by_age(name: str, body: str) -> list[str]:
    return users_in(module_of(body), name, ids_known=True)


def test_a_call_in_a_function_is_inlined_before_the_function_is_cloned() -> None:
    body = f"""  %p = f32[64]{{0}} parameter(0)
  %sin.0.0 = f32[64]{{0}} sine(%p){named("jit(two)/sin", frame=15)}
  %cos.2.0 = f32[64]{{0}} cosine(%sin.0.0){named("jit(two)/jit(inner)/cos", frame=17)}
  %mul.2.0 = f32[64]{{0}} multiply(%sin.0.0, %sin.0.0){named("jit(two)/jit(inner)/mul", frame=18)}
  %abs.2.0 = f32[64]{{0}} abs(%sin.0.0){named("jit(two)/jit(inner)/abs", frame=19)}
  %gt.2.0 = f32[64]{{0}} add(%cos.2.0, %mul.2.0){named("jit(two)/jit(inner)/gt", frame=20)}
  ROOT %add.2.0 = f32[64]{{0}} add(%gt.2.0, %abs.2.0){named("jit(two)/jit(inner)/add", frame=20)}"""
    assert users_by_age("sin.0.0", body) == ["cos.2.0", "mul.2.0", "abs.2.0"]


def test_the_function_around_is_no_call_to_what_was_called_in_it() -> None:
    body = f"""  %p = f32[64]{{0}} parameter(0)
  %add.5.0 = f32[64]{{0}} sine(%p){named("jit(three)/jit(inner)/add", frame=11)}
  %cos.0.0 = f32[64]{{0}} cosine(%add.5.0){named("jit(three)/cos", frame=12)}
  %abs.0.0 = f32[64]{{0}} abs(%add.5.0){named("jit(three)/abs", frame=13)}
  %mul.0.0 = f32[64]{{0}} multiply(%cos.0.0, %abs.0.0){named("jit(three)/mul", frame=12)}
  ROOT %add.7.0 = f32[64]{{0}} add(%mul.0.0, %add.5.0){named("jit(three)/add", frame=12)}"""
    assert users_by_age("add.5.0", body) == ["cos.0.0", "abs.0.0", "add.7.0"]


_RELUS = f"""  %x = f32[64]{{0}} parameter(0)
  %y = f32[64]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[64]{{0}} broadcast(%zero), dimensions={{}}LITERAL
  %gt.2.0 = pred[64]{{0}} compare(%x, %zeros), direction=GT{named("jvp()/gt")}
  %mul.2.0 = f32[64]{{0}} exponential(%y){named("jvp()/exp", frame=6)}
  %gt.3.0 = pred[64]{{0}} compare(%mul.2.0, %zeros), direction=GT{named("jvp()/gt", frame=7)}
  %max.5.0 = f32[64]{{0}} maximum(%mul.2.0, %zeros){named("jvp()/jit(relu)/max", frame=7)}
  %max.7.0 = f32[64]{{0}} maximum(%x, %zeros){named("jvp()/jit(relu)/max")}
  %select_n.2.0 = f32[64]{{0}} select(%gt.3.0, %max.7.0, %zeros){named("transpose(jvp())/select_n", frame=7)}
  %select_n.3.0 = f32[64]{{0}} select(%gt.2.0, %max.5.0, %zeros){named("transpose(jvp())/select_n")}
  ROOT %tuple.1.0 = (f32[64]{{0}}, f32[64]{{0}}) tuple(%select_n.3.0, %select_n.2.0)"""


def test_numbers_of_the_program_come_together_and_then_those_of_the_functions_it_calls() -> None:
    users = users_by_age("zeros", _RELUS.replace("LITERAL", ""))
    assert users == ["gt.2.0", "select_n.3.0", "gt.3.0", "select_n.2.0", "max.5.0", "max.7.0"]


def test_the_number_that_is_left_is_that_of_the_operation_whose_name_it_bears() -> None:
    users = users_by_age("zeros", _RELUS.replace("LITERAL", named("jvp()/jit(relu)/max", frame=7)))
    assert users == ["max.5.0", "gt.2.0", "select_n.3.0", "gt.3.0", "select_n.2.0", "max.7.0"]


_MOMENTUM = f"""  %p = f32[64]{{0}} parameter(0)
  %m = f32[64]{{0}} parameter(1)
  %rate = f32[] constant(0.1)
  %rates = f32[64]{{0}} broadcast(%rate), dimensions={{}}
  %decay = f32[] constant(0.9)
  %decays = f32[64]{{0}} broadcast(%decay), dimensions={{}}
  %mul.6.0 = f32[64]{{0}} multiply(%m, %decays){named("mul", frame=4)}
  %sub.1.0 = f32[64]{{0}} subtract(%p, %mul.8.0){named("sub", frame=7)}
  %mul.9.0 = f32[64]{{0}} multiply(%sub.1.0, %rates){named("mul", frame=8)}
  %cos.1.0 = f32[64]{{0}} cosine(%p){named("cos", frame=9)}
  %mul.10.0 = f32[64]{{0}} multiply(%cos.1.0, %rates){named("mul", frame=10)}
  %sin.1.0 = f32[64]{{0}} sine(%p){named("sin", frame=11)}
  %mul.11.0 = f32[64]{{0}} multiply(%sin.1.0, %rates){named("mul", frame=12)}
  ROOT %tuple = (f32[64]{{0}}, f32[64]{{0}}, f32[64]{{0}}, f32[64]{{0}}) tuple(RESULTS)
  %both = f32[] constant(PRODUCT)
  %broadcast.1 = f32[64]{{0}} broadcast(%both), dimensions={{}}
  %mul.8.0 = f32[64]{{0}} multiply(%m, %broadcast.1){named("mul", frame=6)}"""
_MOMENTUM = _MOMENTUM.replace("RESULTS", "%mul.6.0, %mul.9.0, %mul.10.0, %mul.11.0")


def test_the_last_user_of_a_factor_takes_the_place_of_a_product_with_another_now() -> None:
    """0.1 * (0.9 * m) became 0.09 * m, by the name of the old product."""
    users = users_by_age("rates", _MOMENTUM.replace("PRODUCT", "0.0899999961"))
    assert users == ["mul.11.0", "mul.9.0", "mul.10.0"]
    users = users_by_age("rates", _MOMENTUM.replace("PRODUCT", "0.09"))
    assert users == ["mul.9.0", "mul.10.0", "mul.11.0"]


def test_products_with_multiplied_constants_are_told_in_single_precision() -> None:
    module = module_of(_MOMENTUM.replace("PRODUCT", "0.0899999961"))
    (product,) = products_with_multiplied_constants(module.entry)
    assert [x and x.name for x in product] == ["mul.8.0", "mul.6.0", "rates"]


@pytest.mark.parametrize(("doubled", "last"), [("0.03125", [2, 4, 3]), ("0.0625", [2, 3, 4])])
def test_what_the_derivative_of_a_mean_of_squares_divided_went_in_turn(doubled: str, last: list[int]) -> None:
    """(2 * x) * broadcast(y / 64) became x * broadcast(y * 0.03125)."""

    def normalized(k: int) -> str:
        mul, div = (named(f"transpose(jvp(layer_{k}))/{kind}") for kind in ("mul", "div"))
        return f"""  %multiply.{k} = f32[4]{{0}} multiply(%y, %mean){div}
  %spread.{k} = f32[4,64]{{1,0}} broadcast(%multiply.{k}), dimensions={{0}}{mul}
  %made.{k} = f32[4]{{0}} multiply(%y, %twice){mul}
  %wide.{k} = f32[4,64]{{1,0}} broadcast(%made.{k}), dimensions={{0}}{mul}
  %product.{k} = f32[4,64]{{1,0}} multiply(%x, %wide.{k}){mul}
  %out.{k} = f32[4,64]{{1,0}} add(%spread.{k}, %product.{k}){named(f"transpose(jvp(layer_{k}))/add_any")}
"""

    layers = "".join(normalized(k) for k in (2, 3, 4))
    body = f"""  %y = f32[4]{{0}} parameter(0)
  %x = f32[4,64]{{1,0}} parameter(1)
  %number = f32[] constant(0.015625)
  %mean = f32[4]{{0}} broadcast(%number), dimensions={{}}
  %multiply.1 = f32[4]{{0}} multiply(%y, %mean){named("jvp(layer_2)/div")}
  %other = f32[] constant({doubled})
  %twice = f32[4]{{0}} broadcast(%other), dimensions={{}}
{layers}  %r = (f32[4,64]{{1,0}}, f32[4,64]{{1,0}}, f32[4,64]{{1,0}}) tuple(%out.2, %out.3, %out.4)
  ROOT %all = (f32[4]{{0}}, (f32[4,64]{{1,0}}, f32[4,64]{{1,0}}, f32[4,64]{{1,0}})) tuple(%multiply.1, %r)"""
    by_age = sorted(re.findall(r"^ +(?:ROOT )?%(\S+) =", body, re.M), key=lambda x: x.startswith("made"))
    assert users_of("mean", body, ids=" ".join(by_age)) == [f"multiply.{k}" for k in (1, *last)]


def test_an_operation_moved_in_front_of_a_reshape_takes_the_place_of_that() -> None:
    body = f"""  %x = f32[16,32]{{1,0}} parameter(0)
  %one = f32[] constant(1)
  %zero = f32[] constant(0)
  %mul.9.0 = f32[16,32]{{1,0}} multiply(%mul.8.0, %x){named("mul", frame=7)}
  %add.7.0 = f32[16,32]{{1,0}} add(%add.6.0, %x){named("add", frame=9)}
  ROOT %tuple = (f32[16,32]{{1,0}}, f32[16,32]{{1,0}}) tuple(%mul.9.0, %add.7.0)
  %reduce_sum.7.0 = f32[16]{{0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("sum", frame=4)}
  %cos.0.0 = f32[16]{{0}} cosine(%reduce_sum.7.0){named("cos")}
  %mul.0.0 = f32[16]{{0}} multiply(%cos.0.0, %cos.0.0){named("mul", frame=6)}
  %sqrt.0.0 = f32[16]{{0}} sqrt(%mul.0.0){named("sqrt", frame=7)}
  %sub.0.0 = f32[16]{{0}} subtract(%broadcast.2.0, %mul.0.0){named("sub", frame=8)}
  %mul.8.0 = f32[16,32]{{1,0}} broadcast(%sqrt.0.0), dimensions={{0}}{named("mul", frame=7)}
  %broadcast.2.0 = f32[16]{{0}} broadcast(%one), dimensions={{}}
  %add.6.0 = f32[16,32]{{1,0}} broadcast(%sub.0.0), dimensions={{0}}{named("add", frame=9)}"""
    assert users_by_age("mul.0.0", body) == ["sub.0.0", "sqrt.0.0"]


_NEGATED = f"""  %x = f32[64,33]{{1,0}} parameter(0)
  %y = f32[64,33]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %sin.1.0 = f32[64,33]{{1,0}} sine(%x){named("sin")}
  %cos.1.0 = f32[64,33]{{1,0}} cosine(%y){named("cos", frame=6)}
  %reduce_sum.7.0 = f32[33]{{0}} reduce(%multiply.1.0, %zero), dimensions={{0}}, to_apply=%sum{named("SUM")}
  %add.7.0 = f32[64,33]{{1,0}} add(%multiply.2, %add.6.0){named("add", frame=8)}
  ROOT %tuple = (f32[64,33]{{1,0}}, f32[64,33]{{1,0}}) tuple(%add.7.0, %multiply.1.0)
  %third = f32[] constant(0.333333343)
  %multiply.2 = f32[64,33]{{1,0}} multiply(%sin.1.0, %broadcast.2.0){named("div")}
  %broadcast.2.0 = f32[64,33]{{1,0}} broadcast(%third), dimensions={{}}
  %multiply.1.0 = f32[64,33]{{1,0}} multiply(%cos.1.0, %broadcast.2.0){named("div", frame=6)}
  %negate.1 = f32[33]{{0}} SIGN(%reduce_sum.7.0){named("neg", frame=7)}
  %add.6.0 = f32[64,33]{{1,0}} broadcast(%negate.1), dimensions={{1}}{named("add", frame=8)}"""
_NEGATED = _NEGATED.replace("SUM", "reduce_sum")


def test_cse_began_at_what_was_negated_before_it_was_summed() -> None:
    """sum(-b) became -sum(b), and nobody read -b any more when the divisors' reciprocals were made one."""
    assert users_by_age("broadcast.2.0", _NEGATED.replace("SIGN", "negate")) == ["multiply.1.0", "multiply.2"]
    assert users_by_age("broadcast.2.0", _NEGATED.replace("SIGN", "cosine")) == ["multiply.2", "multiply.1.0"]


def test_cse_came_to_what_a_call_had_negated_behind_the_root() -> None:
    of_call = _NEGATED.replace("SIGN", "negate").replace(named("neg", frame=7), named("jit(g)/neg", frame=7))
    assert users_by_age("broadcast.2.0", of_call) == ["multiply.2", "multiply.1.0"]


def test_what_is_younger_than_the_negations_was_merged_in_the_order_of_a_later_walk() -> None:
    lines = _NEGATED.replace("SIGN", "negate").replace("/div", "/mul").splitlines()
    products = [line for line in lines if "%multiply." in line.partition(" = ")[0]]
    later = "\n".join([*(line for line in lines if line not in products), *products])
    assert users_by_age("broadcast.2.0", later) == ["multiply.2", "multiply.1.0"]


_CHOSEN = f"""  %mask = pred[64,33]{{1,0}} parameter(0)
  %x = f32[64,33]{{1,0}} parameter(1)
  %y = f32[64,33]{{1,0}} parameter(2)
  %zero = f32[] constant(0)
  %select.1.0 = f32[64,33]{{1,0}} select(%mask, %x, %broadcast.2.0){named("mul", frame=5)}
  %broadcast.2.0 = f32[64,33]{{1,0}} broadcast(%zero), dimensions={{}}
  %select.2.0 = f32[64,33]{{1,0}} select(%mask, %y, %broadcast.2.0){named("mul", frame=6)}
  %reduce_sum.7.0 = f32[33]{{0}} reduce(%select.2.0, %zero), dimensions={{0}}, to_apply=%sum{named("SUM")}
  %negate.1 = f32[33]{{0}} SIGN(%reduce_sum.7.0){named("neg", frame=7)}
  ROOT %tuple.3.0 = (f32[64,33]{{1,0}}, f32[33]{{0}}) tuple(%select.1.0, %negate.1)"""
_CHOSEN = _CHOSEN.replace("SUM", "reduce_sum")


def test_what_was_a_product_with_a_predicate_had_a_zero_of_its_own() -> None:
    """As in the categorical loss of Keras, where LayoutAssignment made the root anew behind them."""
    assert users_by_age("broadcast.2.0", _CHOSEN.replace("SIGN", "negate")) == ["select.2.0", "select.1.0"]
    assert users_by_age("broadcast.2.0", _CHOSEN.replace("SIGN", "cosine")) == ["select.1.0", "select.2.0"]


def test_a_scatter_of_one_window_took_what_was_dead_with_it() -> None:
    """The loop it became has one turn; putting that in line runs HloDCE."""
    scatter = f"""  %k = s32[] parameter(3)
  %update.1 = f32[64,33]{{1,0}} dynamic-update-slice(%x, %y, %k, %k){named("NAME", frame=8)}
  ROOT %tuple.3.0"""
    body = _CHOSEN.replace("SIGN", "negate").replace("  ROOT %tuple.3.0", scatter)
    assert users_by_age("broadcast.2.0", body.replace("NAME", "scatter-add")) == ["select.1.0", "select.2.0"]
    assert users_by_age("broadcast.2.0", body.replace("NAME", "update")) == ["select.2.0", "select.1.0"]


def test_what_was_made_behind_the_negations_was_merged_in_a_later_round() -> None:
    module = module_of(_NEGATED.replace("SIGN", "negate"))
    uses = uses_in_order(module.entry)
    at_cse = UsesAtCse(module.entry, uses)
    early, late = module.find("broadcast.2.0"), module.find("add.6.0")
    assert early is not None
    assert late is not None
    assert at_cse.of(early) is not uses
    assert at_cse.of(late) is uses


def test_product_that_took_a_number_into_what_is_broadcast_kept_its_users() -> None:
    """It is young and has a low number, as it took over the name of the product that it was made for."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %scale = f32[] parameter(1)
  %t = f32[8]{{0}} parameter(2)
  %half = f32[] constant(0.5)
  %multiply.9.0 = f32[] multiply(%scale, %half)
  %broadcast.1.0 = f32[8]{{0}} broadcast(%multiply.9.0), dimensions={{}}{named("mul")}
  %mul.1.0 = f32[8]{{0}} multiply(%p, %broadcast.1.0){named("mul")}
  %mul.2.0 = f32[8]{{0}} multiply(%t, %broadcast.1.0){named("mul")}
  %mul.5.0 = f32[8]{{0}} multiply(%mul.1.0, %p){named("mul")}
  %square.6.0 = f32[8]{{0}} multiply(%mul.1.0, %mul.1.0){named("square")}
  %mul.7.0 = f32[8]{{0}} multiply(%mul.2.0, %p){named("mul")}
  %square.8.0 = f32[8]{{0}} multiply(%mul.2.0, %mul.2.0){named("square")}
  ROOT %tuple.9.0 = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(\
%mul.5.0, %square.6.0, %mul.7.0, %square.8.0)"""
    of_program = "p scale t half - - mul.5.0 square.6.0 mul.7.0 square.8.0 tuple.9.0"
    ids = f"{of_program} multiply.9.0 broadcast.1.0 mul.1.0 - mul.2.0"
    assert users_of("mul.1.0", body, ids=ids) == ["mul.5.0", "square.6.0"]
    assert users_of("mul.2.0", body, ids=ids) == ["mul.7.0", "square.8.0"]
