"""Times round as `absl::Duration` does, rates as single precision does."""

from __future__ import annotations

import math
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlofuse.cost.gpu.ticks import INFINITE, fp32, half_away, microseconds, nanoseconds, seconds, times


def test_a_ninety_five_percent_share_falls_short_of_the_half() -> None:
    # 130 * 0.95 = 123.5 exactly, but absl divides by its ticks per second first.
    assert times(130, 0.95) == 123
    assert times(20, 0.95) == 19
    assert times(0, 0.95) == 0


def test_seconds_keep_whole_seconds_apart() -> None:
    assert seconds(1e-9) == 4
    assert seconds(1.5) == 6_000_000_000
    assert seconds(-1e-9) == -4
    assert seconds(math.inf) == INFINITE
    assert times(8_000_000_000, 0.5) == 4_000_000_000


def test_nanoseconds() -> None:
    assert nanoseconds(1.0) == 4
    assert nanoseconds(0.1) == 0
    assert nanoseconds(0.2) == 1


@pytest.mark.parametrize(
    ("value", "whole"), [(0.5, 1), (-0.5, -1), (2.5, 3), (-2.5, -3), (0.49999999999999994, 0)]
)
def test_halves_go_away_from_zero(value: float, whole: int) -> None:
    assert half_away(value) == whole


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_single_precision_is_left_alone(value: float) -> None:
    assert fp32(value) == value


@given(st.integers(0, 2**63))
def test_integers_round_to_even(value: int) -> None:
    assert fp32(value) == struct.unpack("f", struct.pack("f", float(value)))[0]
    assert abs(fp32(value) - value) <= value * 2**-24


def test_too_large_for_single_precision_is_infinite() -> None:
    assert fp32(1e300) == math.inf
    assert fp32(-1e300) == -math.inf


def test_threads_round_their_own_values() -> None:
    def wrong(seed: int) -> list[float]:
        values = [(seed + 1) / 3**n for n in range(1, 40)]
        right = [struct.unpack("f", struct.pack("f", v))[0] for v in values]
        return [v for _ in range(900) for v, single in zip(values, right, strict=True) if fp32(v) != single]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(wrong, range(16))) == [[]] * 16
    finally:
        sys.setswitchinterval(interval)


def test_records_print_microseconds() -> None:
    assert microseconds(14289) == fp32(3.57225)
    assert microseconds(INFINITE) == math.inf
