"""Grouping by a key, places, and what a graph leads to."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """The values of each key, keys and values in the order of `pairs`."""
    found: dict[_K, list[_V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def numbered(values: Iterable[_K]) -> dict[_K, int]:
    """The place of each value."""
    return {value: place for place, value in enumerate(values)}


def unmatched(pairs: Iterable[tuple[_K, _V]], other: Counter[_K]) -> Iterator[_V]:
    """The values whose key comes more often than `other` counts, the last of each."""
    left = Counter(other)
    for key, value in pairs:
        if left[key] > 0:
            left[key] -= 1
        else:
            yield value


def post_order(starts: Iterable[_K], onwards: Callable[[_K], Iterable[_K]]) -> list[_K]:
    """`starts` and all that they lead to, each once and after what it leads to."""
    order = []
    entered = set()
    stack: list[tuple[list[_K], Iterator[_K]]] = [([], iter(starts))]
    while stack:
        here, rest = stack[-1]
        for there in rest:
            if there not in entered:
                entered.add(there)
                stack.append(([there], iter(onwards(there))))
                break
        else:
            order += here
            stack.pop()
    return order


def reach(starts: Iterable[_K], onwards: Callable[[_K], Iterable[_K]]) -> Iterator[_K]:
    """`starts` and all that they lead to, each once; what was found last is followed first."""
    pending = list(dict.fromkeys(starts))
    seen = set(pending)
    while pending:
        here = pending.pop()
        yield here
        for there in onwards(here):
            if there not in seen:
                seen.add(there)
                pending.append(there)
