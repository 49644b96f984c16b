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
    figures = dict(re.findall(r"^(.+?) +([\d,]+) of", out, re.MULTILINE))
    assert figures == {
        "package: lines": "10",
        "package: files": "1",
        "tests: lines": "7",
        "tools/corpus: lines": f"{lines:,}",
        "tracked files": "3",
    }
    assert ("1 above the budget" in out) == bool(status)


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
    lint = re.search(r"^lint:.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert lint is not None
    tools = set(re.findall(r"\$\(BIN\)/([\w-]+)", lint[1]))
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert {tool for tool in tools if f"entry: .venv/bin/{tool}" in hooks} == tools
    assert "tools/size.py" in hooks


def test_the_changelog_begins_with_what_is_not_released() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1:] == sorted(headings[1:], reverse=True)
