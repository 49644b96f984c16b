"""The programs in docs/library.md run as they stand there, and the types it names are where it says."""

from __future__ import annotations

import importlib.util
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")


def test_the_types_are_where_the_page_says() -> None:
    named = re.findall(r"`(hlofuse\.[a-z_.]+)\.([A-Z]\w+)`", PAGE)
    assert ("hlofuse.ir", "HlofuseError") in named
    assert [f"{module}.{name}" for module, name in named if not hasattr(import_module(module), name)] == []


def test_the_members_are_those_of_a_report() -> None:
    from hlofuse.library.report import Report

    members = re.findall(
        r"`(?:report)?\.(\w+)", PAGE.partition("## What a report answers")[2].partition("\n\n|")[2]
    )
    assert {"verdict", "why", "kernels", "explore"} <= set(members)
    assert [name for name in members if not hasattr(Report, name)] == []


def test_the_programs_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) == 5
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for program in programs:
        needed = [name for name in ("jax", "pandas") if f"import {name}" in program]
        if all(importlib.util.find_spec(name) for name in needed):
            exec(program, names)
    assert "15 kernels" in capsys.readouterr().out
    assert names["changes"].fusions
