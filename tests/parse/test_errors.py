"""Messages for common mistakes: each case of `errors/*.hlo` has the text, then our MESSAGE for it.

`pytest --update-golden tests/parse/test_errors.py` writes the messages anew; read them before you commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.ir import HloParseError
from hlofuse.ir.text.build import parse_by_grammar as parse_module
from ..fixtures import Case, read_cases, write_message

ERRORS = read_cases(Path(__file__).with_name("errors"))


@pytest.mark.parametrize("case", ERRORS, ids=str)
def test_message(request: pytest.FixtureRequest, case: Case) -> None:
    with pytest.raises(HloParseError) as caught:
        parse_module(case.text, f"{case.name}.hlo")
    message = f"{caught.value}\n"
    if request.config.getoption("--update-golden"):
        write_message(case, message)
    else:
        assert message == case.section("MESSAGE")


def test_place_is_counted_from_one() -> None:
    with pytest.raises(HloParseError) as caught:
        parse_module("HloModule m\nENTRY e {\n  ROOT p = f33[] parameter(0)\n}\n")
    assert (caught.value.line, caught.value.column) == (3, 12)
    assert caught.value.source_line == "  ROOT p = f33[] parameter(0)"
