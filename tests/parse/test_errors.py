"""Messages for common mistakes: `errors/NAME.hlo` is the text, `errors/NAME.txt` what we say to it.

With UPDATE_GOLDEN=1 in the environment the messages are written anew; read them before you commit.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hlofuse.ir import HloParseError
from hlofuse.ir.parse.grammar import parse_module

ERRORS = sorted(Path(__file__).with_name("errors").glob("*.hlo"))


@pytest.mark.parametrize("path", ERRORS, ids=lambda p: p.stem)
def test_message(path: Path) -> None:
    with pytest.raises(HloParseError) as caught:
        parse_module(path.read_text(encoding="utf-8"), path.name)
    message = f"{caught.value}\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(message, encoding="utf-8")
    assert message == golden.read_text(encoding="utf-8")


def test_place_is_counted_from_one() -> None:
    with pytest.raises(HloParseError) as caught:
        parse_module("HloModule m\nENTRY e {\n  ROOT p = f33[] parameter(0)\n}\n")
    assert (caught.value.line, caught.value.column) == (3, 12)
    assert caught.value.source_line == "  ROOT p = f33[] parameter(0)"
