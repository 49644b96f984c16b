"""Messages for common mistakes: `errors/NAME.hlo` is the text, `errors/NAME.txt` what we say to it.

`pytest --update-golden tests/parse/test_errors.py` writes the messages anew; read them before you commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.ir import HloParseError
from hlofuse.ir.text.build import parse_by_grammar as parse_module

from ..running import Golden

ERRORS = sorted(Path(__file__).with_name("errors").glob("*.hlo"))


@pytest.mark.parametrize("path", ERRORS, ids=lambda p: p.stem)
def test_message(golden: Golden, path: Path) -> None:
    with pytest.raises(HloParseError) as caught:
        parse_module(path.read_text(encoding="utf-8"), path.name)
    golden(path.with_suffix(".txt"), f"{caught.value}\n")


def test_place_is_counted_from_one() -> None:
    with pytest.raises(HloParseError) as caught:
        parse_module("HloModule m\nENTRY e {\n  ROOT p = f33[] parameter(0)\n}\n")
    assert (caught.value.line, caught.value.column) == (3, 12)
    assert caught.value.source_line == "  ROOT p = f33[] parameter(0)"
