"""The program in docs/library.md runs as it stands there, and the types it names are where it says."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


PAGE = ROOT / "docs" / "library.md"


def test_the_types_are_where_the_page_says() -> None:
    named = re.findall(r"`(hlofuse\.[a-z_.]+)\.([A-Z]\w+)`", PAGE.read_text(encoding="utf-8"))
    assert ("hlofuse.reports.explain", "Explanation") in named
    assert [f"{module}.{name}" for module, name in named if not hasattr(import_module(module), name)] == []


def test_the_program_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 1
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(programs[0], names)
    out = capsys.readouterr().out
    assert out.startswith("6 → 4\nCPU005 The producer cannot be emitted as a loop 2 4198400\n")
    assert "divide broadcast_multiply_fusion CPU007 Fusion is not profitable." in out
    assert "CPU007 1 ['divide']" in out
    assert "new ['broadcast_divide_fusion']" in out
    assert str(names["picture"]).startswith("<?xml")
    assert str(names["page"]).startswith("<!doctype html>")
