"""The program in docs/library.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def test_the_program_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 1
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(programs[0], names)
    out = capsys.readouterr().out
    assert out.startswith("6 → 4\nCPU005 The producer has no loop form 2 4198400\n")
    assert "divide broadcast_multiply_fusion CPU007 Fusion is not profitable." in out
    assert "CPU007 1 ['divide']" in out
    assert "new ['broadcast_divide_fusion']" in out
    assert str(names["picture"]).startswith("<?xml")
    assert str(names["page"]).startswith("<!doctype html>")
