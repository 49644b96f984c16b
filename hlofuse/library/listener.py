"""Who hears of notes and of the work in progress: nobody, a report or a terminal."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Progress = Callable[[int, int], None]
"""Called with how many steps are done, of how many."""


class Listener:
    """Collects notes, and shows no progress."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Take a note that a result has no place for; an empty one is none."""
        if text and text not in self.notes:
            self.notes.append(text)

    def activity(self, _what: str) -> AbstractContextManager[None]:
        """Covers a step that may take seconds."""
        return nullcontext()

    def progress(self, _what: str) -> AbstractContextManager[Progress]:
        """Covers many steps, and yields what they report to."""
        return nullcontext(lambda _done, _of: None)
