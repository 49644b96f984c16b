"""`make site` has a page for every rule and every public name; no page names a file that does not exist."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import hlofuse
from hlofuse.rules.catalogue import catalogue
from ..running import load_tool

ROOT = Path(__file__).parent.parent.parent
SECTIONS = ["Condition", "Result", "Why", "What to do"]


@pytest.fixture(scope="module")
def rule_pages() -> dict[str, str]:
    found: dict[str, str] = load_tool("generate_docs").rule_pages()
    return found


def test_every_rule_has_a_page_and_every_page_a_rule(rule_pages: dict[str, str]) -> None:
    assert set(rule_pages) == {f"{name}.md" for name in (*catalogue(), "README")}


def test_every_page_has_its_sections(rule_pages: dict[str, str]) -> None:
    for code, rule in catalogue().items():
        page = rule_pages[f"{code}.md"]
        headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
        assert page.startswith(f"# {code}: {rule.title}\n"), code
        expected = [s for s in SECTIONS if rule.advice or s != "What to do"]
        assert headings[: len(expected)] == expected, code
        # XLA:TPU's passes are closed; what was learnt about them says so.
        assert ("XLA source" in headings) is not code.startswith("TP"), code
        assert ("XLA:TPU's source is not public" in page) is code.startswith("TP"), code
        # No section is empty.
        assert not re.search(r"^## .+\n+(?=## |\Z)", page, re.MULTILINE), code


def test_the_index_links_to_every_page_once(rule_pages: dict[str, str]) -> None:
    links = re.findall(r"\]\((\w+\.md)\)", rule_pages["README.md"])
    assert sorted(links) == sorted(f"{code}.md" for code in catalogue())


def test_links_of_the_site_lead_to_files_of_the_site(tmp_path: Path) -> None:
    """`make site` checks the same with the generator of the site, anchors included."""
    assert load_tool("generate_docs").build(tmp_path / "site") > 300
    pages = {p: p.read_text(encoding="utf-8") for p in (tmp_path / "site").rglob("*.md")}
    dead = [
        f"{page.name}: {link}"
        for page, text in pages.items()
        for link in re.findall(r"\]\(([^)\s#]+)", text)
        if not re.match(r"\w+:", link) and not (page.parent / link).exists()
    ]
    assert dead == []


def test_the_site_lists_every_page() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {p.name for p in (ROOT / "docs").glob("*.md")} - listed == set()
    assert {name for name in listed if not name.startswith("rules/")} <= {
        *(str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")),
        *load_tool("generate_docs").EXTRA.values(),
        "options.md",
    }


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    paths = re.findall(r"^::: (\S+)$", page, re.MULTILINE)
    described = [
        getattr(importlib.import_module(module), name)
        for module, _, name in (p.rpartition(".") for p in paths)
    ]
    missing = [name for name in hlofuse.__all__ if not any(getattr(hlofuse, name) is d for d in described)]
    assert missing == []


def repository_pages() -> dict[Path, str]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
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
