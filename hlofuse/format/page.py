"""A report's terminal output as a Markdown document.

A report is written once, as lines, indented lines and tables of rich. On a terminal a `Console` lays them
out; a `MarkdownPage` makes GitHub's Markdown of them.
"""

import io
import re
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from hlofuse.format.escape import markdown, markdown_code, printable, table

WIDTH = 10_000
"""The width of a page, enough for any line."""

_NAME = Style(meta={"name": True})
_BOLD = re.compile(r"(not )?bold")
_WIDE_GAP = re.compile(r"(?<=\S) {2,}(?=\S)|(?<=\S) {2,}$|^ {2,}(?=\S)")
_APART = " · "
"""The separator for a wide gap between two parts of a line."""

_BULLET = 3
"""The indentation of list items below a line."""


def name_text(*names: str, style: str = "") -> Text:
    """Names from a dump, ` → ` between them: plain on a terminal, code in Markdown."""
    return Text(" → ", style=style).join([Text(printable(n), style=_NAME) for n in names])


def as_markdown(draw: Callable[[Console], object]) -> str:
    """The output of `draw` as Markdown."""
    page = MarkdownPage()
    draw(page)
    return page.markdown


class MarkdownPage(Console):
    """Collects blocks; the style of a line decides its role: heading, result, remark or command."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=WIDTH, _environ={})
        self._blocks: list[str] = []
        self._titled = False

    @property
    def markdown(self) -> str:
        """The document: a blank line between blocks, none between the items of a list."""
        out = ""
        for before, block in zip(["", *self._blocks], self._blocks, strict=False):
            joined = before.startswith("- ") and block.startswith("- ")
            out += ("" if not out else "\n" if joined else "\n\n") + block
        return out + "\n" if out else ""

    def print(self, *objects: Any, style: Any = None, **_given: Any) -> None:
        """Add a block for each object."""
        for shown in objects:
            indent = 0
            if isinstance(shown, Padding):
                indent, shown = shown.left, shown.renderable
            if isinstance(shown, Table):
                self._add_table(shown, indent)
            else:
                self._add_line(shown if isinstance(shown, Text) else Text(shown), style, indent)

    def _add_line(self, text: Text, style: Any, indent: int) -> None:
        indent += len(text.plain) - len(text.plain.lstrip(" "))
        kind = str(style or text.style).split()
        if "green" in kind and text.plain.lstrip().startswith("hlofuse "):
            self._add(markdown_code(text.plain.strip()), "", indent)
        elif "cyan" in kind:
            self._add(_inline(text, ""), "### ")
        elif "yellow" in kind and not indent:
            self._add(_inline(text, " ".join(kind)), "> ")
        elif "bold" in kind and not indent and not self._titled:
            self._titled = True
            self._add(_inline(text, ""), "## ")
        else:
            self._add(_inline(text, " ".join(kind)), "", indent)

    def _add(self, phrase: str, mark: str, indent: int = 0) -> None:
        if phrase:
            self._blocks.append((mark or ("- " if indent >= _BULLET else "")) + phrase)

    def _add_table(self, shown: Table, indent: int) -> None:
        """Add a table; one row without headings is a line with separated parts."""
        heads = [_cell(c.header) if shown.show_header else "" for c in shown.columns]
        cells = [[_cell(c) for c in column.cells] for column in shown.columns]
        used = [k for k, head in enumerate(heads) if head or any(cells[k])]
        rows = [[cells[k][n] for k in used] for n in range(shown.row_count)]
        if len(rows) == 1 and not any(heads):
            self._add(_APART.join(filter(None, rows[0])), "", indent)
        elif rows:
            right = [n for n, k in enumerate(used) if shown.columns[k].justify == "right"]
            self._blocks.append(table([heads[k] for k in used], rows, right).rstrip("\n"))


def _cell(shown: object) -> str:
    return _inline(shown if isinstance(shown, Text) else Text(str(shown)), "")


def _inline(text: Text, style: str) -> str:
    """A line in Markdown: names as code, and bold text; `style` is that of the whole line."""
    out = []
    for bold, parts in groupby(_parts(text, style), key=itemgetter(0)):
        phrase = "".join(part for _, part in parts)
        core = phrase.strip()
        out.append(phrase.replace(core, f"**{core}**", 1) if bold and core else phrase)
    return "".join(out).strip(" ·\n").replace("\n", "<br>")


def _parts(text: Text, style: str) -> Iterator[tuple[bool, str]]:
    ends = sorted({0, len(text.plain), *(e for s in text.spans for e in (s.start, s.end))})
    for start, end in pairwise(ends):
        styles = [style, *(s.style for s in text.spans if s.start <= start and s.end >= end)]
        plain, phrase = text.plain[start:end], " ".join(map(str, styles))
        bold = _BOLD.findall(phrase)[-1:] == [""]
        if any(s is _NAME for s in styles):
            yield bold, markdown_code(plain)
        else:
            yield bold, "\n".join(markdown(_WIDE_GAP.sub(_APART, line)) for line in plain.split("\n"))
