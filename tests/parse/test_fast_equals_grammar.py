"""The fast path and the grammar read the same module out of the same text."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hlofuse.ir import HloParseError, parse_module
from hlofuse.ir.text.build import parse_by_grammar
from .cases import cases
from .same import differences

SAMPLES = Path(__file__).parents[2] / "samples"
CORPUS = os.environ.get("HLOFUSE_CORPUS")
"""A folder of dumps to go through as well; HLOFUSE_CORPUS_STEP takes every n-th of them only."""


def texts() -> list[Path]:
    found = sorted(p for p in SAMPLES.rglob("*") if p.name.endswith((".hlo", ".hlo.gz", ".txt", ".txt.gz")))
    if CORPUS:
        step = int(os.environ.get("HLOFUSE_CORPUS_STEP", "1"))
        found += sorted(Path(CORPUS).rglob("*.hlo"))[::step]
    return found


def read(path: Path) -> str:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read()
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", texts(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_dump(path: Path) -> None:
    text = read(path)
    if "HloModule" not in text[:10_000]:
        pytest.skip("not a dump")
    assert list(differences(parse_module(text), parse_by_grammar(text))) == []


def test_accepted_cases() -> None:
    wrong = {}
    for case in cases():
        if case.hlofuse == "accept":
            found = list(differences(parse_module(case.text), parse_by_grammar(case.text)))
            if found:
                wrong[str(case)] = found
    assert not wrong


def test_rejected_cases() -> None:
    passed = []
    for case in cases():
        if case.hlofuse == "reject":
            try:
                parse_module(case.text)
            except HloParseError:
                continue
            passed.append(f"{case}: {case.snippet}")
    assert not passed, "\n".join(passed)


def test_ordinary_text_needs_no_grammar() -> None:
    code = """
import sys
from hlofuse.ir import parse_module
module = parse_module('HloModule m\\n\\nENTRY %e (p: f32[4]) -> f32[4] {\\n'
    '  %p = f32[4]{0} parameter(0)\\n'
    '  ROOT %n = f32[4]{0} negate(%p), metadata={op_name="n" stack_frame_id=1}\\n}\\n')
module.entry.root.attributes["metadata"]
assert "lark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
