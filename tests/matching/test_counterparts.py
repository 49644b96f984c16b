"""Which instruction is which, in modules that differ in names and order."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.matching.pairs import counterparts
from ..fixtures import companion_texts

TEXTS = companion_texts(__file__)

ONE = TEXTS["one"]
OTHER = TEXTS["other"]


def pairs(other: str) -> dict[str, str] | None:
    found = counterparts(parse_module(ONE), parse_module(other))
    return None if found is None else {a.name: b.name for a, b in found.items()}


def test_equal_operations_are_told_apart_by_who_reads_them() -> None:
    found = pairs(OTHER)
    assert found is not None
    assert {name: name.upper() for name in found} == found
    assert len(found) == 9


def test_modules_that_differ_have_none() -> None:
    assert pairs(OTHER.replace("0.5,1})", "0.5,2})")) is None
    assert pairs(OTHER.replace("add(FIRST, CALLED)", "add(CALLED, FIRST)")) is None
    assert pairs(OTHER.replace("cosine(SECOND)", "cosine(FIRST)")) is None
    assert pairs(OTHER.replace("sine(P)", "negate(P)")) is None
    assert pairs(OTHER.replace("f32[2]", "f32[3]").replace("{0.5,1}", "{0.5,1.0,1}")) is None


def test_an_unread_element_may_be_missing() -> None:
    text = TEXTS["unread_element_may"]
    more = text.replace("  ROOT", "  b = f32[] get-tuple-element(p), index=0\n  ROOT")
    found = counterparts(parse_module(more), parse_module(text))
    assert found is not None
    assert sorted(i.name for i in found) == ["a", "p", "r"]


def test_elements_that_a_text_leaves_out_may_be_any() -> None:
    shown = "HloModule m\nENTRY e {\n ROOT c = s32[3]{0} constant({1, 2, 3})\n}\n"
    hidden = shown.replace("{1, 2, 3}", "{...}")
    other = shown.replace("3})", "4})")
    assert counterparts(parse_module(shown), parse_module(hidden)) is not None
    assert counterparts(parse_module(hidden), parse_module(shown)) is not None
    assert counterparts(parse_module(shown), parse_module(other)) is None
