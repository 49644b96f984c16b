"""What is divided by a scalar and by another, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("name", "users"), [("multiply.1", ["x.1", "z.1", "y.1"]), ("product.1", ["x.1", "y.1", "z.1"])]
)
def test_products_with_the_other_divisor_stood_behind_each_division(name: str, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %m = f32[8]{{0}} parameter(2)
  %scale = f32[] parameter(3)
  %c = f32[] parameter(4)
  %div.1 = f32[8]{{0}} broadcast(%scale), dimensions={{}}{named("div")}
  %{name} = f32[] multiply(%scale, %c)
  %both.1 = f32[8]{{0}} broadcast(%{name}), dimensions={{}}
  %x.1 = f32[8]{{0}} divide(%p, %div.1){named("x")}
  %u.1 = f32[8]{{0}} divide(%p, %both.1){named("u")}
  %y.1 = f32[8]{{0}} divide(%q, %div.1){named("y")}
  %v.1 = f32[8]{{0}} divide(%q, %both.1){named("v")}
  %z.1 = f32[8]{{0}} divide(%m, %div.1){named("z")}
  ROOT %r = ({", ".join(5 * ["f32[8]{0}"])}) tuple(%x.1, %u.1, %y.1, %v.1, %z.1)"""
    assert users_of("div.1", body) == users


@pytest.mark.parametrize(("shape", "users"), [("1,8", ["w.1", "z.1", "x.1"]), ("2,8", ["w.1", "x.1", "z.1"])])
def test_so_did_reshapes_for_what_has_more_dimensions_of_one(shape: str, users: list[str]) -> None:
    """They took the places of divisions that were moved, and were made one."""
    wide = f"f32[{shape}]{{1,0}}"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = {wide} parameter(1)
  %m = f32[8]{{0}} parameter(2)
  %scale = f32[] parameter(3)
  %c = f32[] parameter(4)
  %div.1 = f32[8]{{0}} broadcast(%scale), dimensions={{}}{named("div")}
  %broadcast.2 = {wide} broadcast(%scale), dimensions={{}}{named("div")}
  %multiply.1 = f32[] multiply(%scale, %c)
  %both.1 = f32[8]{{0}} broadcast(%multiply.1), dimensions={{}}
  %w.1 = f32[8]{{0}} divide(%m, %div.1){named("w")}
  %y.1 = {wide} divide(%q, %broadcast.2){named("y")}
  %x.1 = f32[8]{{0}} divide(%p, %div.1){named("x")}
  %u.1 = f32[8]{{0}} divide(%p, %both.1){named("u")}
  %z.1 = f32[8]{{0}} divide(%m, %div.1){named("z")}
  %a = (f32[8]{{0}}, {wide}, f32[8]{{0}}) tuple(%w.1, %y.1, %x.1)
  ROOT %r = ((f32[8]{{0}}, {wide}, f32[8]{{0}}), f32[8]{{0}}, f32[8]{{0}}) tuple(%a, %u.1, %z.1)"""
    assert users_of("div.1", body) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p scale c div.1 multiply.1 x.1 u.1 r", ["u.1", "x.1"]),
        ("p scale c div.1 x.1 r multiply.1 u.1", ["x.1", "u.1"]),
    ],
)
def test_what_a_pass_divides_by_both_is_behind_the_quotient_that_is_left(ids: str, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %scale = f32[] parameter(1)
  %c = f32[] parameter(2)
  %multiply.1 = f32[] multiply(%scale, %c)
  %both.1 = f32[8]{{0}} broadcast(%multiply.1), dimensions={{}}
  %u.1 = f32[8]{{0}} divide(%p, %both.1){named("u")}
  %div.1 = f32[8]{{0}} broadcast(%scale), dimensions={{}}{named("div")}
  %x.1 = f32[8]{{0}} divide(%p, %div.1){named("x")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%u.1, %x.1)"""
    assert users_of("p", body, ids=ids.replace("multiply.1", "multiply.1 both.1")) == users
