"""`make docs` builds a page for every rule; no page of the repository names a file that does not exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from hlofuse.rules.catalogue import catalogue

ROOT = Path(__file__).parent.parent.parent
SECTIONS = ["Condition", "Result", "Why", "What to do"]


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
        expected = [s for s in SECTIONS if rule.advice or s != "What to do"]
        assert headings[: len(expected)] == expected, code
        assert "In XLA" in headings, code
        # No section is empty.
        assert not re.search(r"^## .+\n+(?=## |\Z)", page, re.MULTILINE), code


def test_the_index_links_to_every_page_once(built: Path) -> None:
    index = (built / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((\w+\.md)\)", index)
    assert sorted(links) == sorted(f"{code}.md" for code in catalogue())


def repository_pages() -> dict[Path, str]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    pages += [p for folder in ("benchmarks", "examples", "samples") for p in (ROOT / folder).rglob("*.md")]
    return {page: page.read_text(encoding="utf-8") for page in pages}


def test_links_lead_to_files() -> None:
    links = [
        (page, target.partition("#")[0])
        for page, text in repository_pages().items()
        for target in re.findall(r"\]\(([^)\s]+)\)", text)
        if not re.match(r"\w+:|#", target)
    ]
    assert len(links) > 50
    dead = [f"{page.relative_to(ROOT)}: {t}" for page, t in links if not (page.parent / t).exists()]
    assert dead == []


def test_paths_in_the_text_exist() -> None:
    paths = {
        (page, path)
        for page, text in repository_pages().items()
        if page.name != "CHANGELOG.md"
        for path in re.findall(r"`((?:hlofuse|tools|tests|grammars|samples|docs)/[\w./*-]*)`", text)
    }
    assert len(paths) > 30
    dead = sorted(f"{page.relative_to(ROOT)}: {path}" for page, path in paths if not any(ROOT.glob(path)))
    assert dead == []
