"""The answer to a question about a module: the same figures as objects, rows, JSON, text, Markdown, HTML."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hlofuse.format import plural, printable
from hlofuse.ir import Json
from hlofuse.reports.common.head import Head, print_heads, with_heads

if TYPE_CHECKING:
    from hlofuse.format.terminal import Page
    from hlofuse.inputs.part import PartError
    from hlofuse.reports.comparison.model import Comparison

D = TypeVar("D")


@dataclass(eq=False, repr=False)
class Answer(Sequence[Any], Generic[D]):
    """The answer to one question. `data` has it as objects, `rows()` as a table, `print` shows its text. It
    is a sequence of its main entries: kernels, decisions, changes, findings."""

    name: str
    compute: Callable[[], D]
    json: Callable[[D], Json]
    body: Callable[..., None]
    """Prints the text on a console; its further arguments are options of the command."""
    rows_of: str | Callable[[Json], Iterable[Mapping[str, Any]]] = ""
    """The key of the entries in the JSON report, or how they are found there."""
    entries_of: Callable[[D], Sequence[Any]] | None = None
    """None where `data` is the sequence of entries, or has them under the key in the JSON report."""
    heads: Sequence[Head | None] = ()
    """For each module its stage, device and release, with their evidence."""
    note: str = ""
    """The limitation of the whole answer; empty where the replay begins with a module that XLA wrote."""
    differences: "Sequence[Comparison | None]" = ()
    """Differences of a changed replay from XLA's own."""
    markdown: Callable[[D], str] | None = None
    prints_heads: bool = False
    """`body` prints heads, note and differences itself."""
    limit: int = 10
    """Rows of each list in the text; 0 shows all."""

    @cached_property
    def data(self) -> D:
        """The answer as typed objects."""
        return self.compute()

    @cached_property
    def _entries(self) -> Sequence[Any]:
        if self.entries_of is not None:
            return self.entries_of(self.data)
        data: Any = self.data
        return data if isinstance(data, Sequence) else getattr(data, str(self.rows_of), ())

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def rows(self) -> list[Json]:
        """A flat dict for each entry, all with the same keys: `pandas.DataFrame(x.rows())`.

        Names and units are those of the JSON report: `time_us` in microseconds, `bytes` in bytes. A value
        inside an object is `outer_inner`, a list of plain values is text, a list of objects its length, an
        empty list None."""
        document, at = self.json(self.data), self.rows_of
        rows = at(document) if callable(at) else document.get(at, ())
        found = [dict(flat(row)) for row in rows]
        keys = dict.fromkeys(key for row in found for key in row)
        return [{key: row.get(key) for key in keys} for row in found]

    def to_json(self) -> Json:
        """The document of `--format json`, with the same schema and figures."""
        document = with_heads(self.json(self.data), [h for h in self.heads if h is not None])
        if self.note:
            document = {"approximate": self.note, **document}
        if found := [d for d in self.differences if d is not None]:
            from hlofuse.reports.comparison.model import difference_json

            listed = [difference_json(d) for d in found]
            document["difference"] = listed[0] if len(listed) == 1 else listed
        return document

    def draw(self, console: "Page", limit: int | None = None, **how: Any) -> None:
        """Print the text report; `how` are further options of the command."""
        console.limit = 10 if limit is None else limit
        self._draw_heads(console)
        console.limit = self.limit if limit is None else limit
        self.body(console, **how)

    def to_text(self, width: int = 100, **how: Any) -> str:
        """The text report, `width` columns wide; `how` are options of the command, such as `limit`."""
        from hlofuse.format.terminal import printed

        return printed(lambda console: self.draw(console, **how), width)

    def to_markdown(self, **how: Any) -> str:
        """The report as GitHub's Markdown."""
        from hlofuse.format.terminal import as_markdown

        if self.markdown is not None:
            return self.markdown(self.data)
        return as_markdown(lambda console: self.draw(console, **how))

    def _draw_heads(self, console: "Page") -> None:
        if self.prints_heads:
            return
        heads = [h for h in self.heads if h is not None]
        print_heads(heads, console)
        for line in dict.fromkeys(n for h in heads for n in h.identity.notes):
            console.print(f"Note: {line}.", style="yellow")
        if self.note:
            console.print(f"{self.note}\n", style="bold yellow")
        if found := [d for d in self.differences if d is not None]:
            from hlofuse.reports.comparison.text import print_difference

            for d in found:
                print_difference(d, console)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        size = plural(len(self), "entry", "entries")
        return f"<{self.name}: {size}; print() shows the report, .rows() gives a table>"

    def _repr_html_(self) -> str:
        from html import escape
        from inspect import signature

        style = "white-space:pre;overflow-x:auto;font-family:ui-monospace,Menlo,Consolas,monospace"
        found = []
        details = {"details": True} if "details" in signature(self.body).parameters else {}
        for text in dict.fromkeys((self.to_text(92), self.to_text(92, limit=0, **details))):
            lines = "<br>".join(escape(printable(x)) for x in text.rstrip().splitlines())
            found.append(f'<pre style="{style}">{lines}</pre>')
        more = f"<details><summary>All of it</summary>{found[1]}</details>" if found[1:] else ""
        return found[0] + more


def flat(row: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """The entries of a JSON object as those of a row: see `Answer.rows`."""
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}_")
        elif isinstance(value, list | tuple):
            is_plain = not any(isinstance(v, Mapping | list | tuple) for v in value)
            yield prefix + key, (", ".join(map(str, value)) if is_plain else len(value)) or None
        else:
            yield prefix + key, value


def answer_about_part(command: str, error: "PartError") -> Answer[Any]:
    """The answer of a command about a part of a module: what there is of it, and no figures."""
    from hlofuse.reports.common.part import part_json, print_part

    part = error.part
    return Answer(
        "part of a module",
        lambda: part,
        json=lambda data: part_json(data, f"hlofuse.{command}/3"),
        body=lambda console, **_how: print_part(part, console),
        rows_of="computations",
        entries_of=lambda data: data.fragments,
        prints_heads=True,
    )
