"""Unique names, as XLA makes them (`xla/service/name_uniquer.cc`)."""

from __future__ import annotations


class NameUniquer:
    """Hands out names that are unique among those it has handed out.

    A trailing `.digits` is a number asked for; a free number is granted, otherwise the smallest
    free one is taken, searching upwards from the last one searched to.
    """

    def __init__(self) -> None:
        self._used: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}

    def copy(self) -> NameUniquer:
        """A uniquer that has handed out the same names."""
        new = NameUniquer()
        new._used = {root: set(numbers) for root, numbers in self._used.items()}
        new._next = dict(self._next)
        return new

    def unique(self, name: str) -> str:
        """A name never given out before, `name` itself if it is free."""
        root, number, numbered = name, 0, False
        dot = name.rfind(".")
        if 0 < dot < len(name) - 1 and name[dot + 1 :].isascii() and name[dot + 1 :].isdigit():
            root, number, numbered = name[:dot], int(name[dot + 1 :]), True
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
