"""Print the size of the project next to its budget; exit status 1 if a figure is above it.

    size.py [ROOT]

Counts tracked files only. Lines are those of Python files, for tools/corpus those of all files.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Budget:
    """A figure of the project and what it may be at most."""

    name: str
    most: int
    figure: Callable[[Path, list[str]], int]


def _count(prefix: str, suffix: str = "") -> Callable[[Path, list[str]], int]:
    return lambda _root, files: sum(f.startswith(prefix) and f.endswith(suffix) for f in files)


def _lines(prefix: str, suffix: str = "") -> Callable[[Path, list[str]], int]:
    return lambda root, files: sum(
        (root / f).read_bytes().count(b"\n") for f in files if f.startswith(prefix) and f.endswith(suffix)
    )


BUDGETS = (
    Budget("package: lines", 95_000, _lines("hlofuse/", ".py")),
    Budget("package: files", 800, _count("hlofuse/", ".py")),
    Budget("tests: lines", 40_000, _lines("tests/", ".py")),
    Budget("tools/corpus: lines", 4_000, _lines("tools/corpus/")),
    Budget("tracked files", 1_800, _count("")),
)


def tracked(root: Path) -> list[str]:
    """Existing tracked files relative to the root; every file if the root is no git checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        files = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        return [f for f in files if not f.startswith(".") and "__pycache__" not in f]
    return [f for f in listed.stdout.split("\0") if f and (root / f).is_file()]


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    files = tracked(root)
    over = 0
    for budget in BUDGETS:
        figure = budget.figure(root, files)
        over += figure > budget.most
        verdict = f"{figure - budget.most:,} above the budget" if figure > budget.most else "ok"
        print(f"{budget.name:20} {figure:8,} of {budget.most:8,}  {verdict}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
