"""The order of `std::sort` among equals, as libstdc++ leaves it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlofuse.passes.fusion.horizontal_fusion import std_sorted

# Keys, and the places in which libstdc++'s std::sort leaves them (g++ 12, comparing keys only).
RECORDED = [
    ("5 2 2 2 0 2 6 3 4 0 6 6 3 6 3 2 0", "16 9 4 1 15 5 3 2 7 12 14 8 0 6 10 11 13"),
    ("2 0 1 1 3 1 0 0 4 1 1 3 3 4 4 2 1", "1 7 6 16 10 9 5 3 2 15 0 4 11 12 8 13 14"),
    (
        "7 2 4 7 3 5 2 3 5 7 5 0 7 0 1 2 7 7 2 6 7 4 1 4 2 0 5 6 3 5",
        "25 13 11 22 14 1 24 18 15 6 28 7 4 2 23 21 10 29 26 5 8 19 27 20 17 3 16 0 12 9",
    ),
    (
        "0 0 0 0 0 0 0 2 1 2 1 1 0 0 2 1 2 0 1 2 2 1 2 1 1 0 2 0 0 0",
        "1 29 28 27 25 17 13 12 0 2 6 3 5 4 10 11 15 18 8 21 24 23 19 26 22 20 16 14 7 9",
    ),
]


@pytest.mark.parametrize(("keys", "places"), RECORDED)
def test_equals_stand_as_the_library_leaves_them(keys: str, places: str) -> None:
    key = keys.split()
    found = std_sorted(range(len(key)), lambda a, b: int(key[a]) < int(key[b]))
    assert found == [int(p) for p in places.split()]


@given(st.lists(st.integers(0, 5), max_size=200))
def test_it_sorts(values: list[int]) -> None:
    assert std_sorted(values, lambda a, b: a < b) == sorted(values)


@given(st.lists(st.integers(0, 3), max_size=16))
def test_up_to_sixteen_it_is_stable(values: list[int]) -> None:
    places = range(len(values))
    assert std_sorted(places, lambda a, b: values[a] < values[b]) == sorted(places, key=values.__getitem__)


@given(st.lists(st.integers(0, 3), max_size=60))
def test_a_comparison_that_is_not_strict_loses_nothing(values: list[int]) -> None:
    found = std_sorted(range(len(values)), lambda a, b: values[a] <= values[b])
    assert sorted(found) == list(range(len(values)))
