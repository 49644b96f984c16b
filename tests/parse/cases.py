"""Texts with XLA's verdict on each: see `verdicts/README.md` for the format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERDICTS = Path(__file__).with_name("verdicts")
NEWLINE = "⏎"


@dataclass(frozen=True)
class Case:
    """One text: `xla` is what XLA's parser says, `hlofuse` what we say where we mean to differ."""

    file: str
    line: int
    xla: str
    hlofuse: str
    snippet: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def cases() -> Iterator[Case]:
    """Every case of every file."""
    for path in sorted(VERDICTS.glob("*.txt")):
        template = "$"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line or line.startswith("# "):
                continue
            verdict, _, rest = line.partition(" ")
            if verdict == "@":
                template = rest
                continue
            xla, _, hlofuse = verdict.partition("/")
            yield Case(path.stem, number, xla, hlofuse or xla, rest, fill(template, rest))


def fill(template: str, snippet: str) -> str:
    """The text: `$` is the snippet, `$1` and `$2` its halves around ` :: `."""
    if "$2" in template:
        first, _, second = snippet.partition(" :: ")
        text = template.replace("$1", first).replace("$2", second)
    else:
        text = template.replace("$", snippet, 1)
    return text.replace(NEWLINE, "\n")
