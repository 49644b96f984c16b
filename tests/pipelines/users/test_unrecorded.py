"""The order of users of what XLA's record of PriorityFusion says nothing about; its log of multi-output
fusion does (`TF_CPP_VMODULE=multi_output_fusion=3`)."""

from __future__ import annotations

import pytest

from .lists import named, users_as_guessed, users_in, users_of

_CONVOLUTION = """  %p = f32[8,16,16,4]{3,2,1,0} parameter(0)
  %w = f32[4,4,1,1]{3,2,1,0} parameter(1)
  %CALL = (f32[8,16,16,4]{3,2,1,0}, u8[0]{0}) custom-call(%p, %w), custom_call_target="__cudnn$convForward"
  %scratch = u8[0]{0} get-tuple-element(%CALL), index=1
  %y = f32[8,16,16,4]{3,2,1,0} get-tuple-element(%CALL), index=0
  %one = f32[8,16,16,4]{3,2,1,0} negate(%y)
  %two = f32[8,16,16,4]{3,2,1,0} exponential(%y)
  %three = f32[8,16,16,4]{3,2,1,0} sine(%y)
  %four = f32[8,16,16,4]{3,2,1,0} add(%one, %two)
  ROOT %r = f32[8,16,16,4]{3,2,1,0} add(%four, %three)"""


def test_the_last_user_of_a_convolution_took_the_place_of_a_tuple() -> None:
    """cudnn-conv.1 is what layout normalization made of the one call, cudnn-conv."""
    assert users_as_guessed("y", _CONVOLUTION.replace("CALL", "cudnn-conv.1")) == ["three", "one", "two"]


def test_bitcasts_behind_a_convolution_had_been_one_when_the_tuple_went() -> None:
    """A normalization in groups: the reshape, and what the sum over some of its dimensions reads."""
    groups = """  %groups = f32[8,16,16,2,2]{4,3,2,1,0} bitcast(%y)
  %summed = f32[8,256,4]{2,1,0} bitcast(%y)
  ROOT %r = (f32[8,16,16,2,2]{4,3,2,1,0}, f32[8,256,4]{2,1,0}) tuple(%groups, %summed)"""
    body = _CONVOLUTION.partition("  %one =")[0] + groups
    assert users_as_guessed("y", body.replace("CALL", "cudnn-conv.1")) == ["groups", "summed"]


def test_a_convolution_that_had_its_layouts_already_keeps_its_users() -> None:
    assert users_as_guessed("y", _CONVOLUTION.replace("CALL", "cudnn-conv")) == ["one", "two", "three"]


_SCAN = """HloModule m

%body.BODY (t: (f32[4], f32[4])) -> (f32[4], f32[4]) {{
  %t = (f32[4]{{0}}, f32[4]{{0}}) parameter(0)
  %x = f32[4]{{0}} get-tuple-element(%t), index=0
  %z = f32[4]{{0}} get-tuple-element(%t), index=1
  %a = f32[4]{{0}} negate(%x){inside}
  %b = f32[4]{{0}} exponential(%x){inside}
  %c = f32[4]{{0}} add(%a, %x){inside}
  %d = f32[4]{{0}} multiply(%b, %c){inside}
  ROOT %next = (f32[4]{{0}}, f32[4]{{0}}) tuple(%d, %z)
}}

%cond (t.1: (f32[4], f32[4])) -> pred[] {{
  %t.1 = (f32[4]{{0}}, f32[4]{{0}}) parameter(0)
  ROOT %go = pred[] constant(true)
}}

ENTRY %main (i: (f32[4], f32[4])) -> (f32[4], f32[4]) {{
  %i = (f32[4]{{0}}, f32[4]{{0}}) parameter(0)
  ROOT %w = (f32[4]{{0}}, f32[4]{{0}}) while(%i), condition=%cond, body=%body.BODY
}}"""


@pytest.mark.parametrize("ids_known", [False, True])
def test_what_a_scan_does_was_a_function_of_the_loops_elements(ids_known: bool) -> None:
    """The last clone took the place of the call."""
    text = _SCAN.format(inside=named("while/body/eval_jaxpr/x")).replace("BODY", "1")
    assert users_in(text, "x", ids_known=ids_known) == ["c", "a", "b"]


@pytest.mark.parametrize(("ids_known", "users"), [(True, ["c", "a", "b"]), (False, ["a", "b", "c"])])
def test_a_function_was_given_an_element_that_bears_no_name(ids_known: bool, users: list[str]) -> None:
    """A key that is split in a loop. Ids tell that the front end took the element out."""
    text = _SCAN.format(inside=named("while/body/jit(_threefry_split)/x")).replace("BODY", "1")
    assert users_in(text, "x", ids_known=ids_known) == users


def test_a_tuple_of_all_elements_was_the_first_user_where_counters_were_merged() -> None:
    text = _SCAN.format(inside=named("while/body/eval_jaxpr/x")).replace("BODY", "1.clone.clone.sunk.clone")
    assert users_in(text, "x", ids_known=True) == ["b", "c", "a"]


@pytest.mark.parametrize(("body", "users"), [("1", ["b", "c", "a"]), ("1.clone", ["c", "a", "b"])])
def test_a_tuple_was_the_first_user_where_the_body_was_cloned_once(body: str, users: list[str]) -> None:
    """In the clone all the others are in the order of the walk, of the function or not."""
    inside = named("while/body/eval_jaxpr/x")
    text = _SCAN.format(inside=inside).replace("BODY", body)
    assert users_in(text.replace(f"%x){inside}\n  %d", "%x)\n  %d"), "x", ids_known=True) == users


def test_the_body_of_another_loop_is_no_function() -> None:
    text = _SCAN.format(inside=named("while/body/x")).replace("BODY", "1")
    assert users_in(text, "x", ids_known=True) == ["a", "b", "c"]


_FACTORS = f"""  %p = f32[64]{{0}} parameter(0)
  %x = f32[64]{{0}} negate(%p)
  %small = f32[] constant(0.09)
  %BROADCAST = f32[64]{{0}} broadcast(%small), dimensions={{}}{named("mul")}
  %mul.2 = f32[64]{{0}} multiply(%x, %BROADCAST){named("mul")}
  %large = f32[] constant(0.9)
  %broadcast.83 = f32[64]{{0}} broadcast(%large), dimensions={{}}
  %mul.1 = f32[64]{{0}} multiply(%x, %broadcast.83){named("mul")}
  ROOT %r = (f32[64]{{0}}, f32[64]{{0}}) tuple(%mul.2, %mul.1)"""


def test_a_product_with_two_merged_numbers_comes_behind_the_one_that_it_was_of() -> None:
    """x * 0.9 is a new momentum, of which 0.1 * (x * 0.9) is taken off the parameter."""
    assert users_as_guessed("x", _FACTORS.replace("BROADCAST", "broadcast.97")) == ["mul.1", "mul.2"]


def test_twice_a_value_is_gone_that_the_derivative_of_its_square_had() -> None:
    """What was of that has its place, whatever other product of the value with a number is left."""
    text = _FACTORS.replace("BROADCAST", "broadcast.97")
    text = text.replace('jit(f)/mul"', 'jit(f)/transpose(jvp())/mul"')
    square = f"  %square.1 = f32[64]{{0}} multiply(%x, %OF){named('square')}\n  ROOT"
    for of, users in (("x", ["mul.2", "mul.1", "square.1"]), ("p", ["mul.1", "square.1", "mul.2"])):
        assert users_as_guessed("x", text.replace("  ROOT", square.replace("OF", of))) == users


def test_a_product_with_a_number_of_the_program_keeps_its_place() -> None:
    assert users_as_guessed("x", _FACTORS.replace("BROADCAST", "mul.7")) == ["mul.2", "mul.1"]


_PRODUCT = f"""  %p = f32[512,64]{{1,0}} parameter(0)
  %q = f32[64,256]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %x = f32[512,256]{{1,0}} dot(%p, %q), DIMENSIONS{named("dot_general")}
  %total = f32[256]{{0}} reduce(%x, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %shaped = f32[4,128,256]{{2,1,0}} bitcast(%x){named("NAME")}
  ROOT %r = (f32[256]{{0}}, f32[4,128,256]{{2,1,0}}) tuple(%total, %shaped)""".replace(
    "DIMENSIONS", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
)


def test_the_reshape_behind_a_product_of_three_dimensions_was_its_first_user() -> None:
    assert users_as_guessed("x", _PRODUCT.replace("NAME", "dot_general")) == ["shaped", "total"]


def test_a_reshape_of_the_program_behind_a_product_keeps_its_place() -> None:
    assert users_as_guessed("x", _PRODUCT.replace("NAME", "reshape")) == ["total", "shaped"]


_REVERSE = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %x = f32[8,8]{{1,0}} sine(%p)
  %half = f32[] constant(0.5)
  %each = f32[8,8]{{1,0}} broadcast(%half), dimensions={{}}
  %reverse.4 = f32[8,8]{{1,0}} reverse(%x), dimensions={{0,1}}
  %multiply.3 = f32[8,8]{{1,0}} multiply(%reverse.4, %each)
  %halved = f32[8,8]{{1,0}} multiply(%x, %OTHER){named("mul")}
  ROOT %r = f32[8,8]{{1,0}} divide(%multiply.3, %halved)"""


def test_a_reverse_that_was_behind_a_product_with_a_number_comes_last() -> None:
    assert users_as_guessed("x", _REVERSE.replace("OTHER", "each")) == ["halved", "reverse.4"]
    assert users_as_guessed("x", _REVERSE.replace("OTHER", "p")) == ["reverse.4", "halved"]


def test_two_tuples_were_the_first_users_of_the_result_of_a_loop_of_which_counters_were_merged() -> None:
    text = _SCAN.format(inside=named("while/body/x")).replace(
        "ROOT %w = (f32[4]{0}, f32[4]{0}) while(%i), condition=%cond, body=%body.BODY",
        """%w = (f32[4]{0}, f32[4]{0}) while(%i), condition=%cond, body=%body.BODY
  %y = f32[4]{0} get-tuple-element(%w), index=0
  %e = f32[4]{0} negate(%y)
  %g = f32[4]{0} add(%e, %y)
  %h = f32[4]{0} multiply(%g, %y)
  ROOT %both = (f32[4]{0}, f32[4]{0}) tuple(%h, %h)""",
    )
    assert users_in(text.replace("BODY", "1"), "y", ids_known=True) == ["e", "g", "h"]
    merged = text.replace("BODY", "1.clone.clone.sunk.clone")
    assert users_in(merged, "y", ids_known=True) == ["g", "h", "e"]


_PARTS = f"""  %p = f32[512,64]{{1,0}} parameter(0)
  %q = f32[64,768]{{1,0}} parameter(1)
  %call = (f32[512,768]{{1,0}}, s8[64]{{0}}) custom-call(%p, %q), TARGET{named("transpose")}
  %x = f32[512,768]{{1,0}} get-tuple-element(%call), index=0
  %slice.4 = f32[512,128]{{1,0}} slice(%x), slice={{[0:512], [512:640]}}{named("NAME")}
  %slice.3 = f32[512,512]{{1,0}} slice(%x), slice={{[0:512], [0:512]}}{named("NAME")}
  %slice.5 = f32[512,128]{{1,0}} slice(%x), slice={{[0:512], [640:768]}}{named("NAME")}
  %shape = f32[512,256]{{1,0}} concatenate(%slice.4, %slice.5), dimensions={{1}}
  ROOT %r = f32[512,768]{{1,0}} concatenate(%shape, %slice.3), dimensions={{1}}""".replace(
    "TARGET", 'custom_call_target="__cublas$gemm"'
)
_BY_AGE = "p q call x slice.3 slice.4 slice.5 shape r"


def test_parts_of_a_merged_product_that_bears_the_name_of_a_transpose_come_by_age() -> None:
    """The gradients of three weights, each a product that is transposed: cuBLAS gives it at once."""
    merged = ["slice.3", "slice.4", "slice.5"]
    assert users_of("x", _PARTS.replace("NAME", "transpose"), ids=_BY_AGE) == merged
    for slicing in ("slice", "split"):  # of the program; the latter was made anew
        assert users_of("x", _PARTS.replace("NAME", slicing), ids=_BY_AGE) == [
            "slice.4",
            "slice.3",
            "slice.5",
        ]


_WIDE_SUM = f"""  %p = f32[8,64]{{1,0}} parameter(0)
  %zero = bf16[] constant(0)
  %start = f32[] convert(%zero)
  %reduce_sum.4.0 = f32[64]{{0}} reduce(%p, %start), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %none = f32[] constant(0)
  %square.1.0 = f32[64]{{0}} multiply(%reduce_sum.4.0, %reduce_sum.4.0){named("square")}
  %reduce_sum.6.0 = f32[] reduce(%square.1.0, %none), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %each = f32[64]{{0}} broadcast(%reduce_sum.6.0), dimensions={{}}{named("mul")}
  %mul.3.0 = f32[64]{{0}} multiply(%reduce_sum.4.0, %each){named("mul")}
  ROOT %r = (f32[64]{{0}}, bf16[]) tuple(%mul.3.0, %zero)"""


def test_a_narrow_sum_that_is_read_wide_had_one_convert_for_a_user() -> None:
    """reduce_sum.5, a sum of it that went, left its place to that; the convert's last user took its own."""
    assert users_as_guessed("reduce_sum.4.0", _WIDE_SUM) == ["mul.3.0", "square.1.0"]
