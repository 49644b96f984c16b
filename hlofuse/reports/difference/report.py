"""What stands at the head of every report of a what-if run: that it is one, and what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import markdown, markdown_code, printable, shorten
from hlofuse.format.markdown import table
from hlofuse.format.units import plural
from hlofuse.reports.difference import Difference, Edge
from hlofuse.reports.difference.phrases import difference_lines, edge_line
from hlofuse.reports.explain.json import place_json, totals_json
from hlofuse.reports.explain.tables import plain_table

if TYPE_CHECKING:
    from rich.console import Console

_FUSED, _PARTED = "fused here, apart in XLA's", "apart here, fused in XLA's"


def print_difference(d: Difference, console: Console, *, limit: int = 10) -> None:
    """The warning, the figures, and up to `limit` edges each way (0: all)."""
    first, *rest = difference_lines(d)
    console.print(Text(first, style="bold yellow"))
    for line in rest:
        console.print(Text(line))
    for heading, edges in ((_FUSED, d.fused), (_PARTED, d.parted)):
        if edges:
            _print_edges(heading, edges, console, limit)
    console.print()


def _print_edges(heading: str, edges: tuple[Edge, ...], console: Console, limit: int) -> None:
    shown = edges[: limit or None]
    rows = plain_table((heading, "left"), ("", "left"))
    for e in shown:
        rows.add_row(Text(edge_line(e)), Text(shorten(e.consumer.source or "", 48), style="dim"))
    console.print(Padding(rows, (0, 0, 0, 2)))
    if len(edges) > len(shown):
        more = plural(len(edges) - len(shown), "edge")
        console.print(Padding(Text(f"and {more} more (--limit)", style="dim"), (0, 0, 0, 2)))


def difference_markdown(d: Difference, *, limit: int = 10) -> str:
    """The same as the head of a markdown document."""
    first, *rest = difference_lines(d)
    out = [f"> **{markdown(first)}**"]
    out += [f"> {markdown(printable(line))}  " for line in rest]
    out.append("")
    rows = [
        (heading, markdown_code(edge_line(e)), markdown(e.consumer.source or ""))
        for heading, edges in ((_FUSED, d.fused), (_PARTED, d.parted))
        for e in edges[: limit or None]
    ]
    if rows:
        out.append(table(("", "edge", "source"), rows))
    return "\n".join(out) + "\n"


def difference_json(d: Difference) -> dict[str, Any]:
    """The difference as JSON values (docs/json-what-if.md)."""
    return {
        "changes": list(d.changes),
        "other_model": d.other_model,
        "xla": totals_json(d.xla),
        "ours": totals_json(d.ours),
        "fused": [edge_json(e) for e in d.fused],
        "parted": [edge_json(e) for e in d.parted],
    }


def edge_json(e: Edge) -> dict[str, Any]:
    """Both ends of an edge."""
    return {"producer": place_json(e.producer), "consumer": place_json(e.consumer)}
