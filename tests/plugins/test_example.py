"""The example package, installed as a user would and used from the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GPT2 = "samples/cpu/gpt2_block"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that has the example installed."""
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(ROOT / "examples" / "fusion-rule", folder / "source")
    site = folder / "site"
    flags = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *flags, "--target", str(site), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "COLUMNS": "100"}


def run(environment: dict[str, str], *text: str) -> str:
    command = [sys.executable, "-m", "hlofuse", *text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_large_broadcasts_stay_apart(installed: dict[str, str]) -> None:
    plain: dict[str, Any] = json.loads(run(installed, "explain", GPT2, "--format", "json"))
    text = run(installed, "explain", GPT2, "--rules", "large-broadcasts", "--format", "json")
    found: dict[str, Any] = json.loads(text)
    assert (plain["what_if"], "difference" in plain) == ([], False)
    (change,) = found["what_if"]
    assert change == "with the rules of large-broadcasts (hlofuse-large-broadcasts 0.1.0)"
    assert found["after"]["kernels"] > plain["after"]["kernels"]
    refused = [e for p in found["passes"] for e in p["refused"] if e["rule"] == "LARGE001"]
    assert refused
    assert "LARGE001" in run(installed, "rule")
    off = run(installed, "explain", GPT2, "--rules", "all", "--disable", "LARGE001", "--format", "json")
    assert json.loads(off)["after"]["kernels"] == plain["after"]["kernels"]
