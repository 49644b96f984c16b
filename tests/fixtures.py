"""Fixture files: several cases in one text file, each with XLA's answer beside its input.

    Text before the first case is a comment.

    // CASE name key=value key=value
    HloModule input ...

    // EXPECT h100_sxm v100
    HloModule answer ...

A line `// WORD label ...` with one of `SECTIONS` starts a section, which ends at the next one. The text under
CASE is the input. The test that reads a folder says which keys and sections its cases have.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module

SECTIONS = {
    "CASE": "a name, then options",
    "EXPECT": "XLA's module after the passes tested",
    "REFUSED": "XLA's reasons for refusals, one a line",
    "PRIORITIES": "XLA's figures of PriorityFusion, as JSON",
    "MESSAGE": "what hlofuse says; --update-golden rewrites it",
}
_MARKER = re.compile(r"// ([A-Z]+)((?: \S+)*)")


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a file. `sections` maps a word and each of its labels to text: ("EXPECT", "v100")."""

    path: Path
    name: str
    options: dict[str, str]
    text: str
    sections: dict[tuple[str, str], str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.path.stem}-{self.name}"

    def module(self) -> Module:
        """The input, parsed anew."""
        return parse_module(self.text, f"{self.name}.hlo")

    def section(self, word: str, label: str = "") -> str:
        """The text of a section; empty if the case has none."""
        return self.sections.get((word, label), "")

    def expected(self, label: str = "") -> Module:
        """XLA's answer, parsed anew."""
        return parse_module(self.sections["EXPECT", label], f"{self.name}.{label}.hlo")

    def values(self, key: str) -> frozenset[str]:
        """A list in the header: `key=A,B`."""
        return frozenset(filter(None, self.options.get(key, "").split(",")))


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, or of every `.hlo` file in a folder."""
    if path.is_dir():
        return [case for file in sorted(path.glob("*.hlo")) for case in read_cases(file)]
    cases: dict[str, Case] = {}
    for word, labels, text in _sections(path.read_text(encoding="utf-8")):
        assert word in SECTIONS, f"{path}: no section is named {word}"
        if word == "CASE":
            name, *pairs = labels
            options = dict(pair.split("=", 1) for pair in pairs)
            assert name not in cases, f"{path}: {name} is there twice"
            case = cases[name] = Case(path, name, options, text)
        else:
            new = {(word, label): text for label in labels or [""]}
            assert not new.keys() & case.sections.keys(), f"{path}: {case.name} has two {word} {labels}"
            case.sections.update(new)
    return list(cases.values())


def companion_texts(test: str) -> dict[str, str]:
    """The inputs of the cases in the file next to a test: `loops.hlo` for `test_loops.py`."""
    path = Path(test)
    return {
        case.name: case.text for case in read_cases(path.with_name(f"{path.stem.removeprefix('test_')}.hlo"))
    }


def find_case(path: Path, name: str) -> Case:
    """The case of that name in a file."""
    return next(case for case in read_cases(path) if case.name == name)


def write_message(case: Case, text: str) -> None:
    """Replace the MESSAGE of a case. XLA's answers are never written by hlofuse."""
    path = case.path
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    first = next(n for n, line in enumerate(lines) if (line + " ").startswith(f"// CASE {case.name} "))
    start = next(n for n in range(first, len(lines)) if lines[n] == "// MESSAGE") + 1
    stop = next((n for n in range(start, len(lines)) if _MARKER.fullmatch(lines[n])), len(lines))
    lines[start:stop] = [*text.rstrip("\n").split("\n"), *([""] if stop < len(lines) else [])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sections(text: str) -> Iterable[tuple[str, list[str], str]]:
    found: list[tuple[str, list[str], list[str]]] = []
    for line in text.split("\n"):
        if marker := _MARKER.fullmatch(line):
            found.append((marker[1], marker[2].split(), []))
        elif found:
            found[-1][2].append(line)
    for word, labels, lines in found:
        body = "\n".join(lines).rstrip("\n")
        yield word, labels, f"{body}\n" if body else ""


@cache
def packed(path: Path) -> dict[str, dict[str, bytes]]:
    """The files of each folder of an archive."""
    folders: dict[str, dict[str, bytes]] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            folder, _, file = member.name.rpartition("/")
            content = tar.extractfile(member)
            assert content is not None
            folders.setdefault(folder, {})[file] = content.read()
    return folders


@cache
def texts_of(path: Path) -> dict[str, dict[str, str]]:
    """The same as texts."""
    return {n: {file: data.decode() for file, data in files.items()} for n, files in packed(path).items()}


def unpacked(path: Path, folder: Path) -> Path:
    """The folder, with the files of an archive in it."""
    with tarfile.open(path) as tar:
        tar.extractall(folder, filter="data")
    return folder
