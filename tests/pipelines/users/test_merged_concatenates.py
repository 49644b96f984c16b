"""Concatenates of concatenates."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_IDS = "p q inner.1 early.1 late.1 last.1 outer.1 tuple.2"


def _program(outer: str) -> str:
    return f"""  %p = f32[2,4]{{1,0}} parameter(0)
  %q = f32[2,4]{{1,0}} parameter(1)
  %inner.1 = f32[2,8]{{1,0}} concatenate(%p, %q), dimensions={{1}}{named("inner")}
  %early.1 = f32[2,8]{{1,0}} negate(%inner.1){named("early")}
  %outer.1 = f32[2,12]{{1,0}} concatenate({outer}), dimensions={{1}}{named("outer")}
  %late.1 = f32[2,8]{{1,0}} sine(%inner.1){named("late")}
  %last.1 = f32[2,8]{{1,0}} cosine(%inner.1){named("last")}
  ROOT %tuple.2 = (f32[2,8]{{1,0}}, f32[2,12]{{1,0}}, f32[2,8]{{1,0}}, f32[2,8]{{1,0}})
    tuple(%early.1, %outer.1, %late.1, %last.1)"""


@pytest.mark.parametrize(
    ("outer", "users"),
    [
        ("%p, %q, %p", ["early.1", "last.1", "late.1"]),
        ("%q, %p, %q", ["early.1", "last.1", "late.1"]),
        ("%p, %p, %q", ["early.1", "last.1", "late.1"]),
        ("%q, %p, %p", ["early.1", "late.1", "last.1"]),
    ],
)
def test_the_last_user_takes_the_place_of_the_outer_one(outer: str, users: list[str]) -> None:
    assert users_of("inner.1", _program(outer), ids=_IDS) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p q read.1 inner.1 early.1 late.1 last.1 outer.1", ["inner.1", "behind.1", "outer.1"]),
        ("p q inner.1 outer.1 read.1 early.1 late.1 last.1", ["inner.1", "outer.1", "behind.1"]),
    ],
)
def test_one_that_was_made_anew_for_older_readers_comes_behind_others(ids: str, users: list[str]) -> None:
    body = _program("%p, %q, %p").replace(
        "  ROOT",
        f"""  %read.1 = f32[2,12]{{1,0}} tanh(%outer.1){named("read")}
  %behind.1 = f32[2,4]{{1,0}} tanh(%p){named("behind")}
  ROOT""",
    )
    assert users_of("p", body, ids=f"{ids} behind.1 tuple.2") == users


def test_an_inner_one_that_a_pass_made_was_never_read_by_another() -> None:
    body = _program("%p, %q, %p").replace(named("inner"), "")
    assert users_of("inner.1", body, ids=_IDS) == ["early.1", "late.1", "last.1"]
