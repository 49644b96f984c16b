"""What comes from a dump is plain words in a markdown report: no markup, no links, nobody called."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from hlofuse.format.escape import markdown, table

HOSTILE = (
    "@octocat",
    "thanks to @org/team.",
    "https://evil.example/a?b=c",
    "see www.evil.example",
    "ftp://evil.example",
    "someone@evil.example",
    "mailto:someone@evil.example",
    "#1",
    "org/repo#12",
    "GH-7",
    "*bold* _thin_ `code` [text](http://x) ![](http://y) <b>&amp;",
    "a | b",
    "trailing @",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_words_come_out_as_they_went_in(text: str) -> None:
    rendered = MarkdownIt("commonmark").enable("table").render(markdown(text))
    phrase = re.sub(r"<!-- -->|</?p>\n?", "", rendered).strip()
    assert html.unescape(phrase) == text
    assert not re.search(r"<(?!!-- -->)", phrase)  # no element beside the paragraph


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_is_left_that_github_links(text: str) -> None:
    # Links are looked for in the text between tags and comments, after entities and backslashes are resolved.
    rendered = MarkdownIt("commonmark").render(markdown(text))
    for part in re.split(r"<[^>]*>", rendered):
        assert not re.search(r"@\w|\w@\w|://|\bwww\.|#\d|\bGH-\d", html.unescape(part)), part


def test_ordinary_names_are_left_alone() -> None:
    for name in ("fusion.21", "programs.py:305", "f32[4,64]", "steps 1–3, 7", "a: b // c", "wwwhat.x"):
        assert "<!--" not in markdown(name)


def test_a_table_keeps_its_cells() -> None:
    text = table(("a", "b"), [(markdown("x|y"), markdown("@me"))])
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert re.findall(r"<td>(.*?)</td>", rendered) == ["x|y", "@<!-- -->me"]
