"""Single precision and time, rounded as XLA rounds them. XLA's times are `absl::Duration`s: whole numbers of
a quarter of a nanosecond. Here they are `int` ticks, so that sums are exact in any order. Rates and byte
counts go through single precision (`fp32`) wherever XLA's do; the last digit decides ties."""

import math
from array import array

TICKS_PER_SECOND = 4_000_000_000
TICKS_PER_MICROSECOND = 4_000
EXACT = 1 << 24  # Integers below this are exact in single precision
INFINITE = 1 << 62  # `absl::InfiniteDuration()`; no kernel takes that long
_SINGLE = array("f", (0.0,))
"""Rounds an assigned value to single precision. Shared by all threads. With a global lock they switch at
calls and loops only, so never between write and read. Without one (a free-threaded Python), or under a
debugger written in Python, two threads that replay at once could read each other's value."""


def fp32(value: float) -> float:
    """`value` rounded to single precision, to nearest and ties to even."""
    _SINGLE[0] = value
    return _SINGLE[0]


def scaled_sum(value: float, factor: float, more: float) -> float:
    """`value * factor + more`, both numbers and every step rounded to single precision."""
    _SINGLE[0] = value
    _SINGLE[0] = _SINGLE[0] * factor
    product = _SINGLE[0]
    _SINGLE[0] = more
    _SINGLE[0] = product + _SINGLE[0]
    return _SINGLE[0]


def ceil_of_ratio(a: int, b: int) -> int:
    """`a / b` rounded up (`CeilOfRatio`, `xla/util.h`)."""
    return -(-a // b)


def half_away(value: float) -> int:
    """The nearest integer, halves away from zero (`std::round`, `std::llround`)."""
    whole = int(value)
    rest = value - whole
    if rest >= 0.5:
        return whole + 1
    return whole - 1 if rest <= -0.5 else whole


def single_half_away(value: float) -> int:
    """`half_away` of `value` rounded to single precision."""
    _SINGLE[0] = value
    return half_away(_SINGLE[0])


def seconds(value: float) -> int:
    """Ticks of `value` seconds (`absl::Seconds`)."""
    if value < 0:
        return -seconds(-value)
    if value == math.inf:
        return INFINITE
    whole = int(value)
    return whole * TICKS_PER_SECOND + half_away((value - whole) * TICKS_PER_SECOND)


def times(ticks: int, factor: float) -> int:
    """A duration times a number (`absl::Duration::operator*=`), through seconds as in absl."""
    if 0 <= ticks < TICKS_PER_SECOND and 0.0 <= factor <= 1.0:  # the same, the whole seconds being none
        exact = ticks * factor / TICKS_PER_SECOND * TICKS_PER_SECOND
        below = int(exact)
        return below + 1 if exact - below >= 0.5 else below
    whole, rest = divmod(ticks, TICKS_PER_SECOND)
    high, high_rest = 0, 0.0
    if whole:
        high_rest, high_float = math.modf(whole * factor)
        high = int(high_float)
    low_rest, low = math.modf(rest * factor / TICKS_PER_SECOND + high_rest)
    return (high + int(low)) * TICKS_PER_SECOND + half_away(low_rest * TICKS_PER_SECOND)


def nanoseconds(value: float) -> int:
    """Ticks of `value` nanoseconds (`absl::Nanoseconds`: one nanosecond times `value`)."""
    if 0.0 <= 4.0 * value < TICKS_PER_SECOND:  # likewise
        exact = 4.0 * value / TICKS_PER_SECOND * TICKS_PER_SECOND
        below = int(exact)
        return below + 1 if exact - below >= 0.5 else below
    low_rest, low = math.modf(4.0 * value / TICKS_PER_SECOND)
    return int(low) * TICKS_PER_SECOND + half_away(low_rest * TICKS_PER_SECOND)


def microseconds(ticks: int) -> float:
    """Microseconds in single precision, as XLA's logs print them."""
    if ticks >= INFINITE:
        return math.inf
    _SINGLE[0] = ticks / TICKS_PER_MICROSECOND
    return _SINGLE[0]
