"""The words of a command to run next, quoted for a shell."""

from __future__ import annotations

import shlex

from hlofuse.present.escape import printable


def command_line(*words: str | None) -> str:
    """`hlofuse …` with the words that are not None; what cannot be typed is spelled out."""
    return " ".join(["hlofuse", *(shlex.quote(printable(w)) for w in words if w is not None)])
