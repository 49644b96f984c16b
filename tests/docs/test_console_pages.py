"""The commands that pages show run as shown, and the figures below them are what they print."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import pytest

from ..running import Run, load_tool

ROOT = Path(__file__).parents[2]
FIGURE = re.compile(r"\d[\d,.]*\d|\d")


TOOL = load_tool("run_pages")


@pytest.mark.parametrize("path", TOOL.PAGES, ids=lambda path: path.stem)
def test_commands_print_the_figures_of_the_page(
    hlofuse: Run, monkeypatch: pytest.MonkeyPatch, path: Path, tmp_path: Path
) -> None:
    page = path.read_text(encoding="utf-8")
    folder = tmp_path / "copy"
    shutil.copytree(TOOL.folder_of(page), folder)
    monkeypatch.chdir(folder)
    is_jax_there = importlib.util.find_spec("jax") is not None
    commands = [c for c in TOOL.shown(page) if c.is_run and (is_jax_there or " capture " not in c.command)]
    assert commands
    for c in commands:
        program, *arguments = shlex.split(c.command)
        if program != "hlofuse":
            TOOL.run(c, folder)
            continue
        stdin = Path(arguments[-1]).read_bytes() if "<" in arguments else b""
        result = hlofuse(
            *(arguments[: arguments.index("<")] if "<" in arguments else arguments), columns=104, stdin=stdin
        )
        assert result.status == c.status, f"{c.command}\n{result.err}"
        missing = set(FIGURE.findall("\n".join(c.lines))) - set(FIGURE.findall(result.out))
        assert missing == set(), c.command


def test_the_tutorial_shows_the_programs_of_its_sample() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    whole, *changed = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    folder = ROOT / "samples" / "tutorial"
    assert whole == (folder / "loss.py").read_text(encoding="utf-8")
    assert len(changed) == 2
    assert [part for part in changed if part not in (folder / "changed" / "loss.py").read_text("utf-8")] == []


def test_lines_that_a_page_leaves_out() -> None:
    cut = TOOL.Shown("hlofuse explain x", 0, ("a", "…", "z"))
    assert cut.with_output(["1", "2", "3", "4"]) == ["1", "…", "4"]
    assert TOOL.Shown("hlofuse render x", 0, ()).with_output(["note"]) == []
    (command,) = TOOL.commands("$ hlofuse check x  # exit status 1\nFAIL\n")
    assert command == TOOL.Shown("hlofuse check x", 1, ("FAIL",))
