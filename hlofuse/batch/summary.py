"""The summary of a run: sections of `queries.toml`, each a query."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from hlofuse.format import bytes_text, printable, us_text
from hlofuse.format.terminal import Page, print_more, print_rows
from hlofuse.ir import HlofuseError, Json
from hlofuse.library.answer import Answer
from .sources import SCHEMA, document, package
from .store import opened
from .work import page_name

if TYPE_CHECKING:
    import duckdb

Sections: TypeAlias = dict[str, list[Json]]  # Results of queries by their titles
_JSON = (str, int, float, type(None))  # types that JSON has; other values become text
_QUERY = "query"  # the title of a user's own query
_FLOORS = "floors"  # a column of how many times in `time_us` are lower bounds; it is not shown
_NAMES = tuple("path module source name producer consumer run".split())  # columns whose words are not broken


def summary(folder: Path) -> Answer[Sections]:
    """The summary of a finished run. HlofuseError for a folder that is none."""
    link = opened(folder)
    return _answer(str(folder), {s["title"]: _rows(link, s["sql"]) for s in document("queries")["sections"]})


def query(folder: Path, sql: str) -> Answer[Sections]:
    """The result of a query over the tables of a run; HlofuseError with DuckDB's words for a wrong one."""
    link = opened(folder)
    try:
        return _answer(str(folder), {_QUERY: _rows(link, sql)})
    except package("duckdb").Error as error:
        raise HlofuseError(f"query: {printable(' '.join(str(error).split()))}") from None


def trend(folders: Sequence[Path]) -> Answer[Sections]:
    """The totals of several runs, a row each, in their order."""
    sql = document("queries")["trend"]
    rows = [{"run": str(folder), **row} for folder in folders for row in _rows(opened(folder), sql)]
    return _answer("trend", {"Trend": rows})


def index(folder: Path) -> str:
    """The page of a finished run: its totals, and its modules, slowest first, with links to their pages."""
    link, queries = opened(folder), document("queries")
    totals = _rows(link, queries["sections"][0]["sql"])[0]
    floors = totals.pop(_FLOORS)
    facts = (
        f"<div><dt>{_heading(c)}</dt><dd>{_text(c, v, floors)}</dd></div>" for c, v in totals.items() if v
    )
    rows = _rows(link, queries["index"])
    heads = [c for c in rows[0] if c not in ("key", _FLOORS) and any(r[c] is not None for r in rows)]
    kinds = {c: ' class="number"' if _kind(c, rows) == "right" else "" for c in heads}
    lines = []
    for row in rows:
        cells = {c: escape(_text(c, row[c], row[_FLOORS])) for c in heads}
        page = f"pages/{page_name(row['key'], row['module'])}"
        if (folder / page).exists():
            cells["path"] = f'<a href="{quote(page)}">{cells["path"]}</a>'
        lines.append("".join(f"<td{kinds[c]}>{text}</td>" for c, text in cells.items()))
    template = Template(Path(__file__).with_name("index.html").read_text(encoding="utf-8"))
    return template.substitute(
        totals="".join(facts),
        heads="".join(f"<th{kinds[c]}>{_heading(c)}</th>" for c in heads),
        rows="\n".join(f"<tr>{line}</tr>" for line in lines),
    )


def _heading(column: str) -> str:
    return column.removesuffix("_us").replace("_", " ").replace("xla", "XLA")


def _rows(link: "duckdb.DuckDBPyConnection", sql: str) -> list[Json]:
    found = link.execute(sql)
    columns = [c[0] for c in found.description or ()]
    rows = [[v if isinstance(v, _JSON) else str(v) for v in row] for row in found.fetchall()]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _answer(name: str, sections: Sections) -> Answer[Sections]:
    def draw(console: Page) -> None:
        for title, rows in sections.items():
            if rows:
                _print(title, rows, console, console.limit or len(rows))

    return Answer(
        name,
        lambda: sections,
        json=lambda data: {"schema": SCHEMA, "sections": data},
        body=draw,
        rows_of=lambda document: [row for rows in document["sections"].values() for row in rows],
        entries_of=lambda data: [row for rows in data.values() for row in rows],
        prints_heads=True,
    )


def _print(title: str, rows: Sequence[Json], console: Page, limit: int) -> None:
    """The first rows, with units, without columns that are empty; a single row as a list."""
    cells = {c: [_text(c, r[c], r.get(_FLOORS)) for r in rows[:limit]] for c in rows[0] if c != _FLOORS}
    shown = {_heading(c) if c.isidentifier() else c: c for c, texts in cells.items() if any(texts)}
    if title != _QUERY:
        console.print(title, style="bold cyan")
    heads = [(heading, _kind(c, rows)) for heading, c in shown.items()]
    if len(rows) == 1:
        pairs = [(heading, cells[c][0]) for heading, c in shown.items()]
        print_rows(console, [("", "name"), ("", "left")], pairs, indent=2)
    else:
        table = list(zip(*(cells[c] for c in shown.values()), strict=True))
        first = next((n for n, (_, kind) in enumerate(heads) if kind == "right"), 0)
        drop = sorted(range(1, len(heads)), key=lambda n: (n == first, -n))  # rows are sorted by `first`
        print_rows(console, heads, table, drop=drop, indent=2)
        print_more(console, len(rows) - limit)
    console.print("")


def _kind(column: str, rows: Sequence[Json]) -> str:
    if column in _NAMES:
        return "name"
    return "left" if any(isinstance(row[column], str) for row in rows) else "right"


def _text(column: str, value: Any, floors: int | None) -> str:
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else printable(value)
    if column.endswith("_us"):
        return us_text(value, bool(floors) and column == "time_us")
    return bytes_text(value) if "bytes" in column else f"{value:,}"
