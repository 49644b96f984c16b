"""What docs/extending.md shows is taken as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hlofuse.plugins import ActiveRules

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_entries_are_good() -> None:
    found: list[str] = []
    for language, text in BLOCKS:
        if language == "python" and "RULES" in text:
            names: dict[str, Any] = {}
            exec(text, names)
            found += ActiveRules.of(names["RULES"]).rules
    assert found == ["ACME001"]
