"""What tests share: types of the fixtures in conftest.py, and looking things up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hlofuse.ir.graph import Instruction, Module


@dataclass(frozen=True)
class Result:
    """What a command did."""

    status: int
    out: str
    err: str


def find(module: Module, name: str) -> Instruction:
    """The instruction of that name, which is there."""
    found = module.find(name)
    assert found is not None
    return found


class Run(Protocol):
    """Runs the command line in this process."""

    def __call__(
        self, *args: object, columns: int = 80, stdin: bytes | None = None, **env: str
    ) -> Result: ...


class Golden(Protocol):
    """Compares with a golden file."""

    def __call__(self, name: str, text: str) -> None: ...
