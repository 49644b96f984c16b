"""What docs/extending.md shows is taken as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hlofuse.ir.text.reader import parse_module
from hlofuse.plugins import ActiveRules
from hlofuse.plugins.pattern import Matcher, find_matches, parse_pattern

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PATTERN = next(text for language, text in BLOCKS if not language)
PROGRAM = """HloModule m
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b)
}
ENTRY main { v = f32[4,8] parameter(0)
 q = f32[4,8] multiply(v, v)
 z = f32[] constant(0)
 r = f32[4] reduce(q, z), dimensions={1}, to_apply=sum
 e = f32[] constant(8)
 eb = f32[4] broadcast(e), dimensions={}
 m = f32[4] divide(r, eb)
 w = f32[4] rsqrt(m)
 wb = f32[4,8] broadcast(w), dimensions={0}
 ROOT o = f32[4,8] multiply(wb, v)
}
"""


def test_the_pattern_matches() -> None:
    entry = parse_module(PROGRAM).entry
    (match,) = find_matches(Matcher(parse_pattern(PATTERN)), entry)
    assert match.root is entry.root
    assert match.sizes == {"T": "f32", "N": 8}


def test_the_entries_are_good() -> None:
    programs = [text for language, text in BLOCKS if language == "python" and "RULES" in text]
    found: list[str] = []
    for program in programs:
        names: dict[str, Any] = {"PATTERN": PATTERN}
        exec(program, names)
        found += ActiveRules.of(names["RULES"]).rules
    assert found == ["ACME001", "ACME002"]
