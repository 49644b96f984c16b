"""Sums that kept dimensions of one, which a reshape had; it went, and the last user took its place."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_LOG = f"""  %log.1.0 = f32[16]{{0}} log(%reduce_sum.7.0){named("log", frame=5)}
  %sub.2.0 = f32[16,64]{{1,0}} broadcast(%log.1.0), dimensions={{0}}{named("sub", frame=6)}"""
_COMPARED = f"""  %gt.1.0 = pred[16]{{0}} compare(%reduce_sum.7.0, %w), direction=GT{named("gt", frame=5)}
  %sub.2.0 = f32[16,64]{{1,0}} broadcast(%w), dimensions={{0}}{named("sub", frame=6)}"""


@pytest.mark.parametrize(
    ("first", "reader", "kind", "users"),
    [
        (
            "log.1.0",
            _LOG,
            "f32[16]",
            ["div.3.0", "log.1.0"],
        ),  # log_softmax spreads the logarithm of the sum again
        (
            "gt.1.0",
            _COMPARED,
            "pred[16]",
            ["gt.1.0", "div.3.0"],
        ),  # distances are compared with a number of each pair
    ],
)
def test_a_sum_outside_of_derivatives_kept_dimensions_if_it_is_spread_again(
    first: str, reader: str, kind: str, users: list[str]
) -> None:
    summed = "dimensions={1}, to_apply=%sum" + named("reduce_sum", frame=4)
    body = f"""  %x = f32[16,64]{{1,0}} parameter(0)
  %w = f32[16]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %reduce_sum.7.0 = f32[16]{{0}} reduce(%x, %zero), {summed}
{reader}
  %div.3.0 = f32[16]{{0}} divide(%w, %reduce_sum.7.0){named("div", frame=7)}
  %reduce_sum.9.0 = f32[16]{{0}} reduce(%sub.2.0, %zero), {summed}
  ROOT %r = (f32[16]{{0}}, f32[16]{{0}}, {kind}{{0}}) tuple(%div.3.0, %reduce_sum.9.0, %{first})"""
    assert users_of("reduce_sum.7.0", body) == users


@pytest.mark.parametrize(
    ("number", "users"),
    [(3, ["mul.2.0", "mul.1.0"]), (4, ["mul.1.0", "mul.2.0"])],
    ids=["of the other the next number is missing", "it is not"],
)
def test_the_last_sum_of_a_derivative_is_as_the_others(number: int, users: list[str]) -> None:
    summed = "dimensions={0}, to_apply=%sum" + named("transpose(jvp())/reduce_sum", frame=4)
    body = f"""  %x = f32[16,64]{{1,0}} parameter(0)
  %y = f32[16,64]{{1,0}} parameter(1)
  %w = f32[64]{{0}} parameter(2)
  %zero = f32[] constant(0)
  %reduce_sum.{number}.0 = f32[64]{{0}} reduce(%x, %zero), {summed}
  %reduce_sum.5.0 = f32[64]{{0}} reduce(%y, %zero), {summed}
  %mul.1.0 = f32[64]{{0}} multiply(%reduce_sum.5.0, %w){named("mul", frame=5)}
  %mul.2.0 = f32[64]{{0}} multiply(%reduce_sum.5.0, %reduce_sum.5.0){named("mul", frame=6)}
  ROOT %r = (f32[64]{{0}}, f32[64]{{0}}, f32[64]{{0}}) tuple(%reduce_sum.{number}.0, %mul.1.0, %mul.2.0)"""
    assert users_of("reduce_sum.5.0", body) == users


@pytest.mark.parametrize(
    ("of", "users"),
    [("dot_general", ["mul.2.0", "multiply.1.0"]), ("mul", ["multiply.1.0", "mul.2.0"])],
    ids=["a dot", "a product made since"],
)
def test_what_was_a_dot_read_the_sum_that_was_summed_again(of: str, users: list[str]) -> None:
    summed = "dimensions={0}, to_apply=%sum" + named("transpose(jvp())/reduce_sum", frame=4)
    body = f"""  %x = f32[16,64]{{1,0}} parameter(0)
  %w = f32[64]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %reduce_sum.3.0 = f32[64]{{0}} reduce(%x, %zero), {summed}
  %multiply.1.0 = f32[64]{{0}} multiply(%reduce_sum.3.0, %w){named(of, frame=5)}
  %mul.2.0 = f32[64]{{0}} multiply(%reduce_sum.3.0, %reduce_sum.3.0){named("mul", frame=6)}
  %reduce_sum.5.0 = f32[64]{{0}} reduce(%x, %zero), {summed}
  ROOT %r = (f32[64]{{0}}, f32[64]{{0}}, f32[64]{{0}}) tuple(%multiply.1.0, %mul.2.0, %reduce_sum.5.0)"""
    assert users_of("reduce_sum.3.0", body) == users


@pytest.mark.parametrize(("place", "users"), [("norm", ["sin.1", "cos.1"]), ("dense", ["cos.1", "sin.1"])])
def test_what_stands_behind_a_sum_of_its_place_was_not_summed_again(place: str, users: list[str]) -> None:
    """A layer's bias and scale: the bias was summed once, or its second sum would have the number."""
    reduced = "dimensions={1}, to_apply=%sum"
    body = f"""  %x = f32[16,64]{{1,0}} parameter(0)
  %y = f32[16,64]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %reduce_sum.6.0 = f32[16]{{0}} reduce(%y, %zero), {reduced}{named(f"transpose(jvp())/{place}/reduce_sum")}
  %reduce_sum.7.0 = f32[16]{{0}} reduce(%x, %zero), {reduced}{named("transpose(jvp())/norm/reduce_sum")}
  %sin.1 = f32[16]{{0}} sine(%reduce_sum.7.0){named("sin")}
  %cos.1 = f32[16]{{0}} cosine(%reduce_sum.7.0){named("cos")}
  %reduce_sum.9.0 = f32[16]{{0}} reduce(%y, %zero), {reduced}{named("transpose(jvp())/out/reduce_sum")}
  ROOT %r = (f32[16]{{0}}, f32[16]{{0}}, f32[16]{{0}}, f32[16]{{0}})\
 tuple(%reduce_sum.6.0, %sin.1, %cos.1, %reduce_sum.9.0)"""
    assert users_of("reduce_sum.7.0", body) == users


@pytest.mark.parametrize(
    ("of_last", "users"),
    [("dense", ["cos.1", "sin.1"]), ("out", ["sin.1", "cos.1"])],
    ids=["alike", "none alike"],
)
def test_the_last_of_a_name_was_summed_again_as_those_of_its_layers_were(
    of_last: str, users: list[str]
) -> None:
    """Layers of one kind stand in several places; what else was summed, in a loop, was not summed again."""
    reduced = "dimensions={1}, to_apply=%sum"
    names = [
        named(f"transpose(jvp())/{of}/reduce_sum", frame=k)
        for k, of in enumerate(("dense", "loop", of_last), 1)
    ]
    body = f"""  %x = f32[16,64]{{1,0}} parameter(0)
  %y = f32[16,64]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %reduce_sum.4.0 = f32[16]{{0}} reduce(%y, %zero), {reduced}{names[0]}
  %reduce_sum.6.0 = f32[16]{{0}} reduce(%x, %zero), {reduced}{names[1]}
  %reduce_sum.7.0 = f32[16]{{0}} reduce(%y, %zero), {reduced}{names[1]}
  %reduce_sum.9.0 = f32[16]{{0}} reduce(%x, %zero), {reduced}{names[2]}
  %sin.1 = f32[16]{{0}} sine(%reduce_sum.9.0){named("sin")}
  %cos.1 = f32[16]{{0}} cosine(%reduce_sum.9.0){named("cos")}
  ROOT %r = (f32[16]{{0}}, f32[16]{{0}}, f32[16]{{0}}, f32[16]{{0}}, f32[16]{{0}})\
 tuple(%reduce_sum.4.0, %reduce_sum.6.0, %reduce_sum.7.0, %sin.1, %cos.1)"""
    assert users_of("reduce_sum.9.0", body) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("reduce_sum.6", ["sin.1", "cos.1"]), ("add.6", ["cos.1", "sin.1"])],
    ids=["of the region", "missing"],
)
def test_what_is_added_in_the_region_of_a_sum_has_numbers_of_its_name(name: str, users: list[str]) -> None:
    region = f"""%region (c: f32[], d: f32[]) -> f32[] {{
  %{name} = f32[] parameter(0)
  %reduce_sum.7 = f32[] parameter(1)
  ROOT %reduce_sum.8 = f32[] add(%{name}, %reduce_sum.7)
}}
"""
    reduced = f"dimensions={{1}}, to_apply=%region{named('transpose(jvp())/reduce_sum', frame=4)}"
    body = f"""  %x = f32[16,64]{{1,0}} parameter(0)
  %y = f32[16,32]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %reduce_sum.5.0 = f32[16]{{0}} reduce(%x, %zero), {reduced}
  %sin.1 = f32[16]{{0}} sine(%reduce_sum.5.0){named("sin")}
  %cos.1 = f32[16]{{0}} cosine(%reduce_sum.5.0){named("cos")}
  %reduce_sum.9.0 = f32[16]{{0}} reduce(%y, %zero), {reduced}
  ROOT %r = (f32[16]{{0}}, f32[16]{{0}}, f32[16]{{0}}) tuple(%sin.1, %cos.1, %reduce_sum.9.0)"""
    assert users_of("reduce_sum.5.0", body, head=region) == users
