"""The words of a command to run next, quoted for a shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hlofuse.format.escape import printable

if TYPE_CHECKING:
    from rich.console import Console


def command_line(*words: str | None) -> str:
    """`hlofuse …` with the words that are not None; what cannot be typed is spelled out."""
    return " ".join(["hlofuse", *(shlex.quote(printable(w)) for w in words if w is not None)])


def print_command(console: Console, indent: int, *words: str | None) -> None:
    """On a line of its own however narrow the terminal is: one that is broken cannot be copied."""
    from rich.text import Text

    console.print(Text(" " * indent + command_line(*words), style="green"), soft_wrap=True)
