"""The GitHub Action's own steps, run as GitHub runs them, and the files that name them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..conftest import ROOT

EXAMPLE = ROOT / "examples" / "ci"


@dataclass(frozen=True)
class Outcome:
    status: int
    log: str
    summary: str
    outputs: dict[str, str]


def act(tmp_path: Path, where: Path, **inputs: str) -> Outcome:
    """Run the check step with these inputs in a repository."""
    command = tmp_path / "hlofuse"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hlofuse "$@"\n')
    command.chmod(0o755)
    summary, outputs = tmp_path / "summary", tmp_path / "outputs"
    done = subprocess.run(
        ["bash", str(ROOT / "tools" / "action" / "check")],
        cwd=where,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HLOFUSE": str(command),
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
            **inputs,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    lines = outputs.read_text().splitlines() if outputs.exists() else []
    attributes = dict(line.split("=", 1) for line in lines)
    return Outcome(
        done.returncode,
        done.stdout + done.stderr,
        summary.read_text() if summary.exists() else "",
        attributes,
    )


def test_a_project_as_it_should_be(tmp_path: Path) -> None:
    found = act(tmp_path, EXAMPLE, INPUTS="dumps\n\n", BASELINE="fusion.toml", RENDER=str(tmp_path / "svg"))
    assert found.status == 0, found.log
    assert found.outputs["failed"] == "false"
    assert list((tmp_path / "svg").iterdir()) == []


def test_a_change_is_annotated_summed_up_and_drawn(tmp_path: Path) -> None:
    found = act(
        tmp_path,
        EXAMPLE / "pull-request",
        INPUTS="dumps",
        BASELINE="../fusion.toml",
        OPTIONS="--tolerance '5'",
        SARIF=str(tmp_path / "s.sarif"),
        RENDER=str(tmp_path / "svg"),
    )
    assert found.status == 1, found.log
    assert "::error file=model.py,line=9," in found.log
    assert "more-bytes" not in Path(found.outputs["json"]).read_text()
    assert found.outputs["failed"] == "true"
    assert found.summary == Path(found.outputs["report"]).read_text()
    assert "jit\\_gated" in found.summary
    assert (tmp_path / "s.sarif").exists()
    assert sorted(p.name for p in (tmp_path / "svg").iterdir()) == ["000-jit_gated.svg", "001-jit_loss.svg"]


def test_a_step_may_be_let_pass(tmp_path: Path) -> None:
    where = EXAMPLE / "pull-request"
    found = act(tmp_path, where, INPUTS="dumps", BASELINE="../fusion.toml", FAIL="false")
    assert (found.status, found.outputs["failed"]) == (0, "true")


def test_wrong_input_is_no_broken_fusion(tmp_path: Path) -> None:
    found = act(tmp_path, EXAMPLE, INPUTS="nothing", BASELINE="fusion.toml", FAIL="false")
    assert found.status == 2
    assert "nothing" in found.log
    assert found.outputs == {}


def test_inputs_are_words_and_never_run(tmp_path: Path) -> None:
    evil = f"$(touch {tmp_path}/ran)"
    found = act(tmp_path, EXAMPLE, INPUTS=evil, BASELINE=f"`touch {tmp_path}/ran`", OPTIONS=f'"{evil}"')
    assert found.status == 2
    assert not (tmp_path / "ran").exists()


def test_the_action_runs_scripts_that_are_there_and_hands_them_all_inputs() -> None:
    text = (ROOT / "action.yml").read_text()
    scripts = re.findall(r'run: \'"\$GITHUB_ACTION_PATH/(\S+)"\'', text)
    assert scripts == ["tools/action/install", "tools/action/check"]
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK)
    declared = re.findall(r"^  (\w+):\n    description", text, re.MULTILINE)
    for name in declared[: declared.index("failed")]:
        assert f"{name.upper()}: ${{{{ inputs.{name} }}}}" in text
        assert re.search(rf"\b{name.upper()}\b", (ROOT / "tools" / "action" / "check").read_text())
    assert not re.search(r"run:.*\$\{\{", text), "an input in a script's text would be run"


@pytest.mark.parametrize("file", [".pre-commit-hooks.yaml", "examples/ci/.pre-commit-config.yaml"])
def test_the_hook_has_one_name(file: str) -> None:
    assert "id: hlofuse-check\n" in (ROOT / file).read_text()
