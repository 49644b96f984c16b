"""The answer to a question about a module: the same figures as objects, rows, JSON, text, Markdown, HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from hlofuse.ir.short_repr import shortened

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.reports.common.head import Head
    from hlofuse.reports.difference.model import Difference

T = TypeVar("T")
D = TypeVar("D")

HTML_ROWS, HTML_COLUMNS = 10, 8


class Rows(Sequence[T]):
    """A list of a report: a sequence of objects, and flat rows with the fields of the JSON reports."""

    def __init__(
        self, name: str, entries: Callable[[], Sequence[T]], rows: Callable[[], Iterable[Mapping[str, Any]]]
    ) -> None:
        self._name = name
        self._read_entries = entries
        self._read_rows = rows

    @cached_property
    def _entries(self) -> Sequence[T]:
        return self._read_entries()

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each entry, all with the same keys: `pandas.DataFrame(x.rows())`.

        Names are those of the JSON report: `time_us` in microseconds, `bytes` in bytes. An object inside an
        entry becomes `outer_inner`, a list of plain values text, a list of objects its length.
        """
        found = [dict(_flat(row)) for row in self._read_rows()]
        keys = dict.fromkeys(key for row in found for key in row)
        return [{key: row.get(key) for key in keys} for row in found]

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<{self._name}: {len(self)} entries; .rows() gives a table>"

    def _repr_html_(self) -> str:
        from hlofuse.format.html import esc

        found = self.rows()
        keys = [k for k in (found[0] if found else ()) if any(r[k] not in (None, "", False) for r in found)]
        keys = keys[:HTML_COLUMNS]
        lines = ["".join(f"<th>{esc(k)}</th>" for k in keys)]
        lines += ["".join(f"<td>{esc(_cell(r[k]))}</td>" for k in keys) for r in found[:HTML_ROWS]]
        more = f"<p>… {len(found) - HTML_ROWS} more (.rows() has all)</p>" if len(found) > HTML_ROWS else ""
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"


class Answer(Rows[Any], Generic[D]):
    """The answer to one question: `data` holds it as objects, `rows()` as a table, `print` shows its text."""

    def __init__(
        self,
        name: str,
        data: Callable[[], D],
        *,
        json: Callable[[D], dict[str, Any]],
        draw: Callable[..., None],
        rows: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]] = lambda _: (),
        entries: Callable[[D], Sequence[Any]] = lambda _: (),
        markdown: Callable[[D], str] | None = None,
        heads: Sequence[Head | None] = (),
        note: str = "",
        differences: Sequence[Difference | None] = (),
        draws_heads: bool = False,
    ) -> None:
        """`draw(console, **how)` prints the text, after the heads unless it `draws_heads` itself."""
        super().__init__(name, lambda: entries(self.data), lambda: rows(self._json(self.data)))
        self._data = data
        self._json = json
        self._draw = draw
        self._markdown = markdown
        self.heads = [h for h in heads if h is not None]
        """What the answer rests on, for each module: stage, device, release, with their evidence."""
        self.note = note
        """What limits the whole answer; empty where XLA itself is repeated from its own module."""
        self.differences = [d for d in differences if d is not None]
        """How the replay differs from XLA's own, where something was changed."""
        self._draws_heads = draws_heads

    @cached_property
    def data(self) -> D:
        """The answer as typed objects."""
        return self._data()

    def to_json(self) -> dict[str, Any]:
        """The document of `--format json`, with the same schema and figures."""
        from hlofuse.reports.common.head import with_heads

        document = with_heads(self._json(self.data), self.heads)
        if self.note:
            document = {"approximate": self.note, **document}
        if self.differences:
            from hlofuse.reports.difference.json import difference_json

            found = [difference_json(d) for d in self.differences]
            document["difference"] = found[0] if len(found) == 1 else found
        return document

    def draw(self, console: Console, **how: Any) -> None:
        """Print the text report; `how` are options of the command, such as `limit`."""
        self._draw_heads(console, how)
        self._draw(console, **how)

    def to_text(self, width: int = 100, **how: Any) -> str:
        """The text report, `width` columns wide; `how` are options of the command, such as `limit`."""
        from hlofuse.format.unbroken import printed

        return printed(lambda console: self.draw(console, **how), width)

    def to_markdown(self, **how: Any) -> str:
        """The report as GitHub's Markdown."""
        from hlofuse.format.page import as_markdown

        if self._markdown is None:
            return as_markdown(lambda console: self.draw(console, **how))
        head = as_markdown(lambda console: self._draw_heads(console, how))
        return "\n".join(filter(None, (head, self._markdown(self.data))))

    def _draw_heads(self, console: Console, how: Mapping[str, Any]) -> None:
        from hlofuse.reports.common.head import head_lines

        if self._draws_heads:
            return
        for line in head_lines(self.heads):
            console.print(line, style="dim")
        for line in dict.fromkeys(n for h in self.heads for n in h.identity.notes):
            console.print(f"Note: {line}.", style="yellow")
        if self.note:
            console.print(f"{self.note}\n", style="bold yellow")
        if self.differences:
            from hlofuse.reports.difference.text import print_difference

            for d in self.differences:
                print_difference(d, console, limit=how.get("limit", 10))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<{self._name}: {shortened(repr(self.data))}; print() shows the report>"

    def _repr_html_(self) -> str:
        from hlofuse.format.html import esc

        lines = self.to_text().rstrip().split("\n")
        return f"<pre>{'<br>'.join(map(esc, lines))}</pre>"


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}_")
        elif isinstance(value, list | tuple):
            is_plain = not any(isinstance(v, Mapping | list | tuple) for v in value)
            yield prefix + key, ", ".join(map(str, value)) if is_plain else len(value)
        else:
            yield prefix + key, value


def _cell(value: object) -> str:
    shown = f"{value:,.6g}" if isinstance(value, float) else f"{value}" if value is not None else ""
    return shown if len(shown) <= 60 else f"{shown[:59]}…"
