"""What the gradient of a gradient computes twice, and CSE made one of; XLA's record has each order."""

from __future__ import annotations

import pytest

from .lists import named, users_of

DERIVED, BACK = "jvp(jvp())", "transpose(jvp(jvp()))"
FIRST_BACK = "jvp(transpose(jvp()))"
LAST_BACK = f"transpose({FIRST_BACK})"


def _of_magnitude(back: str, function: str = "abs") -> str:
    return f"""  %x = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %abs.1 = f32[8]{{0}} {function}(%x){named(f"{DERIVED}/{function}")}
  %ge.2 = pred[8]{{0}} compare(%x, %zeros), direction=GE{named(f"{DERIVED}/ge")}
  %select_n.2 = f32[8]{{0}} select(%ge.2, %abs.1, %zeros){named(f"{FIRST_BACK}/select_n")}
  %select_n.1 = f32[8]{{0}} select(%ge.2, %zeros, %abs.1){named(f"{FIRST_BACK}/select_n")}
  %sub.1 = f32[8]{{0}} subtract(%select_n.2, %select_n.1){named(f"{FIRST_BACK}/sub")}
  %select_n.4 = f32[8]{{0}} select(%ge.2, %sub.1, %zeros){named(f"{back}/select_n")}
  %mul.1 = f32[8]{{0}} multiply(%sub.1, %x){named(f"{back}/mul")}
  %select_n.3 = f32[8]{{0}} select(%ge.2, %zeros, %mul.1){named(f"{back}/select_n")}
  %sub.2 = f32[8]{{0}} subtract(%select_n.4, %select_n.3){named(f"{back}/sub")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%sub.1, %sub.2)"""


AS_WRITTEN = ["ge.2", "select_n.2", "select_n.1", "select_n.4", "select_n.3"]


@pytest.mark.parametrize(
    ("back", "function", "users"),
    [
        (BACK, "abs", ["ge.2", "select_n.2", "select_n.1", "select_n.3", "select_n.4"]),
        (LAST_BACK, "abs", AS_WRITTEN),
        (BACK, "negate", AS_WRITTEN),
    ],
)
def test_the_last_takes_the_place_of_the_second_comparison_of_a_magnitude(
    back: str, function: str, users: list[str]
) -> None:
    """The way back of what is derived twice had a comparison of its own."""
    assert users_of("zeros", _of_magnitude(back, function)) == users


def test_what_is_compared_twice_loses_the_second_comparison_as_well() -> None:
    assert users_of("x", _of_magnitude(BACK)) == ["abs.1", "ge.2", "mul.1"]


def _of_wave(function: str, frame: int) -> str:
    return f"""  %x = f32[8]{{0}} parameter(0)
  %wave.1 = f32[8]{{0}} {function}(%x){named(f"{DERIVED}/{function[:3]}", frame=5)}
  %div.1 = f32[8]{{0}} divide(%x, %wave.1){named(f"{FIRST_BACK}/div", frame=6)}
  %mul.1 = f32[8]{{0}} multiply(%div.1, %wave.1){named(f"{BACK}/mul", frame=frame)}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %wave.1){named(f"{LAST_BACK}/mul", frame=6)}
  ROOT %r = (f32[8]{{0}}) tuple(%mul.2)"""


@pytest.mark.parametrize(
    ("function", "frame", "users"),
    [
        ("sine", 5, ["div.1", "mul.2", "mul.1"]),
        ("cosine", 5, ["div.1", "mul.2", "mul.1"]),
        ("sine", 6, ["div.1", "mul.1", "mul.2"]),
        ("exponential", 5, ["div.1", "mul.1", "mul.2"]),
    ],
)
def test_the_second_way_back_of_a_wave_read_another_one(function: str, frame: int, users: list[str]) -> None:
    """Its derivative is of the same place in the source; an exponential is its own derivative."""
    assert users_of("wave.1", _of_wave(function, frame)) == users
