"""Modules with XLA's answer: the compact part kept here, and the whole corpus where it is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..fixtures import texts_of

DATA = Path(__file__).parent.parent / "data"
CORPUS = Path(__file__).parent.parent.parent.parent / "shared" / "corpus"


@dataclass(slots=True)
class Answered:
    """A module as it enters the fusion passes, and the module after each pass that changed it."""

    name: str
    before: str = ""
    after_passes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def after(self) -> str:
        return self.after_passes[-1][1] if self.after_passes else self.before


@cache
def packed(archive: str) -> dict[str, Answered]:
    """The cases of `tests/data/<archive>.tar.xz` by GROUP/NAME."""
    cases: dict[str, Answered] = {}
    for name, texts in texts_of(DATA / f"{archive}.tar.xz").items():
        cases[name] = Answered(name)
        for file, text in texts.items():
            _enter(cases[name], file, text)
    return cases


def in_folder(folder: Path) -> Iterator[Answered]:
    """The cases of a corpus folder."""
    for case in sorted(p.parent for p in folder.glob("*/before.hlo")):
        answered = Answered(case.name)
        for file in sorted(case.glob("*.hlo")):
            if file.name != "after.hlo":
                _enter(answered, file.name, file.read_text(encoding="utf-8"))
        yield answered


def _enter(case: Answered, file: str, text: str) -> None:
    if file == "before.hlo":
        case.before = text
    else:
        case.after_passes.append((file[3:].removesuffix(".hlo"), text))
