"""`tools/lint_words.py`: names and prose without retired words."""

import ast
from typing import Any

import pytest

from ..running import load_tool


@pytest.fixture(scope="module")
def lint() -> Any:
    return load_tool("lint_words")


def names(lint: Any, path: str, code: str) -> list[str]:
    return [hit.split(": ")[1] for hit in lint.name_hits(path, ast.parse(code))]


@pytest.mark.parametrize(
    ("code", "hits"),
    [
        ("def at_home(): ...", ["at_home"]),
        ("class BigFilm:\n    dearest = 1", ["BigFilm", "dearest"]),
        ("def f(ours, *, told=0): x.twins = 1", ["ours", "told", "twins"]),
        ("import phrases as words", ["words"]),
        ("def test_what_is_told(): ...", []),
        ("stack_frames, sign, mask = frame, told(), x.film", []),
    ],
)
def test_what_code_defines_is_checked(lint: Any, code: str, hits: list[str]) -> None:
    assert sorted(names(lint, "hlofuse/a.py", code)) == sorted(hits)


@pytest.mark.parametrize(
    ("code", "hits"),
    [
        ("const { told, x } = y;\nlet [said] = z;", ["told", "said"]),
        ("  showTwin(box) { this.made = 1; }", ["showTwin", "made"]),
        ('const x = "told";  // said\nif (this.told === said) x;', []),
    ],
)
def test_what_scripts_define_is_checked(lint: Any, code: str, hits: list[str]) -> None:
    found = [hit.split(": ")[1] for hit in lint.name_hits("a.js", None, code)]
    assert sorted(found) == sorted(hits)


def test_file_names_are_checked(lint: Any) -> None:
    assert names(lint, "hlofuse/reports/told.py", "") == ["told"]
    assert names(lint, "samples/told.hlo", "") == []


def test_a_hit_names_the_standard_word(lint: Any) -> None:
    (hit,) = lint.name_hits("a.py", ast.parse("\ntwin = 1"))
    assert hit == "a.py:2: twin: instead of “twin” write: duplicate, equivalent"


@pytest.mark.parametrize(
    ("code", "hits"),
    [
        ('def f():\n    """Is it?"""', ["a.py:1: a docstring states, it does not ask"]),
        ('x = f"a\\n{y} told"', ["a.py:1: “told” is retired from prose"]),
        ('x = """\nThe dearest."""', ["a.py:2: “dearest” is retired from prose"]),
        ('x = "turns off; a kernel of its own"', []),
    ],
)
def test_prose(lint: Any, code: str, hits: list[str]) -> None:
    found = list(lint.prose_hits("a.py", code, ast.parse(code)))
    assert [h.replace("a.py:2: “told”", "a.py:1: “told”") for h in found] == hits


@pytest.mark.parametrize(
    ("code", "hits"),
    [
        (
            '"""What runs."""\nx = 1\n"""Of x."""\n\n\nclass A:\n    """The A."""',
            ["1: “What …”", "3: “Of …”"],
        ),
        ('def f():\n    self.x = 1\n    """How often."""\n    y(\'Of y\')', ["3: “How …”"]),
        ("x = 1  # Nobody behind it", ["1: “Nobody”"]),
        ('"""Whatever, somebodys, thereof."""', []),
    ],
)
def test_counted_words(lint: Any, code: str, hits: list[str]) -> None:
    found = [hit.removeprefix("a.py:") for _, hit in lint.counted_hits("a.py", code, ast.parse(code))]
    assert found == hits


def test_counts_above_the_maximum_are_listed(lint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "AT_MOST", {"rare word": 1})
    one, other = ("rare word", "a.py:1"), ("rare word", "a.py:2")
    assert list(lint.above_maximum([one])) == []
    assert list(lint.above_maximum([one, other])) == [
        "a.py:1",
        "a.py:2",
        "rare word: 2, at most 1 are allowed",
    ]


@pytest.mark.parametrize(
    ("page", "hits"),
    [
        ("The order is told.", ["told"]),
        ("A kernel says no\n\nat first.", ["says no"]),
        ("What is read, is written. It runs ahead of time, behind a flag.", ["What is read, is"]),
        ("A field `dearest`.\n\n    code told\n\n```\nfilm\n```\n<!-- told -->\n", []),
        ("<!-- begin x -->\n| told |\n<!-- end -->\n", []),
        (f"{'word ' * 25}word.", ["26.0 words in a sentence"]),
        ("# A heading\n\n- one item\n  that goes on.\n- another one\n\n| a | table |\n", []),
    ],
)
def test_pages(lint: Any, page: str, hits: list[str]) -> None:
    found = list(lint.page_hits("docs/a.md", page))
    assert len(found) == len(hits)
    assert [hit for hit, text in zip(hits, found, strict=True) if hit not in text] == []


def test_sentences_of_a_page(lint: Any) -> None:
    text = "One [link text](x.md) is read. And `code` counts\nas one."
    page = f"# Title\n\n{text}\n\n- An item, too\n- A second item"
    assert lint.sentences(page) == [
        "One link text is read.",
        "And code counts as one.",
        "An item, too",
        "A second item",
    ]
