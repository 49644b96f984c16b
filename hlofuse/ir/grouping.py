"""Grouping by a key, and common parts of sequences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """The values of each key, keys and values in the order of `pairs`."""
    found: dict[_K, list[_V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def unmatched(pairs: Iterable[tuple[_K, _V]], other: Counter[_K]) -> Iterator[_V]:
    """The values whose key comes more often than `other` counts, the last of each."""
    left = Counter(other)
    for key, value in pairs:
        if left[key] > 0:
            left[key] -= 1
        else:
            yield value


def common_length(one: Sequence[object], other: Sequence[object]) -> int:
    """The length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
