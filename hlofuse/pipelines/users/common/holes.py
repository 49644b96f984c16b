"""What becomes of a list of users when some of them go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def without(users: list[T], gone: Iterable[T]) -> list[T]:
    """`users` after those in `gone` were removed one by one, the last always filling the hole.

    Mirrors `HloInstruction::Users::RemoveUser` (`xla/hlo/ir/hlo_instruction.cc`).
    """
    left = list(users)
    for user in gone:
        place = left.index(user)
        last = left.pop()
        if place < len(left):
            left[place] = last
    return left


def last_at(users: list[T], place: int) -> list[T]:
    """`users` with the last at `place`: it filled the hole of one that had stood there and went."""
    if place >= len(users):
        return users
    return [*users[:place], users[-1], *users[place:-1]]


def last_in_front(users: list[T]) -> list[T]:
    """`users` with the last in front: it filled the hole of a first one that went."""
    return last_at(users, 0)


def behind_last(users: list[T], user: T, is_ahead: Callable[[T], bool]) -> list[T]:
    """`users` with `user` right behind the last that comes after it in the list and `is_ahead` of it."""
    at = users.index(user)
    last = max((k for k in range(at + 1, len(users)) if is_ahead(users[k])), default=at)
    return [*users[:at], *users[at + 1 : last + 1], user, *users[last + 1 :]]
