"""The order in which `std::sort` leaves elements that compare equal; XLA's passes show it in what they make.

XLA's plugins use libstdc++: quicksort around the median of three down to pieces of 16, then one
insertion sort (`std::__introsort_loop`, `std::__final_insertion_sort`). The standard promises no order
among equals; this is the one that comes out. Left out is the heap sort of inputs made to defeat the
choice of the pivot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
_SMALL = 16


def std_sorted(values: Sequence[T], is_before: Callable[[T, T], bool]) -> list[T]:
    """`values` in the order of `std::sort` with the comparison `is_before`.

    The comparison need not be a strict one, as XLA's are not always.
    """
    result = list(values)
    _partition(result, 0, len(result), is_before)
    for k in range(1, len(result)):
        _insert(result, k, is_before, guarded=k < _SMALL)
    return result


def _partition(v: list[T], first: int, last: int, is_before: Callable[[T, T], bool]) -> None:
    """Cut `v[first:last]` into pieces of up to 16, all of one piece before all of the next."""
    while last - first > _SMALL:
        _median_to_first(v, first, first + 1, (first + last) // 2, last - 1, is_before)
        pivot, low, high = v[first], first + 1, last
        while True:
            while low < last and is_before(v[low], pivot):
                low += 1
            high -= 1
            while high > first and is_before(pivot, v[high]):
                high -= 1
            if low >= high:
                break
            v[low], v[high] = v[high], v[low]
            low += 1
        _partition(v, low, last, is_before)
        last = low


def _median_to_first(
    v: list[T], first: int, a: int, b: int, c: int, is_before: Callable[[T, T], bool]
) -> None:
    """Swap the median of three elements with the one at `first`."""
    if not is_before(v[a], v[b]):
        a, b = b, a
    median = b if is_before(v[b], v[c]) else c if is_before(v[a], v[c]) else a
    v[first], v[median] = v[median], v[first]


def _insert(v: list[T], place: int, is_before: Callable[[T, T], bool], *, guarded: bool) -> None:
    """Bring `v[place]` to where it belongs in what is in front of it."""
    value = v.pop(place)
    if guarded and is_before(value, v[0]):
        place = 0
    while place and is_before(value, v[place - 1]):
        place -= 1
    v.insert(place, value)
