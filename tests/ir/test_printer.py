"""What is read is printed as it was; options change what XLA's options change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import PrintOptions, parse_module, print_module
from hlofuse.ir.text.printer import print_computation, print_instruction
from ..fixtures import companion_texts

TEXTS = companion_texts(__file__)

SAMPLES = Path(__file__).parents[2] / "samples"
CORPUS = os.environ.get("HLOFUSE_CORPUS")
DUMPS = sorted(SAMPLES.rglob("*.hlo")) + (sorted(Path(CORPUS).rglob("*.hlo"))[::20] if CORPUS else [])

TEXT = TEXTS["text"] + "\n"
SHORT = PrintOptions(metadata=False, operand_numbers=0, signatures=False, percent=False)


@pytest.mark.parametrize("path", DUMPS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_dumps_come_back_byte_for_byte(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert print_module(parse_module(text)) == text


def test_everything_comes_back() -> None:
    assert print_module(parse_module(TEXT)) == TEXT


@pytest.mark.parametrize(
    "options",
    [
        PrintOptions(),
        SHORT,
        PrintOptions(operand_shapes=True),
        PrintOptions(compact_elements=True),
        PrintOptions(percent=False, names_after_braces=True, operand_numbers=1),
    ],
)
def test_printing_again_changes_nothing(options: PrintOptions) -> None:
    once = print_module(parse_module(TEXT), options)
    assert print_module(parse_module(once), options) == once


def test_a_style_is_remembered() -> None:
    for options in (
        SHORT,
        PrintOptions(compact_elements=True),
        PrintOptions(operand_shapes=True),
    ):
        text = print_module(parse_module(TEXT), options)
        assert print_module(parse_module(text)) == text


def test_short() -> None:
    text = print_module(parse_module(TEXT), SHORT)
    assert "%" not in text
    assert "FileNames" not in text
    assert '  n = f32[8]{0} negate(p), backend_config={"a":[1]}\n' in text
    assert "  r = f32[] reduce(n, zero), dimensions={0}, to_apply=sum, control-predecessors={n}\n" in text
    assert "ENTRY main {\n" in text


def test_elements_are_folded_into_operands() -> None:
    text = print_module(parse_module(TEXT), PrintOptions(compact_elements=True))
    assert "tuple(%n, %t#1)" in text
    assert "get-tuple-element" not in text
    assert [i.opcode for i in parse_module(text).entry].count("get-tuple-element") == 1


def test_long_operand_lists_are_numbered() -> None:
    module = parse_module(
        "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n"
        "  ROOT t = (f32[], f32[], f32[], f32[], f32[], f32[]) tuple(p, p, p, p, p, p)\n}\n"
    )
    root = module.entry.root
    assert print_instruction(root, PrintOptions()).endswith("tuple(%p, %p, %p, %p, %p, /*index=5*/%p)")
    assert print_instruction(root, SHORT).endswith("tuple(p, p, p, p, p, p)")


def test_large_constants() -> None:
    numbers = ", ".join(map(str, range(11)))
    module = parse_module(f"HloModule m\n\nENTRY e {{\n  ROOT c = s32[11]{{0}} constant({{{numbers}}})\n}}\n")
    assert f"constant({{{numbers}}})" in print_computation(module.entry)
    assert "constant({...})" in print_computation(module.entry, PrintOptions(large_constants=False))


def test_what_a_pass_made_in_a_scheduled_module_can_be_read_again() -> None:
    """A computation that no schedule tells about is printed in post order."""
    body = "p = f32[2] parameter(0)\n n = f32[2] negate(p)\n ROOT a = f32[2] add(n, p)"
    text = f"HloModule m, is_scheduled=true\n\nENTRY e {{\n {body}\n}}"
    fused = print_module(compile(parse_module(text)).after)
    assert "fusion(" in fused
    assert print_module(parse_module(fused)) == fused
