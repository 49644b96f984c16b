"""Unique names, as XLA makes them (`xla/service/name_uniquer.cc`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_NUMBERED = re.compile(r"(?s)(.+)\.([+-]?\d+)", re.ASCII)
_LARGEST = (1 << 63) - 1


class NameUniquer:
    """Hands out names that are unique among those it has handed out.

    A trailing `.digits` is a number asked for; a free number is granted, otherwise the smallest
    free one is taken, searching upwards from the last one searched to.
    """

    __slots__ = ("_next", "_reserved", "_used")

    def __init__(self) -> None:
        self._used: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}
        self._reserved: tuple[str, ...] = ()

    def copy(self) -> NameUniquer:
        """A uniquer that has handed out the same names."""
        new = NameUniquer()
        new._used = {root: set(numbers) for root, numbers in self._used.items()}
        new._next = dict(self._next)
        new._reserved = self._reserved
        return new

    def reserve(self, names: Iterable[str]) -> None:
        """Take note of names known to be different from each other and in the form `unique` gives.

        Nothing is worked out before the first new name is asked for: a dump that is only looked at
        does not pay for this.
        """
        self._reserved = (*self._reserved, *names)

    def unique(self, name: str) -> str:
        """A name never given out before, `name` itself if it is free."""
        if self._reserved:
            reserved, self._reserved = self._reserved, ()
            for taken in reserved:
                root, number, _ = _split(taken)
                self._used.setdefault(root, set()).add(number)
        root, number, numbered = _split(name)
        used = self._used.get(root)
        if used is None:
            used = self._used[root] = set()
        if number in used:
            number = self._next.get(root, 0)
            while number in used:
                number += 1
            self._next[root] = number + 1
        used.add(number)
        if number == 0:
            return f"{root}.0" if numbered else root
        return f"{root}.{number}"


@lru_cache(maxsize=1 << 14)
def _split(name: str) -> tuple[str, int, bool]:
    """Root, number (0 where there is none), and whether a number is written."""
    match = _NUMBERED.fullmatch(name)
    if match is not None:
        number = int(match[2][:30])
        if -_LARGEST - 1 <= number <= _LARGEST:
            return match[1], number, True
    return name, 0, False
