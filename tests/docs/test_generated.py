"""Pages made from the code are as the code would make them now."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent.parent


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_rule_pages_are_up_to_date() -> None:
    assert generator().stale() == [], "run `make docs`"


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    from hlofuse.rules.catalogue import catalogue

    pages = {p.stem for p in (ROOT / "docs" / "rules").glob("*.md")} - {"README"}
    assert pages == set(catalogue())
