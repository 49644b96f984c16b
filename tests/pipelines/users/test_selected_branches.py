"""The order of users where a conditional became selects."""

from __future__ import annotations

import pytest

from .lists import users_in

_MODULE = """HloModule m

ENTRY %main (go: pred[], v: f32[4], w: f32[4]) -> (f32[4], f32[4], f32[4]) {
  %go = pred[] parameter(0)
  %v = f32[4]{0} parameter(1)
  %w = f32[4]{0} parameter(2)
  %taken = pred[4]{0} broadcast(%go), dimensions={}
  %sin.1 = f32[4]{0} sine(%v), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %mul.1 = f32[4]{0} multiply(%sin.1, %v), metadata={op_name="jit(f)/cond/branch_1_fun/mul"}
  %select.1 = f32[4]{0} select(%taken, %mul.1, OTHER), metadata={op_name="jit(f)/cond"}
  %neg.1 = f32[4]{0} negate(%select.1), metadata={op_name="jit(f)/neg"}
  %cos.1 = f32[4]{0} cosine(%v), metadata={op_name="jit(f)/cos"}
  %exp.1 = f32[4]{0} exponential(%select.1), metadata={op_name="jit(f)/exp"}
  ROOT %tuple.1 = (f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(%neg.1, %cos.1, %exp.1)
}
"""


@pytest.mark.parametrize("ids_known", [False, True])
def test_the_last_in_the_branch_took_the_place_of_its_tuple(ids_known: bool) -> None:
    users = users_in(_MODULE.replace("OTHER", "%w"), "v", ids_known=ids_known)
    assert users == ["mul.1", "cos.1", "sin.1"]


@pytest.mark.parametrize("ids_known", [False, True])
def test_there_were_two_tuples_where_the_other_branch_hands_it_on(ids_known: bool) -> None:
    users = users_in(_MODULE.replace("OTHER", "%v"), "v", ids_known=ids_known)
    assert users == ["select.1", "mul.1", "cos.1", "sin.1"]


@pytest.mark.parametrize("ids_known", [False, True])
def test_the_last_that_reads_the_result_took_the_place_of_a_tuple(ids_known: bool) -> None:
    assert users_in(_MODULE.replace("OTHER", "%w"), "select.1", ids_known=ids_known) == ["exp.1", "neg.1"]


def test_of_several_names_the_first_tells_of_which_branch_it_is() -> None:
    text = _MODULE.replace("OTHER", "%w").replace("negate(%select.1)", "negate(%sin.1)")
    name = "jit(f)/while/body/cond/branch_1_fun/"
    text = text.replace("jit(f)/neg", f"{name}neg").replace("jit(f)/cond/branch_1_fun/mul", f"{name}mul")
    joined = text.replace("jit(f)/cond/branch_1_fun/sin", f"{name}mul;while/body/cond/branch_1_fun/sin")
    assert _users(joined, "sin.1", ids_known=False) == ["mul.1", "neg.1"]


_BRANCH = """HloModule m

%one (b: (f32[4])) -> f32[4] {
  %b = (f32[4]{0}) parameter(0)
  %y = f32[4]{0} get-tuple-element(%b), index=0
  %sin.1 = f32[4]{0} sine(%y), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %cos.1 = f32[4]{0} cosine(%y), metadata={op_name="jit(f)/cond/branch_1_fun/cos"}
  ROOT %mul.1 = f32[4]{0} multiply(%sin.1, %cos.1), metadata={op_name="jit(f)/cond/branch_1_fun/mul"}
}

ENTRY %main (go: pred[], v: (f32[4])) -> f32[4] {
  %go = pred[] parameter(0)
  %v = (f32[4]{0}) parameter(1)
  ROOT %cond = f32[4]{0} conditional(%go, %v, %v), true_computation=%one, false_computation=%one
}
"""


@pytest.mark.parametrize("ids_known", [False, True])
def test_a_branch_that_is_one_still_keeps_its_order(ids_known: bool) -> None:
    assert users_in(_BRANCH, "y", ids_known=ids_known) == ["sin.1", "cos.1"]
