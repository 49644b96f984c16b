"""Unique names, as XLA makes them (`xla/service/name_uniquer.cc`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(?s)(.+)\.([+-]?\d+)", re.ASCII)
_LARGEST = (1 << 63) - 1


class _ParameterNames(dict[int, str]):
    def __missing__(self, number: int) -> str:
        name = self[number] = f"param_{number}"
        return name


PARAMETER_NAMES = _ParameterNames()
"""What the parameters of fusions are called, by number, before that is made unique."""


class _Root:
    """What was handed out with one root."""

    __slots__ = ("name", "next", "requested")

    name: str
    next: int
    """Searching goes on here: all numbers from 0 up to it are taken."""
    requested: set[int]
    """Numbers taken because a name asked for them."""


def _new_root(name: str) -> _Root:
    root = _Root()
    root.name, root.next, root.requested = name, 0, set()
    return root


class NameUniquer:
    """Hands out names that are unique among those it has handed out.

    A trailing `.digits` is a number asked for; a free number is granted, otherwise the smallest
    free one is taken, searching upwards from the last one searched to.
    """

    __slots__ = ("_parameters", "_reserved", "_roots", "_taken")

    def __init__(self) -> None:
        self._roots: dict[str, _Root] = {}
        self._parameters: dict[int, _Root] = {}
        """Of the names of parameters of fusions, by number, once they are taken."""
        self._taken: dict[str, str] = {}
        """Roots of names that are certainly taken: nearly every name asked for is that of an instruction."""
        self._reserved: tuple[str, ...] = ()
        """Names yet to be taken note of; only as long as there is no other."""

    def copy(self) -> NameUniquer:
        """A uniquer that has handed out the same names; what they are made of is worked out for both."""
        self._note_reserved()
        new = NameUniquer()
        roots = new._roots
        for name, root in self._roots.items():
            root_ = roots[name] = _new_root(name)
            root_.next, root_.requested = root.next, set(root.requested)
        new._taken = self._taken.copy()
        return new

    def reserve(self, names: Iterable[str]) -> None:
        """Take note of names known to be different from each other and in the form `unique` gives.

        Nothing is worked out before the first new name is asked for: a dump that is only looked at
        does not pay for this.
        """
        self._reserved = (*self._reserved, *names)
        if self._taken:
            self._note_reserved()

    def unique(self, name: str) -> str:
        """A name never given out before, `name` itself if it is free."""
        taken = self._taken
        if (of_root := taken.get(name)) is not None:
            root = self._roots[of_root]
        else:
            if self._reserved:
                self._note_reserved()
            text, number, numbered = _split(name)
            root = self._root(text)
            taken[name] = text
            if number not in root.requested and not 0 <= number < root.next:
                root.requested.add(number)
                return f"{text}.{number}" if numbered else text
        unique = f"{root.name}.{_next_number(root)}"
        taken[unique] = root.name
        return unique

    def parameter(self, number: int) -> str:
        """The same for a fusion's parameter of that number: most new names are for those."""
        root = self._parameters.get(number)
        if root is None:
            name = self.unique(PARAMETER_NAMES[number])
            self._parameters[number] = self._roots[self._taken[PARAMETER_NAMES[number]]]
            return name
        # Nobody asks for such a name again: there are too many of them to take note of each.
        return f"{root.name}.{_next_number(root)}"

    def skip_parameter(self, number: int) -> None:
        """A name of such a one that nobody will look at."""
        root = self._parameters.get(number)
        if root is None:
            self.parameter(number)
        else:
            _next_number(root)

    def skip(self, names: Iterable[str]) -> None:
        """`unique`, one after the other, for names that nobody will look at."""
        taken = self._taken
        for name in names:
            text = taken.get(name)
            if text is None:
                self.unique(name)
            else:
                _next_number(self._roots[text])

    def _root(self, text: str) -> _Root:
        root = self._roots.get(text)
        if root is None:
            root = self._roots[text] = _new_root(text)
        return root

    def _note_reserved(self) -> None:
        reserved, self._reserved = self._reserved, ()
        roots, taken = self._roots, self._taken
        for name in reserved:
            text, number, _ = _split(name)
            root = roots.get(text)
            if root is None:
                root = roots[text] = _new_root(text)
            taken[name] = text
            root.requested.add(number)


def _next_number(root: _Root) -> int:
    """The smallest free number, which is taken with this."""
    free, requested = root.next, root.requested
    while free in requested:
        free += 1
    root.next = free + 1
    return free


def _split(name: str) -> tuple[str, int, bool]:
    """Root, number (0 where there is none), and whether a number is written."""
    text, _, digits = name.rpartition(".")
    if text and digits.isdigit() and digits.isascii() and len(digits) < 19:
        return text, int(digits), True
    if (match := _NUMBERED.fullmatch(name)) is not None:
        number = int(match[2][:30])
        if -_LARGEST - 1 <= number <= _LARGEST:
            return match[1], number, True
    return name, 0, False
