"""Why nothing was compiled."""

from __future__ import annotations

MISSING, PROGRAM = "missing", "program"


class Problem(Exception):
    """Why nothing was compiled: `kind` says what the parent should make of it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
