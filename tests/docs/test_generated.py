"""`make docs` builds a page for every rule, with all its sections, and an index without dead links."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from hlofuse.rules.catalogue import catalogue

ROOT = Path(__file__).parent.parent.parent
SECTIONS = ["What it asks", "If so", "Why XLA asks", "What you can do"]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("docs") / "rules"
    folder.mkdir()
    (folder / "XX001.md").write_text("a rule of an earlier release")
    generator().build(folder)
    return folder


def test_every_rule_has_a_page_and_every_page_a_rule(built: Path) -> None:
    assert {p.stem for p in built.iterdir()} == {*catalogue(), "README"}


def test_every_page_has_its_sections(built: Path) -> None:
    for code, rule in catalogue().items():
        page = (built / f"{code}.md").read_text(encoding="utf-8")
        headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
        assert page.startswith(f"# {code}: {rule.title}\n"), code
        assert headings[: len(SECTIONS)] == SECTIONS, code
        assert "In XLA" in headings, code
        # No section is empty.
        assert not re.search(r"^## .+\n+(?=## |\Z)", page, re.MULTILINE), code


def test_the_index_links_to_every_page_once(built: Path) -> None:
    index = (built / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((\w+\.md)\)", index)
    assert sorted(links) == sorted(f"{code}.md" for code in catalogue())


def test_no_page_of_the_repository_links_to_built_or_missing_files() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")]
    links = [
        (page, target.partition("#")[0])
        for page in pages
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        if not re.match(r"\w+:|#", target)
    ]
    assert len(links) > 50
    dead = [
        f"{page.relative_to(ROOT)}: {target}" for page, target in links if not (page.parent / target).exists()
    ]
    assert dead == []
