"""Types of the fixtures in conftest.py."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Result:
    """What a command did."""

    status: int
    out: str
    err: str


class Run(Protocol):
    """Runs the command line in this process."""

    def __call__(
        self, *args: object, columns: int = 80, stdin: bytes | None = None, **env: str
    ) -> Result: ...


class Golden(Protocol):
    """Compares with a golden file."""

    def __call__(self, name: str | Path, text: str) -> None: ...
