"""The repository's own habits: the size check, and a README whose commands CI runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ..conftest import ROOT


def size(root: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools" / "size.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(("lines", "status"), [(4_000, 0), (4_001, 1)])
def test_the_size_check_fails_above_the_budget(tmp_path: Path, lines: int, status: int) -> None:
    for name, count in {"hlofuse/a.py": 10, "tests/test_a.py": 7, "tools/corpus/programs.py": lines}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text("x = 1\n" * count)
    found, out = size(tmp_path)
    assert found == status
    figures = dict(re.findall(r"^(.+?) +([\d,.]+) of", out, re.MULTILINE))
    assert figures == {
        "package: lines": "10",
        "package: other text": "0",
        "package: tokens a line": "3.0",
        "package: files": "1",
        "tests: lines": "7",
        "tools/corpus: lines": f"{lines:,}",
        "tracked files": "3",
    }
    assert ("1 above the budget" in out) == bool(status)


def test_the_size_check_counts_code_and_text_that_somebody_reads(tmp_path: Path) -> None:
    code = (
        '"""One\n\ntwo."""\n\n# no code\nx = f(1,\n      2)\n\n\ndef g() -> None:\n    """Text."""\n    h()\n'
    )
    files = {"a.py": code, "b.toml": "a = 1\nb = 2\n", "cost/gpu/product_rates.csv": "1,2\n" * 20_000}
    for name, text in files.items():
        file = tmp_path / "hlofuse" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    status, out = size(tmp_path)
    figures = dict(re.findall(r"^(.+?) +([\d,.]+) of", out, re.MULTILINE))
    assert status == 0
    assert figures["package: lines"] == "12"
    assert figures["package: other text"] == "2"
    # x = f(1, and 2) and def g() -> None: and h()
    assert figures["package: tokens a line"] == f"{(6 + 2 + 7 + 3) / 4:.1f}"
    (tmp_path / "hlofuse" / "a.py").write_text("x = f(1, 2, 3, 4)\n")
    status, out = size(tmp_path)
    assert status == 1
    assert re.search(r"tokens a line +12.0 of +9.9 +2.1 above the budget", out)
    (tmp_path / "hlofuse" / "a.py").write_text("x = 1\n" * 91_501)
    assert "1 above the goal of 91,500" in size(tmp_path)[1]


def test_ci_runs_the_commands_of_the_readme() -> None:
    commands = re.findall(r"^    (make \w+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands == ["make demo", "make test"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    for command in commands:
        assert f"- run: {command} " in workflow
        assert f"{command}\n" in (ROOT / ".ci" / "run").read_text()


def test_ci_releases_and_classifiers_name_the_same_pythons() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    (matrix,) = re.findall(r"^ +python: \[(.+)\]$", workflow, re.MULTILINE)
    project = (ROOT / "pyproject.toml").read_text()
    pythons = re.findall(r":: Python :: (3\.\d+)", project)
    assert re.findall(r"3\.\d+", matrix) == pythons
    assert tomllib.loads(project)["tool"]["cibuildwheel"]["build"] == [
        f"cp{version.replace('.', '')}-*" for version in pythons
    ]


def test_the_hooks_run_what_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lint = re.search(r"^lint: (.+) ##", makefile, re.MULTILINE)
    assert lint is not None
    parts = "|".join(lint[1].split())
    recipes = re.findall(rf"^(?:{parts}):.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    assert len(recipes) == len(lint[1].split())
    tools = set(re.findall(r"\$\(BIN\)/([\w-]+)", "".join(recipes)))
    assert tools == {"ruff", "mypy", "lint-imports", "python"}
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert {tool for tool in tools if f"entry: .venv/bin/{tool}" in hooks} == tools
    assert "tools/size.py" in hooks


def test_the_changelog_begins_with_what_is_not_released() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1:] == sorted(headings[1:], reverse=True)
