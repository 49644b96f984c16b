"""Receivers of notes and progress: a report, or a terminal."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

Progress = Callable[[int, int], None]
"""Called with how many steps are done, of how many."""


def _silent(_done: int, _of: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks; by default notes are dropped and no progress is shown."""

    note: Callable[[str], None] = lambda _: None
    """Takes a note that a result has no place for; an empty one is none."""
    activity: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
    """Covers a step that may take seconds."""
    progress: Callable[[str], AbstractContextManager[Progress]] = lambda _: nullcontext(_silent)
    """Covers many steps, and yields what they report to."""


SILENT = Listener()
