"""Print the size of the project next to its budget; exit status 1 if a figure is above it.

    size.py [ROOT]

Counts tracked files only. Lines are those of Python files, for tools/corpus those of all files. The package's
other text leaves out `MEASURED`. Tokens are those of code, docstrings aside and an f-string as one, for each
line on which one starts.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MEASURED = (
    "hlofuse/cost/gpu/product_rates.csv",
    "hlofuse/cost/gpu/collective_rates.csv",
    "hlofuse/cost/cpu/devices/epyc_1_thread.toml",
    "hlofuse/cost/cpu/devices/epyc_2_threads.toml",
    "hlofuse/cost/cpu/devices/xeon_1_thread.toml",
    "hlofuse/cost/cpu/devices/xeon_2_threads.toml",
)
"""Tables of the package that devices were measured for: data, which nobody reads line by line."""
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


@dataclass(frozen=True)
class Budget:
    """A figure of the project and what it may be at most."""

    name: str
    most: float
    figure: Callable[[Path, list[str]], float]
    goal: int | None = None
    """A lower figure that the project is on its way to."""


def _count(prefix: str, suffix: str = "") -> Callable[[Path, list[str]], int]:
    return lambda _root, files: sum(f.startswith(prefix) and f.endswith(suffix) for f in files)


def _lines(prefix: str, suffix: str = "") -> Callable[[Path, list[str]], int]:
    return lambda root, files: sum(
        (root / f).read_bytes().count(b"\n") for f in files if f.startswith(prefix) and f.endswith(suffix)
    )


def _other_lines(root: Path, files: list[str]) -> int:
    """Lines of the package's text that is neither Python nor measured."""
    others = [f for f in files if f.startswith("hlofuse/") and not f.endswith(".py") and f not in MEASURED]
    return sum((root / f).read_bytes().count(b"\n") for f in others)


def _tokens_a_line(root: Path, files: list[str]) -> float:
    """Tokens of the package's code for each line on which one starts."""
    tokens = lines = 0
    for file in files:
        if file.startswith("hlofuse/") and file.endswith(".py"):
            found = _code_lines((root / file).read_text(encoding="utf-8"))
            tokens, lines = tokens + len(found), lines + len(set(found))
    return round(tokens / max(lines, 1), 2)


def _code_lines(source: str) -> list[int]:
    """The line of each token of code."""
    texts = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Expr))
    documented = {
        line
        for n in texts
        if isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)
        for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)
    }
    found, nested = [], 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        nested -= kind == "FSTRING_END"  # since Python 3.12
        if token.type not in _NO_CODE and token.start[0] not in documented and not nested:
            found += [token.start[0]] if kind != "FSTRING_END" else []
        nested += kind == "FSTRING_START"
    return found


BUDGETS = (
    Budget("package: lines", 100_000, _lines("hlofuse/", ".py"), goal=91_500),
    Budget("package: other text", 11_000, _other_lines),
    Budget("package: tokens a line", 9.9, _tokens_a_line),
    Budget("package: files", 800, _count("hlofuse/", ".py")),
    Budget("tests: lines", 42_000, _lines("tests/", ".py")),
    Budget("tools/corpus: lines", 4_000, _lines("tools/corpus/")),
    Budget("tracked files", 1_900, _count("")),
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
        verdict = f"{round(figure - budget.most, 2):,} above the budget" if figure > budget.most else "ok"
        if budget.goal is not None and figure > budget.goal:
            verdict += f", {figure - budget.goal:,} above the goal of {budget.goal:,}"
        print(f"{budget.name:22} {figure:8,} of {budget.most:8,}  {verdict}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
