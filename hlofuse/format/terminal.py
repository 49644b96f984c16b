"""Borderless tables and commands to copy, for the terminal."""

import io
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Sized
from itertools import groupby, pairwise
from operator import itemgetter
from textwrap import indent, wrap
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from .escape import command_line, markdown, markdown_code, printable, shorten, table
from .units import more

GAP = 2
T = TypeVar("T")


def plain_table(*columns: tuple[str, str]) -> Table:
    """A table of (heading, kind) columns: figures (`right`) and names (`name`) stay on one line. Empty
    headings are not printed. A figure without room ends in `…`, since cut digits would change it."""
    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    table.show_header = any(heading for heading, _ in columns)
    for heading, kind in columns:
        table.add_column(
            heading,
            justify="right" if kind == "right" else "left",
            overflow="fold" if kind == "left" else "ellipsis",
            no_wrap=kind != "left",
            vertical="top",
        )
    return table


def plain_grid(*, expand: bool = False) -> Table:
    """A table without headings, whose columns the caller adds."""
    return Table.grid(padding=(0, GAP, 0, 0), expand=expand)


def fit_columns(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str | Text]],
    width: int,
    drop: Sequence[int],
) -> tuple[list[int], dict[int, int], bool]:
    """The columns that fit, the width of each, and False if even these are too wide. Columns in `drop` are
    dropped one by one while there is no room. Names and figures keep all characters, words their longest
    word; a name wider than the screen is shortened."""
    lines = [
        [line for cell in (heading, *column) for line in str(cell).split("\n")]
        for (heading, _), *column in zip(columns, *rows, strict=True)
    ]
    natural = [max(map(len, column)) for column in lines]
    least = [
        min(n, width if kind == "name" else _least_phrase(column)) if kind != "right" else n
        for n, (_, kind), column in zip(natural, columns, lines, strict=True)
    ]
    shown = list(range(len(columns)))
    for dropped in [*drop, None]:
        spare = width - sum(least[n] for n in shown) - GAP * (len(shown) - 1)
        if spare >= 0 or dropped is None:
            break
        shown.remove(dropped)
    fits = spare >= 0
    widths = {n: least[n] for n in shown}
    phrases = [n for n in shown if columns[n][1] == "left"]
    wanted = [*((n, width // 2) for n in phrases), *((n, natural[n]) for n in phrases)]
    for n, most in wanted:  # each gets half of the width before one gets more
        more_room = max(min(min(natural[n], most) - widths[n], spare), 0)
        widths[n] += more_room
        spare -= more_room
    return shown, widths, fits


def _least_phrase(lines: Sequence[str]) -> int:
    longest = max(len(word) for line in lines for word in line.split(" "))
    return max(min(longest, 40), min(max(map(len, lines)), 24))


def print_rows(
    console: Console,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str | Text]],
    *,
    drop: Sequence[int] = (),
    indent: int = 0,
) -> None:
    """Print a plain table without cutting figures, names or words. Without room, the columns of `drop` go
    first, in that order. Then words move below names and figures, at last figures below names."""
    width = console.width - indent
    shown, widths, fits = fit_columns(columns, rows, width, drop)
    side = list(shown)
    if not fits:
        texts = [n for n, (_, kind) in enumerate(columns) if kind == "left"]
        bare = [["" if n in texts else cell for n, cell in enumerate(row)] for row in rows]
        heads = [("" if kind == "left" else heading, kind) for heading, kind in columns]
        shown, widths, names_fit = fit_columns(heads, bare, width + GAP * len(texts), drop)
        side = [n for n in shown if columns[n][1] == "right" or (names_fit and n not in texts)]
    above = [n for n in shown if n not in side and columns[n][1] == "name"]
    below = [n for n in shown if n not in side and columns[n][1] == "left"]
    for heading in filter(None, (columns[n][0] for n in above)):
        indented(console, heading, indent, "dim")
    groups = [rows]
    if not fits:
        groups = [[row] for row in rows]
        if any(columns[n][0] for n in side):
            groups.insert(0, [])
    for number, group in enumerate(groups):
        for n in above if group else ():
            if group[0][n]:
                indented(console, _shorten_cell(group[0][n], width), indent)
        table = plain_table(*(("" if number else columns[n][0], columns[n][1]) for n in side))
        for column, n in zip(table.columns, side, strict=True):
            column.width = widths[n]
        for row in group:
            table.add_row(
                *(_shorten_cell(row[n], widths[n]) if columns[n][1] == "name" else row[n] for n in side)
            )
        if side:
            indented(console, table, indent + (GAP if above else 0))
        for n in below if group else ():
            if group[0][n]:
                indented(console, group[0][n], indent + GAP)


class Rows:
    """Rows of a table for `print_rows`; of a column without a heading the kind is enough."""

    def __init__(self, *columns: tuple[str, str] | str, drop: Sequence[int] = ()) -> None:
        self._columns = [("", c) if isinstance(c, str) else c for c in columns]
        self._drop = drop
        self._rows: list[Sequence[str | Text]] = []

    def add_row(self, *cells: str | Text) -> None:
        self._rows.append(cells)

    def print(self, console: Console, indent: int = 2) -> None:
        if self._rows:
            print_rows(console, self._columns, self._rows, drop=self._drop, indent=indent)


def _shorten_cell(cell: str | Text, width: int) -> str | Text:
    text = cell if isinstance(cell, Text) else Text(cell)
    if all(len(line) <= width for line in text.plain.split("\n")):
        return cell
    lines = text.split("\n")
    return Text("\n").join(
        [Text(shorten(x.plain, width), style=x.spans[-1].style if x.spans else x.style) for x in lines]
    )


def indented(console: Console, shown: str | Text | Table, by: int = 2, style: str = "") -> None:
    """Print a line or a table `by` columns from the edge."""
    if isinstance(shown, str):
        shown = Text(shown, style=style)
    console.print(Padding(shown, (0, 0, 0, by)))


def print_lines(console: Console, lines: Iterable[str], by: int = 2, style: str = "") -> None:
    """Print lines, each `by` columns from the edge; what does not fit goes on below, further in."""
    for line in lines:
        indented(console, "\n".join(wrapped(line, console.width - by)), by, style)


def print_command(console: Console, indent: int, *text: str | None) -> None:
    """Print the command, unbroken to be copied; nothing where a word is empty: the input is no file."""
    if "" not in text:
        console.print(" " * indent + command_line(*text), style="green", soft_wrap=True)


def print_more(console: Console, left: int, *, indent: int = 2) -> None:
    """`… 25 more (--limit 0 shows all)` below a truncated list; nothing if none is left."""
    if left > 0:
        indented(console, more(left), indent, "dim")


class Page(Console):
    """A console that shows the first rows of each list of a report."""

    limit = 0  # How many rows; 0: all

    def first(self, rows: Sequence[T]) -> Sequence[T]:
        """The rows that are shown."""
        return rows[: self.limit or None]

    def print_rest(self, rows: Sized, indent: int = 2) -> None:
        """Print how many rows are not shown."""
        print_more(self, len(rows) - (self.limit or len(rows)), indent=indent)


NO_BREAK = "\ue000"  # A space without a line break; no text of a dump has this character
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_TOGETHER = re.compile(
    rf"(?:\best\. )?(?:[≥>] )?[−+]?<?{_NUMBER} (?:[kMGTPE]?B|[kMGTPE]|µs|ms|s|%)(?!\w)"  # 12.5 MB
    r"(?: FLOP| transcendentals| moved)?"
    rf"|[\w.-]+ ×{_NUMBER}"  # reduce ×2
    rf"|{_NUMBER} × {_NUMBER}"  # 2 × 128
    rf"|(?<![\w.-])[a-z][\w-]* {_NUMBER}(?=,|$)"  # while 1, of a list of counts
    rf"|(?<![\w:.–-])[−+]?{_NUMBER} (?!and\b|of\b|or\b)[a-z][\w-]*"  # 3 grown; but not model.py:12 loss
)


def _joined(text: str, width: int) -> str:
    """The text, with `NO_BREAK` between words that stay on one line."""
    return _TOGETHER.sub(lambda m: m[0].replace(" ", NO_BREAK) if len(m[0]) <= width else m[0], text)


def wrapped(line: str, width: int) -> list[str]:
    """The line; what does not fit goes on below, two columns further in."""
    below = " " * (len(line) - len(line.lstrip()) + 2)
    parts = wrap(_joined(line, width), width, subsequent_indent=below, break_on_hyphens=False)
    return [part.replace(NO_BREAK, " ") for part in parts]


class UnbrokenConsole(Page):
    """A console whose lines have `NO_BREAK` for some of the spaces."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of `renderable`, with numbers and units on one line if they fit there."""
        if isinstance(renderable, str):
            renderable = self.render_str(renderable)
        if isinstance(renderable, Text):
            width, text = (options or self.options).max_width, renderable.plain
            plain = _joined(text, width)
            if plain != renderable.plain:
                renderable = renderable.copy()
                renderable.plain = plain
        return super().render(renderable, options)


def printed(draw: Callable[[Page], None], width: int, *, colored: bool = False) -> str:
    """The output of `draw` on a console of that many columns."""
    file = io.StringIO()
    console = UnbrokenConsole(
        file=file,
        force_terminal=colored,
        force_jupyter=False,
        color_system="standard" if colored else None,
        no_color=not colored,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        soft_wrap=False,
        _environ={},
    )
    draw(console)
    # Padding of table cells is of no use at the end of a line.
    return "\n".join(line.rstrip() for line in file.getvalue().replace(NO_BREAK, " ").split("\n"))


WIDTH = 10_000  # The width of a page, enough for any line
_NAME = Style(meta={"name": True})
_BOLD = re.compile(r"(not )?bold")
_WIDE_GAP = re.compile(r"(?<=\S) {2,}(?=\S)|(?<=\S) {2,}$|^ {2,}(?=\S)")
_APART = " · "  # the separator for a wide gap between two parts of a line
_BULLET = 3  # the indentation of list items below a line


def name_text(*names: str, style: str = "") -> Text:
    """Names from a dump, ` → ` between them: plain on a terminal, code in Markdown."""
    return Text(" → ", style=style).join([Text(printable(n), style=_NAME) for n in names])


def print_sections(console: Console, sections: Iterable[tuple[str, str]], code: Container[str] = ()) -> None:
    """Print texts, each below its heading; those of `code` unbroken, to be copied."""
    for heading, text in sections:
        console.print()
        console.print(heading, style="cyan")
        if heading in code:
            console.print(indent(text, "  "), soft_wrap=True)
        else:
            indented(console, text)


def final_name_text(final: str | None, name: str, count: int = 1) -> Text:
    """The final name, of equal kernels with ` ×24`; below it the name at the end of fusion, if another."""
    text = name_text(final or name)
    if count > 1:
        text.append(f" ×{count}")
    return text if (final or name) == name else text.append(f"\n{printable(name)}", style="dim")


def as_markdown(draw: Callable[[Page], object]) -> str:
    page = MarkdownPage()
    draw(page)
    return page.markdown


class MarkdownPage(Page):
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
        for shown in objects:
            indent = 0
            if isinstance(shown, Padding):
                indent, shown = shown.left, shown.renderable
            if isinstance(shown, Table):
                heads = [_cell(c.header) if shown.show_header else "" for c in shown.columns]
                cells = [[_cell(c) for c in column.cells] for column in shown.columns]
                used = [k for k, head in enumerate(heads) if head or any(cells[k])]
                rows = [[cells[k][n] for k in used] for n in range(shown.row_count)]
                if len(rows) == 1 and not any(heads):
                    self._add(_APART.join(filter(None, rows[0])), "", indent)
                elif rows:
                    right = [n for n, k in enumerate(used) if shown.columns[k].justify == "right"]
                    self._blocks.append(table([heads[k] for k in used], rows, right).rstrip("\n"))
            else:
                text = shown if isinstance(shown, Text) else Text(shown)
                indent += len(text.plain) - len(text.plain.lstrip(" "))
                kind = str(style or text.style).split()
                is_command = "green" in kind and text.plain.lstrip().startswith("hlofuse ")
                if is_command or ("cyan" in kind and indent):
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


def _cell(shown: object) -> str:
    return _inline(shown if isinstance(shown, Text) else Text(str(shown)), "")


def _inline(text: Text, style: str) -> str:
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
