"""Unique names, as XLA makes them (`xla/service/name_uniquer.cc`), and the origins of instructions. A run
names every instruction of its input after itself. A clone has the origin of its source. A replacement has its
own origin and that of the instruction that it replaces. Instructions share these immutable values."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

_NUMBERED = re.compile(r"(?s)(.+)\.([+-]?\d+)", re.ASCII)
_LARGEST = (1 << 63) - 1


class _ParameterNames(dict[int, str]):
    def __missing__(self, number: int) -> str:
        name = self[number] = f"param_{number}"
        return name


PARAMETER_NAMES = _ParameterNames()  # Names of a fusion's parameters by number, before they are made unique


class _Root:
    __slots__ = ("name", "next", "requested")

    name: str
    next: int  # The number from which a search continues: all smaller ones are taken
    requested: set[int]  # Larger numbers taken because a name asked for them


def _new_root(name: str) -> _Root:
    root = _Root()
    root.name, root.next, root.requested = name, 0, set()
    return root


class NameUniquer:
    """Hands out unique names. A trailing `.digits` requests a number. A free one is granted; otherwise the
    search for the smallest free number continues from the last one found."""

    __slots__ = ("_parameters", "_reserved", "_roots", "_taken")

    def __init__(self) -> None:
        self._roots = dict[str, _Root]()
        self._parameters = dict[int, _Root]()  # The roots of fusion parameters' names by number, once in use
        self._taken = dict[str, str]()  # Roots of taken names: most requests are for an instruction's name
        self._reserved: tuple[str, ...] = ()  # names yet to be registered; only before the first request

    def copy(self) -> "NameUniquer":
        """A uniquer with the same names taken; pending names are registered first."""
        self._note_reserved()
        new = NameUniquer()
        roots = new._roots
        for name, root in self._roots.items():
            root_ = roots[name] = _new_root(name)
            root_.next, root_.requested = root.next, set(root.requested)
        new._taken = self._taken.copy()
        return new

    def reserve(self, names: Iterable[str]) -> None:
        """Register distinct names in the form `unique` returns; the work waits for the first new name."""
        self._reserved = (*self._reserved, *names)
        if self._taken:
            self._note_reserved()

    def unique(self, name: str) -> str:
        """A name never returned before, `name` itself if it is free."""
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
        unique = f"{root.name}.{_take_next_number(root)}"
        taken[unique] = root.name
        return unique

    def parameter(self, number: int) -> str:
        """`unique` for the fusion parameter of that number, the most frequent request."""
        root = self._parameters.get(number)
        if root is None:
            name = self.unique(PARAMETER_NAMES[number])
            self._parameters[number] = self._roots[self._taken[PARAMETER_NAMES[number]]]
            return name
        # Such a name is never requested again, and there are too many to record each.
        return f"{root.name}.{_take_next_number(root)}"

    def skip_parameter(self, number: int) -> None:
        """Take the name of the parameter with that number without returning it."""
        root = self._parameters.get(number)
        if root is None:
            self.parameter(number)
        else:
            _take_next_number(root)

    def skip(self, names: Iterable[str]) -> None:
        """Take a unique name for each in turn, without returning them."""
        taken = self._taken
        for name in names:
            text = taken.get(name)
            if text is None:
                self.unique(name)
            else:
                _take_next_number(self._roots[text])

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


def _take_next_number(root: _Root) -> int:
    free, requested = root.next, root.requested
    while free in requested:
        free += 1
    root.next = free + 1
    return free


def _split(name: str) -> tuple[str, int, bool]:
    """Root, number (0 where there is none), and True if a number is written."""
    text, _, digits = name.rpartition(".")
    if text and digits.isdigit() and digits.isascii() and len(digits) < 19:
        return text, int(digits), True
    if (match := _NUMBERED.fullmatch(name)) is not None:
        number = int(match[2][:30])
        if -_LARGEST - 1 <= number <= _LARGEST:
            return match[1], number, True
    return name, 0, False


Origin: TypeAlias = "str | tuple[Any, ...]"
"""A name in the input, a pair of origins with the instruction's own first, or `()` for a new instruction."""
NO_ORIGIN: Origin = ()


def joined(own: Origin, other: Origin) -> Origin:
    """The origin of an instruction with origin `own` that now also stands for `other`."""
    if not other or own is other:
        return own
    if not own:
        return other
    if own.__class__ is tuple and (own[0] is other or own[1] is other):
        return own
    return own, other


def names_in(origin: Origin) -> Iterator[str]:
    """The names, the instruction's own first; one that was joined twice may occur twice."""
    pending = [origin]
    while pending:
        x = pending.pop()
        if isinstance(x, str):
            yield x
        else:
            pending += reversed(x)


def own_name(origin: Origin) -> str | None:
    """The name of the input instruction that this is, or is a clone of; None for a new instruction."""
    while not isinstance(origin, str):
        if not origin:
            return None
        origin = origin[0]
    return origin
