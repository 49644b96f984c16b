"""The order of users where a conditional became selects."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_in, users_of

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
    text = _MODULE.replace("OTHER", "%v").replace("%sin.1, %v", "%sin.1, %w")
    assert users_in(text, "v", ids_known=ids_known) == ["sin.1", "select.1", "cos.1"]


@pytest.mark.parametrize("ids_known", [False, True])
def test_the_tuple_of_one_value_took_the_place_of_the_conditional(ids_known: bool) -> None:
    exp = '%exp.2 = f32[4]{0} exponential(%v), metadata={op_name="jit(f)/cond/branch_0_fun/exp"}'
    alone = _MODULE.replace("OTHER", "%exp.2").replace("  %select.1 =", f"  {exp}\n  %select.1 =")
    assert users_in(alone, "v", ids_known=ids_known) == ["exp.2", "cos.1", "sin.1", "mul.1"]


_CHAINED = """HloModule m

%branch (p: (f32[4])) -> f32[4] {
  %p = (f32[4]{0}) parameter(0)
  ROOT %element = f32[4]{0} get-tuple-element(%p), index=0
}

%other (q: (f32[4])) -> f32[4] {
  %q = (f32[4]{0}) parameter(0)
  ROOT %element.2 = f32[4]{0} get-tuple-element(%q), index=0
}

ENTRY %main (go: pred[], v: f32[4], w: f32[4]) -> (f32[4], f32[4], f32[4]) {
  %go = pred[] parameter(0)
  %v = f32[4]{0} parameter(1)
  %w = f32[4]{0} parameter(2)
  %taken = pred[4]{0} broadcast(%go), dimensions={}
  %select.1 = f32[4]{0} select(%taken, %v, %w), metadata={op_name="jit(f)/cond" stack_frame_id=1}
  %abs.1 = f32[4]{0} abs(%select.1), metadata={op_name="jit(f)/abs"}
  %gt.1 = pred[4]{0} compare(%select.1, %w), direction=GT, metadata={op_name="jit(f)/gt"}
  %sin.1 = f32[4]{0} sine(%select.1), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %mul.1 = f32[4]{0} multiply(%select.1, %select.1), metadata={op_name="jit(f)/cond/branch_0_fun/mul"}
  %select.2 = f32[4]{0} select(%gt.1, %sin.1, %mul.1), metadata={op_name="jit(f)/cond" stack_frame_id=2}
  %exp.1 = f32[4]{0} exponential(%select.1), metadata={op_name="jit(f)/exp"}
KEPT
}
"""
_TUPLE = """  %tuple.1 = (f32[4]{0}) tuple(%select.1), metadata={op_name="jit(f)/cond" stack_frame_id=1}
  %kept = f32[4]{0} conditional(%go, %tuple.1, %tuple.1), true_computation=%branch, false_computation=%other
  %both.1 = f32[4]{0} add(%exp.1, %kept)
  ROOT %r = (f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(%abs.1, %select.2, %both.1)"""
_NO_TUPLE = "  ROOT %r = (f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(%abs.1, %select.2, %exp.1)"


@pytest.mark.parametrize(
    ("kept", "users"),
    [
        (_TUPLE, ["tuple.1", "abs.1", "gt.1", "exp.1", "sin.1", "mul.1"]),
        (_NO_TUPLE, ["mul.1", "abs.1", "gt.1", "exp.1", "sin.1"]),
    ],
)
def test_branches_that_read_the_only_result_of_a_conditional_read_an_element_of_their_own(
    kept: str, users: list[str]
) -> None:
    """CSE gave what they compute to the other element, behind all.

    The tuple stays if a conditional that is kept is given it.
    """
    assert users_in(_CHAINED.replace("KEPT", kept), "select.1", ids_known=False) == users


@pytest.mark.parametrize("ids_known", [False, True])
def test_fusions_of_what_read_the_result_are_younger_than_its_tuple(ids_known: bool) -> None:
    """The last of the program filled the hole, and SoftmaxRewriterTriton made the fusion then."""
    softmax = """%softmax (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %sin.2 = f32[4]{0} sine(%p)
}

ENTRY"""
    text = _MODULE.replace("OTHER", "%w").replace("ENTRY", softmax)
    text = text.replace("negate(%select.1)", "fusion(%select.1), kind=kCustom, calls=%softmax")
    assert users_in(text, "select.1", ids_known=ids_known) == ["exp.1", "neg.1"]


_BOTH = """HloModule m

ENTRY %main (go: pred[4], v: f32[4], w: f32[4]) -> f32[4] {
  %go = pred[4]{0} parameter(0)
  %v = f32[4]{0} parameter(1)
  %w = f32[4]{0} parameter(2)
  %sin.1 = f32[4]{0} sine(%v), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %add.1 = f32[4]{0} add(%sin.1, %w), metadata={op_name="jit(f)/cond/branch_1_fun/add"}
  %mul.1 = f32[4]{0} multiply(%add.1, %v), metadata={op_name="jit(f)/cond/branch_1_fun/mul"}
  %exp.1 = f32[4]{0} exponential(FIRST), metadata={op_name="jit(f)/cond/branch_0_fun/exp"}
  %add.2 = f32[4]{0} add(%exp.1, SECOND), metadata={op_name="jit(f)/cond/branch_0_fun/add"}
  ROOT %select.1 = f32[4]{0} select(%go, %mul.1, %add.2), metadata={op_name="jit(f)/cond"}
}
"""


@pytest.mark.parametrize("ids_known", [False, True])
def test_branches_given_the_same_were_given_one_tuple(ids_known: bool) -> None:
    """The last of all that read its element takes its place; of two, each has the last of its branch."""
    same = _BOTH.replace("FIRST", "%v").replace("SECOND", "%w")
    assert users_in(same, "v", ids_known=ids_known) == ["exp.1", "sin.1", "mul.1"]
    turned = _BOTH.replace("FIRST", "%w").replace("SECOND", "%v")
    assert users_in(turned, "v", ids_known=ids_known) == ["add.2", "mul.1", "sin.1"]


@pytest.mark.parametrize("ids_known", [False, True])
def test_the_last_that_reads_the_result_took_the_place_of_a_tuple(ids_known: bool) -> None:
    assert users_in(_MODULE.replace("OTHER", "%w"), "select.1", ids_known=ids_known) == ["exp.1", "neg.1"]


def test_of_several_names_the_first_tells_of_which_branch_it_is() -> None:
    text = _MODULE.replace("OTHER", "%w").replace("negate(%select.1)", "negate(%sin.1)")
    name = "jit(f)/while/body/cond/branch_1_fun/"
    text = text.replace("jit(f)/neg", f"{name}neg").replace("jit(f)/cond/branch_1_fun/mul", f"{name}mul")
    joined = text.replace("jit(f)/cond/branch_1_fun/sin", f"{name}mul;while/body/cond/branch_1_fun/sin")
    assert users_in(joined, "sin.1", ids_known=False) == ["mul.1", "neg.1"]


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


@pytest.mark.parametrize("inner", ["", "cond/branch_0_fun/"], ids=["as written", "inlined"])
def test_a_branch_that_is_one_still_may_have_had_branches(inner: str) -> None:
    text = _BRANCH.replace("/cos", f"/{inner}cos").replace("/mul", f"/{inner}mul")
    text = text.replace("cosine(%y)", "cosine(%sin.1)")
    chosen = """  %ne = pred[4]{0} compare(%y, %y), direction=NE
  ROOT %select.1 = f32[4]{0} select(%ne, %y, %mul.1), metadata={op_name="jit(f)/cond/branch_1_fun/cond"}
}

ENTRY"""
    text = text.replace("ROOT %mul", "%mul").replace("}\n\nENTRY", chosen)
    users = ["cos.1", "mul.1"] if not inner else ["mul.1", "cos.1"]
    assert users_in(text, "sin.1", ids_known=True) == users


_KNOWN = """HloModule m

ENTRY %main (v: f32[4]) -> f32[4] {
  %v = f32[4]{0} parameter(0)
  %exp.1 = f32[4]{0} exponential(%v), metadata={op_name="jit(f)/FUNCTIONcond/branch_0_fun/exp"}
  ROOT %mul.1 = f32[4]{0} multiply(%exp.1, %v), metadata={op_name="jit(f)/FUNCTIONcond/branch_0_fun/mul"}
}
"""


@pytest.mark.parametrize(("function", "users"), [("", ["exp.1", "mul.1"]), ("jit(g)/", ["mul.1", "exp.1"])])
def test_of_a_conditional_outside_of_functions_with_one_outcome_xla_was_given_none(
    function: str, users: list[str]
) -> None:
    assert users_in(_KNOWN.replace("FUNCTION", function), "v", ids_known=True) == users


_ALIKE = """HloModule m

ENTRY %main (go: pred[], v: f32[]) -> f32[] {
  %go = pred[] parameter(0)
  %v = f32[] parameter(1)
  %sin.1 = f32[] sine(%v), metadata={op_name="jit(f)/cond/branch_OWN_fun/sin"}
  %mul.1 = f32[] multiply(%sin.1, %sin.1), metadata={op_name="jit(f)/cond/branch_0_fun/mul"}
  ROOT %select.1 = f32[] select(%go, %sin.1, %mul.1), metadata={op_name="jit(f)/cond"}
}
"""


@pytest.mark.parametrize(("own", "users"), [("1", ["select.1", "mul.1"]), ("0", ["mul.1", "select.1"])])
@pytest.mark.parametrize("ids_known", [False, True])
def test_what_both_branches_compute_is_read_in_its_own_first(
    own: str, users: list[str], ids_known: bool
) -> None:
    assert users_in(_ALIKE.replace("OWN", own), "sin.1", ids_known=ids_known) == users


_RESULTS = """HloModule m

ENTRY %main (a: s32[], v: f32[], w: f32[4]) -> (pred[], f32[], f32[4], f32[], f32[4]) {
  %a = s32[] parameter(0)
  %v = f32[] parameter(1)
  %w = f32[4]{0} parameter(2)
  %zero = s32[] constant(0)
  %one = f32[] constant(1)
  %ones = f32[4]{0} constant({1, 1, 1, 1})
  %gt.1 = pred[] compare(%a, %zero), direction=GT, metadata={op_name="jit(f)/GIVEN/gt"}
  %not.1 = pred[] not(%gt.1), metadata={op_name="jit(f)/GIVEN/not"}
  %select.1.0 = f32[] select(%gt.1, %v, %one), metadata={op_name="jit(f)/GIVEN/cond"}
  %spread = pred[4]{0} broadcast(%gt.1), dimensions={}
  %select.2.0 = f32[4]{0} select(%spread, %w, %ones), metadata={op_name="jit(f)/GIVEN/cond"}
  %select.3.0 = f32[] select(%gt.1, %one, %v), metadata={op_name="jit(f)/GIVEN/cond"}
  %select.4.0 = f32[4]{0} select(%spread, %ones, %w), metadata={op_name="jit(f)/GIVEN/cond"}
  ROOT %t = (pred[], f32[], f32[4], f32[], f32[4]) tuple(%not.1, %select.1.0,\
 %select.2.0, %select.3.0, %select.4.0)
}
"""


@pytest.mark.parametrize(
    ("given", "users"),
    [
        # The broadcast for the last result took the place of the conditional, and was one too many.
        ("g", ["select.3.0", "not.1", "select.1.0", "spread"]),
        ("cond/branch_1_fun", ["not.1", "select.1.0", "spread", "select.3.0"]),
    ],
)
@pytest.mark.parametrize("ids_known", [False, True])
def test_selects_take_the_place_of_a_conditional(given: str, users: list[str], ids_known: bool) -> None:
    assert users_in(_RESULTS.replace("GIVEN", given), "gt.1", ids_known=ids_known) == users


def test_results_that_were_made_anew_are_among_them_still() -> None:
    """Layout normalization gave one the next number of all."""
    given = _RESULTS.replace("GIVEN", "g").replace("select.2.0", "select.7.0")
    assert users_in(given, "gt.1", ids_known=True) == ["select.3.0", "not.1", "select.1.0", "spread"]


def test_what_spreads_the_predicate_is_where_the_results_are() -> None:
    """They are around the predicate in the source, which is written twice for all that is known."""
    tables = places_in_source(("f", 1, 5, 10), ("f", 1, 1, 20))
    given = _RESULTS.replace("GIVEN", "g").replace('/gt"', '/gt" stack_frame_id=1')
    given = given.replace('/cond"', '/cond" stack_frame_id=2').replace("\n", f"\n{tables}\n", 1)
    assert users_in(given, "gt.1", ids_known=True) == ["select.3.0", "select.1.0", "spread", "not.1"]


@pytest.mark.parametrize("ids_known", [False, True])
def test_of_one_predicate_the_conditional_met_first_comes_first(ids_known: bool) -> None:
    given = _RESULTS.replace("GIVEN", "g")
    for result in ("select.1.0", "select.2.0"):
        old = next(line for line in given.splitlines() if f"%{result} =" in line)
        given = given.replace(old, old.replace("g/cond", "h/cond"))
    assert users_in(given, "gt.1", ids_known=ids_known) == ["spread", "not.1", "select.1.0", "select.3.0"]


@pytest.mark.parametrize("ids_known", [False, True])
@pytest.mark.parametrize(
    ("of_true", "of_false", "users"),
    [
        (("sin", "cos"), ("mul", "exp"), ["exp.0", "cos.0", "sin.0", "mul.0"]),
        (("sin", "u"), ("mul", "exp"), ["exp.0", "select.1", "sin.0", "mul.0"]),
        (("u", "sin"), ("exp", "mul"), ["mul.0", "exp.0", "sin.0", "select.0"]),
    ],
    ids=["no result of its own", "the second result", "the first result"],
)
def test_a_tuple_goes_ahead_of_the_users_in_the_other_branch(
    of_true: tuple[str, str], of_false: tuple[str, str], users: list[str], ids_known: bool
) -> None:
    """XLA's lists for `lax.cond` of two values of which the true branch reads but the first."""
    written = {
        "sin": '  %sin.0 = f32[4]{0} sine(%u), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}\n',
        "cos": '  %cos.0 = f32[4]{0} cosine(%u), metadata={op_name="jit(f)/cond/branch_1_fun/cos"}\n',
        "mul": '  %mul.0 = f32[4]{0} multiply(%u, %w), metadata={op_name="jit(f)/cond/branch_0_fun/mul"}\n',
        "exp": '  %exp.0 = f32[4]{0} exponential(%u), metadata={op_name="jit(f)/cond/branch_0_fun/exp"}\n',
    }
    chosen, of_all = "", '{op_name="jit(f)/cond"}'
    for k, (one, other) in enumerate(zip(of_true, of_false, strict=True)):
        chosen += written.get(one, "") + written[other]
        read = [f"%{x}.0" if x in written else "%u" for x in (one, other)]
        chosen += f"  %select.{k} = f32[4]{{0}} select(%taken, {', '.join(read)}), metadata={of_all}\n"
    text = f"""HloModule m

ENTRY %main (go: pred[], v: f32[4], w: f32[4]) -> f32[4] {{
  %go = pred[] parameter(0)
  %v = f32[4]{{0}} parameter(1)
  %w = f32[4]{{0}} parameter(2)
  %taken = pred[4]{{0}} broadcast(%go), dimensions={{}}
  %u = f32[4]{{0}} tanh(%v), metadata={{op_name="jit(f)/tanh"}}
{chosen}  ROOT %add.1 = f32[4]{{0}} add(%select.0, %select.1), metadata={{op_name="jit(f)/add"}}
}}
"""
    assert users_in(text, "u", ids_known=ids_known) == users


def test_what_both_branches_compute_stood_in_the_other_one_too() -> None:
    """XLA's list for the gradient of a `lax.cond`, whose branches both have the product `mul.1`."""
    text = """HloModule m

ENTRY %main (go: pred[], v: f32[4], w: f32[4]) -> (f32[4], f32[4]) {
  %go = pred[] parameter(0)
  %v = f32[4]{0} parameter(1)
  %w = f32[4]{0} parameter(2)
  %taken = pred[4]{0} broadcast(%go), dimensions={}
  %u = f32[4]{0} tanh(%v), metadata={op_name="jit(f)/tanh"}
  %mul.1 = f32[4]{0} multiply(%u, %w), metadata={op_name="jit(f)/cond/branch_1_fun/mul"}
  %mul.0 = f32[4]{0} multiply(%u, %v), metadata={op_name="jit(f)/cond/branch_0_fun/mul"}
  %select.0 = f32[4]{0} select(%taken, %mul.1, %mul.0), metadata={op_name="jit(f)/cond"}
  %neg.0 = f32[4]{0} negate(%mul.1), metadata={op_name="jit(f)/cond/branch_0_fun/neg"}
  %select.1 = f32[4]{0} select(%taken, %u, %neg.0), metadata={op_name="jit(f)/cond"}
  ROOT %tuple.1 = (f32[4]{0}, f32[4]{0}) tuple(%select.0, %select.1)
}
"""
    assert users_in(text, "u", ids_known=True) == ["mul.0", "select.1", "mul.1"]


def test_what_a_branch_read_before_a_convert_came_between_had_its_tuple() -> None:
    """XLA's list where the true branch has the sine of a `bf16` value, and the other hands that on."""
    text = """HloModule m

ENTRY %main (go: pred[], v: bf16[4], w: bf16[4]) -> (bf16[4], bf16[4], bf16[4]) {
  %go = pred[] parameter(0)
  %v = bf16[4]{0} parameter(1)
  %w = bf16[4]{0} parameter(2)
  %taken = pred[4]{0} broadcast(%go), dimensions={}
  %u = bf16[4]{0} add(%v, %w), metadata={op_name="jit(f)/add"}
  %wide = f32[4]{0} convert(%u), metadata={op_name="jit(f)/convert_element_type"}
  %sin.0 = f32[4]{0} sine(%wide), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %convert.1 = bf16[4]{0} convert(%sin.0), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %mul.1 = bf16[4]{0} multiply(%u, %w), metadata={op_name="jit(f)/cond/branch_0_fun/mul"}
  %select.0 = bf16[4]{0} select(%taken, %convert.1, %mul.1), metadata={op_name="jit(f)/cond"}
  %cos.0 = f32[4]{0} cosine(%wide), metadata={op_name="jit(f)/cond/branch_1_fun/cos"}
  %convert.2 = bf16[4]{0} convert(%cos.0), metadata={op_name="jit(f)/cond/branch_1_fun/cos"}
  %select.1 = bf16[4]{0} select(%taken, %convert.2, %u), metadata={op_name="jit(f)/cond"}
  %rev.1 = bf16[4]{0} reverse(%u), dimensions={0}, metadata={op_name="jit(f)/rev"}
  ROOT %tuple.1 = (bf16[4]{0}, bf16[4]{0}, bf16[4]{0}) tuple(%select.0, %select.1, %rev.1)
}
"""
    assert users_in(text, "u", ids_known=True) == ["wide", "select.1", "mul.1", "rev.1"]


_OF_A_CALL = """HloModule m

%less (a: f32[], b: f32[], c: s32[], d: s32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  %c = s32[] parameter(2)
  %d = s32[] parameter(3)
  ROOT %less.1 = pred[] compare(%a, %b), direction=LT
}

ENTRY %main (p: f32[4], q: f32[4]) -> (f32[4], f32[4], f32[4], s32[4]) {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  %iota.1 = s32[4]{0} iota(), iota_dimension=0
  %sort.1 = (f32[4]{0}, s32[4]{0}) sort(%p, %iota.1), dimensions={0}, to_apply=%less, CALL/sort"}
  %value.1 = f32[4]{0} get-tuple-element(%sort.1), index=0
  %slice.1 = f32[1]{0} slice(SLICED), slice={[0:1]}, metadata={op_name="jit(f)/slice"}
  %bitcast.1 = f32[] bitcast(%slice.1)
  %gt.1 = pred[] compare(%bitcast.1, %bitcast.1), direction=GT, metadata={op_name="jit(f)/gt"}
  %taken = pred[4]{0} broadcast(%gt.1), dimensions={}
  %rev.1 = f32[4]{0} reverse(%value.1), dimensions={0}, CALL/rev"}
  %sin.1 = f32[4]{0} sine(%rev.1), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %exp.1 = f32[4]{0} exponential(%q), metadata={op_name="jit(f)/cond/branch_0_fun/exp"}
  %select.1 = f32[4]{0} select(%taken, %sin.1, %exp.1), metadata={op_name="jit(f)/cond"}
  %neg.1 = f32[4]{0} negate(%rev.1), metadata={op_name="jit(f)/neg"}
  %add.1 = f32[4]{0} add(%rev.1, %q), metadata={op_name="jit(f)/add"}
  %place.1 = s32[4]{0} get-tuple-element(%sort.1), index=1
  ROOT %r = (f32[4]{0}, f32[4]{0}, f32[4]{0}, s32[4]{0}) tuple(%select.1, %neg.1, %add.1, RESULT)
}
""".replace("CALL", 'metadata={op_name="jit(f)/jit(sort)')


@pytest.mark.parametrize(
    ("sliced", "result", "users"),
    [
        ("%q", "%iota.1", ["sin.1", "neg.1", "add.1"]),
        ("%q", "%place.1", ["add.1", "sin.1", "neg.1"]),
        ("%value.1", "%place.1", ["neg.1", "add.1", "sin.1"]),
    ],
    ids=["no tuple of the call", "the call has another result", "and a slice of the first went"],
)
def test_what_a_call_gives_to_branches_had_the_tuple_of_its_results_in_front(
    sliced: str, result: str, users: list[str]
) -> None:
    """Another element of what was sorted is another result, and a slice outside had been of this one."""
    text = _OF_A_CALL.replace("SLICED", sliced).replace("RESULT", result)
    assert users_in(text, "rev.1", ids_known=True) == users


_STILL_THERE = """HloModule m

%first (p: (s32[4])) -> s32[4] {
  %p = (s32[4]{0}) parameter(0)
  %of = s32[4]{0} get-tuple-element(%p), index=0
  %place = s32[4]{0} abs(%of), metadata={op_name="jit(f)/layer_0/cond/branch_0_fun/abs"}
  %lt = pred[4]{0} compare(%place, %of), direction=LT, metadata={op_name="jit(f)/INNER/lt"}
  %add = s32[4]{0} add(%place, %of), metadata={op_name="jit(f)/INNER/add"}
  ROOT %chosen = s32[4]{0} select(%lt, %add, %place), metadata={op_name="jit(f)/INNER/select_n"}
}

%other (p: (s32[4])) -> s32[4] {
  %p = (s32[4]{0}) parameter(0)
  ROOT %of = s32[4]{0} get-tuple-element(%p), index=0
}

ENTRY %main (go: pred[], v: s32[4]) -> s32[4] {
  %go = pred[] parameter(0)
  %v = s32[4]{0} parameter(1)
  %given = (s32[4]{0}) tuple(%v)
  ROOT %c = s32[4]{0} conditional(%go, %given, %given), true_computation=%first, false_computation=%other
}
"""


@pytest.mark.parametrize(
    ("inner", "users"),
    [
        ("layer_9/cond/branch_0_fun", ["lt", "add", "chosen"]),
        ("layer_9/cond/branch_0_fun/jit(g)/cond/branch_1_fun", ["chosen", "lt", "add"]),
    ],
    ids=["named after another call", "selected within"],
)
def test_a_branch_that_is_still_there_is_none_that_was_selected(inner: str, users: list[str]) -> None:
    assert users_in(_STILL_THERE.replace("INNER", inner), "place", ids_known=True) == users


_OF_ONE_NAME = """HloModule m

ENTRY %main (go: pred[4], also: pred[4], v: f32[4], w: f32[4]) -> (f32[4], f32[4], f32[4]) {
  %go = pred[4]{0} parameter(0)
  %also = pred[4]{0} parameter(1)
  %v = f32[4]{0} parameter(2), metadata={op_name="v"}
  %w = f32[4]{0} parameter(3)
  %sin.1 = f32[4]{0} sine(%v), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %exp.1 = f32[4]{0} exponential(%v), metadata={op_name="jit(f)/cond/branch_0_fun/exp"}
  %select.1 = f32[4]{0} select(%go, %sin.1, %exp.1), metadata={op_name="jit(f)/cond"}
  %sin.2 = f32[4]{0} sine(%w), metadata={op_name="jit(f)/cond/branch_1_fun/sin"}
  %exp.2 = f32[4]{0} exponential(%w), metadata={op_name="jit(f)/cond/branch_0_fun/exp"}
  %select.2 = f32[4]{0} select(PREDICATE, %sin.2, %exp.2), metadata={op_name="jit(f)/cond"}
  %cos.1 = f32[4]{0} cosine(%v), metadata={op_name="jit(f)/cos"}
  ROOT %tuple.1 = (f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(%select.1, %cos.1, %select.2)
}
"""


@pytest.mark.parametrize("ids_known", [False, True])
@pytest.mark.parametrize(
    ("predicate", "users"),
    [("%also", ["exp.1", "cos.1", "sin.1"]), ("%go", ["cos.1", "exp.1", "sin.1"])],
    ids=["two conditionals", "two results of one"],
)
def test_branches_of_another_conditional_of_that_name_were_given_their_own(
    predicate: str, users: list[str], ids_known: bool
) -> None:
    assert users_in(_OF_ONE_NAME.replace("PREDICATE", predicate), "v", ids_known=ids_known) == users


@pytest.mark.parametrize("ids_known", [False, True])
@pytest.mark.parametrize(
    ("read", "users"),
    [("%sin.1", ["exp.1", "mul.1", "sin.1"]), ("%select.1", ["exp.1", "sin.1", "mul.1"])],
    ids=["computed outside, too", "the result is read"],
)
def test_what_a_branch_computes_as_others_do_left_a_place_to_the_last(
    read: str, users: list[str], ids_known: bool
) -> None:
    """HloCSE comes to the one in the branch first."""
    text = _OF_ONE_NAME.replace("PREDICATE", "%also").replace("cosine(%v)", f"cosine({read})")
    name = "jit(f)/cond/branch_1_fun/mul"
    chosen = f'%mul.1 = f32[4]{{0}} multiply(%sin.1, %v), metadata={{op_name="{name}"}}'
    text = text.replace("  %select.1", f"  {chosen}\n  %select.1").replace("(%go, %sin.1,", "(%go, %mul.1,")
    assert users_in(text, "v", ids_known=ids_known) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("v", ["exp.1", "cos.1", "turned.1"]), ("jit(f)/transpose", ["turned.1", "exp.1", "cos.1"])],
    ids=["by a pass", "by the program"],
)
def test_what_a_branch_reads_in_another_layout_is_of_that_branch(name: str, users: list[str]) -> None:
    text = _OF_ONE_NAME.replace("f32[4]{0}", "f32[4,4]{1,0}").replace("pred[4]{0}", "pred[4,4]{1,0}")
    text = text.replace("f32[4]", "f32[4,4]").replace("pred[4]", "pred[4,4]").replace("PREDICATE", "%also")
    turned = f'  %turned.1 = f32[4,4]{{1,0}} transpose(%v), dimensions={{1,0}}, metadata={{op_name="{name}"}}'
    text = text.replace("  %sin.1", f"{turned}\n  %sin.1").replace(" sine(%v)", " sine(%turned.1)")
    assert users_in(text, "v", ids_known=True) == users


@pytest.mark.parametrize(
    ("op_name", "users"),
    [("cond", ["select.3", "select.1", "select.2"]), ("other", ["select.1", "select.2", "select.3"])],
    ids=["of the branch", "of the program"],
)
def test_a_number_that_is_several_results_of_a_branch_was_in_a_tuple_of_them(
    op_name: str, users: list[str]
) -> None:
    """Updates that are zero where a gradient is not finite."""
    body = f"""  %done = pred[] parameter(0)
  %p = f32[8]{{0}} parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %w = f32[8]{{0}} parameter(3)
  %c = f32[] constant(0)
  %chosen = pred[8]{{0}} broadcast(%done), dimensions={{}}{named("cond")}
  %zeros = f32[8]{{0}} broadcast(%c), dimensions={{}}{named(op_name)}
  %select.1 = f32[8]{{0}} select(%chosen, %p, %zeros){named("cond")}
  %select.2 = f32[8]{{0}} select(%chosen, %q, %zeros){named("cond")}
  %select.3 = f32[8]{{0}} select(%chosen, %w, %zeros){named("cond")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%select.1, %select.2, %select.3)"""
    ids = "done p q w c r chosen select.1 select.2 select.3 zeros"
    assert users_of("zeros", body, ids=ids) == users
