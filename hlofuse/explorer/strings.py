"""What makes columns of the page's data small."""

from __future__ import annotations

from collections.abc import Iterable


class Strings:
    """Every distinct string once; number 0 is the empty one."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self._number.setdefault(text, len(self._number))

    def all(self) -> list[str]:
        """In the order of their numbers."""
        return list(self._number)


def differences(numbers: Iterable[int]) -> list[int]:
    """Each less the one before it."""
    out, last = [], 0
    for n in numbers:
        out.append(n - last)
        last = n
    return out
