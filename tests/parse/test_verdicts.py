"""What XLA's parser accepts, the grammar accepts; what it rejects, the grammar rejects."""

from __future__ import annotations

import importlib.util

import pytest

from hlofuse.ir import HloParseError
from hlofuse.ir.text.build import parse_by_grammar as parse_module
from .cases import cases
from .record_verdicts import record

ALL = list(cases())


def verdict(text: str) -> str:
    try:
        parse_module(text)
    except HloParseError:
        return "reject"
    return "accept"


@pytest.mark.parametrize("file", sorted({c.file for c in ALL}))
def test_grammar_agrees_with_xla(file: str) -> None:
    wrong = []
    for case in ALL:
        if case.file == file and case.hlofuse != "crash" and verdict(case.text) != case.hlofuse:
            wrong.append(f"{case}: expected {case.hlofuse}: {case.snippet}")
    assert not wrong, "\n".join(wrong)


def test_there_are_cases_of_both_kinds() -> None:
    assert sum(c.xla == "accept" for c in ALL) > 600
    assert sum(c.xla == "reject" for c in ALL) > 500
    assert not [c for c in ALL if c.xla not in ("accept", "reject", "crash")]


@pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="needs jaxlib to ask")
def test_verdicts_are_still_xlas() -> None:
    attributes = record([c.text for c in ALL])
    changed = [f"{c}: {now}: {c.snippet}" for c, now in zip(ALL, attributes, strict=True) if now != c.xla]
    assert not changed, "\n".join(changed)
