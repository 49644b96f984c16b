"""Typed attribute values: the patterns and the grammar make the same of a text, and print it back."""

from __future__ import annotations

import re
from functools import cache

import pytest

from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.attributes.parsers import parse_value
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, PaddingConfig, SliceRanges, Window
from hlofuse.ir.text.build import parse_by_grammar as parse_module
from hlofuse.ir.text.grammar import parse_attribute
from .cases import cases

PRINTED = (Window, PaddingConfig, SliceRanges, ConvolutionDimensionNumbers, OpMetadata)


@cache
def written() -> dict[tuple[str, str], None]:
    """Every attribute in the accepted cases."""
    found: dict[tuple[str, str], None] = {}
    for case in cases():
        if case.hlofuse == "accept":
            module = parse_module(case.text)
            for attributes in (module.attributes, *(i.attributes for i in module.instructions())):
                found |= dict.fromkeys(attributes.raw_items.items())
    return found


def test_patterns_and_grammar_agree() -> None:
    assert len(written()) > 250
    for name, text in written():
        assert parse_value(name, text) == parse_attribute(name, text), f"{name}={text}"


def test_values_print_as_text_of_the_same_value() -> None:
    for name, text in written():
        value = parse_attribute(name, text)
        if isinstance(value, PRINTED):
            repeated_call = parse_attribute(name, str(value))
            assert repeated_call == value, f"{name}={text} became {value}"
            assert str(repeated_call) == str(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("window", "{size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=2x1 rhs_dilate=1x2 rhs_reversal=1x1}"),
        ("slice", "{[0:8:1], [2:16:2]}"),
        ("padding", "0_0x-1_2"),
        ("dim_labels", "b01f_01io->b01f"),
        ("metadata", '{op_type="t" op_name="a\\"b" source_file="f.py" source_line=3 stack_frame_id=4}'),
    ],
)
def test_canonical_text_comes_back(name: str, text: str) -> None:
    assert str(parse_value(name, text)) == text


def test_strings_are_unescaped() -> None:
    assert parse_value("backend_config", '"a\\n\\"b\\"\\101\\x42"') == 'a\n"b"AB'
    assert parse_value("custom_call_target", '"\\303\\251"') == "é"
    assert parse_value("backend_config", '{"a":"\\n"}') == '{"a":"\\n"}'
    assert parse_value("frontend_attributes", '{a="x\\ty",b={c "d"}}') == {"a": "x\ty", "b": '{c "d"}'}


def test_names_of_computations_and_instructions() -> None:
    assert parse_value("to_apply", "%add.1") == "add.1"
    assert parse_value("branch_computations", "{%a, b}") == ("a", "b")
    assert parse_value("control-predecessors", "{%a}") == ("a",)


def test_a_name_nobody_knows_keeps_its_text() -> None:
    assert parse_value("from_the_future", "{1:2}") == "{1:2}"


def test_quoted_metadata_survives_any_character() -> None:
    for text in ("é", "\x00", "a\\b", 'say "x"', "line\nbreak", "\U0001f600"):
        metadata = OpMetadata(op_name=text)
        assert re.fullmatch(r"[ -~]+", str(metadata))
        assert parse_attribute("metadata", str(metadata)).op_name == text
