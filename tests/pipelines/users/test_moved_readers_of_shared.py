"""Broadcasts that the program shares, some of whose readers were moved in front of a reshape."""

from __future__ import annotations

import pytest

from .lists import users_of


def _norms(shared: str, made: str) -> str:
    """Four sums; of the second and the fourth was taken more in front of the reshape that they had."""

    def mean(k: int, shape: str, broadcast: str) -> str:
        return f"  %div.{k} = f32[{shape} multiply(%p.{k}, %{broadcast}){_named('div')}"

    wide, flat = "1,4]{1,0", "4]{0"
    return f"""  %c = f32[] constant(0.5)
  %broadcast.1 = f32[1,4]{{1,0}} broadcast(%c), dimensions={{}}{_named(shared)}
  %broadcast.9 = f32[4]{{0}} broadcast(%c), dimensions={{}}{_named(made)}
{chr(10).join(f"  %p.{k} = f32[{wide if k % 2 else flat}}} parameter({k - 1})" for k in range(1, 6))}
{mean(1, wide + "}", "broadcast.1")}
{mean(2, flat + "}", "broadcast.9")}
{mean(3, wide + "}", "broadcast.1")}
{mean(4, flat + "}", "broadcast.9")}
{mean(5, wide + "}", "broadcast.1")}
  ROOT %r = (f32[1,4], f32[4], f32[1,4], f32[4], f32[1,4]) tuple(%div.1, %div.2, %div.3, %div.4, %div.5)"""


def _named(name: str) -> str:
    return f', metadata={{op_name="{name}"}}' if name else ""


@pytest.mark.parametrize(
    ("shared", "made", "users"),
    [
        ("broadcast.7", "broadcast.7", ["div.1", "div.5", "div.3"]),
        ("broadcast.7", "broadcast.8", ["div.1", "div.3", "div.5"]),
        ("jit(f)/div", "jit(f)/div", ["div.1", "div.3", "div.5"]),
    ],
    ids=["one that was shared", "two of the program", "one for each operation"],
)
def test_the_last_takes_the_place_of_what_was_moved(shared: str, made: str, users: list[str]) -> None:
    assert users_of("broadcast.1", _norms(shared, made)) == users


def test_what_was_moved_comes_behind_those_of_the_like() -> None:
    body = """  %c = f32[] constant(0.5)
  %d = f32[] constant(2)
  %broadcast.1 = f32[1,4]{1,0} broadcast(%c), dimensions={}, metadata={op_name="broadcast.7"}
  %broadcast.2 = f32[4]{0} broadcast(%c), dimensions={}, metadata={op_name="broadcast.7"}
  %broadcast.3 = f32[4]{0} broadcast(%d), dimensions={}, metadata={op_name="broadcast.8"}
  %p = f32[4]{0} parameter(0)
  %q = f32[1,4]{1,0} parameter(1)
  %mul.1 = f32[1,4]{1,0} multiply(%q, %broadcast.1), metadata={op_name="mul.1"}
  %mul.2 = f32[4]{0} multiply(%p, %broadcast.2), metadata={op_name="mul.2"}
  %add.1 = f32[4]{0} add(%mul.2, %broadcast.3), metadata={op_name="add.1"}
  %add.2 = f32[4]{0} add(%p, %broadcast.3), metadata={op_name="add.2"}
  ROOT %r = (f32[1,4], f32[4], f32[4]) tuple(%mul.1, %add.1, %add.2)"""
    assert users_of("broadcast.3", body) == ["add.2", "add.1"]
