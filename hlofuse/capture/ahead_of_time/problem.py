"""The reason of a failed compilation."""

from __future__ import annotations

MISSING, PROGRAM = "missing", "program"


class Problem(Exception):
    """The reason of a failed compilation; `kind` decides the parent's reaction."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
