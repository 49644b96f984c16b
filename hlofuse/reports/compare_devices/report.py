"""`explain --compare-device`: for the terminal, and as JSON (schema in docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.reports.compare_devices import Comparison, DeviceSide, FlippedEdge
from hlofuse.reports.difference.phrases import warning_line
from hlofuse.reports.explain.cost_json import detail_json, us_json
from hlofuse.reports.explain.cost_phrases import number_text, worth_text
from hlofuse.reports.explain.json import place_json
from hlofuse.reports.explain.tables import plain_table

if TYPE_CHECKING:
    from rich.console import Console

_EDGES = 4  # named of those between the same two kernels
SCHEMA = "hlofuse.compare-devices/1"


def print_comparison(c: Comparison, console: Console, *, limit: int = 10) -> None:
    """Both results in figures, then what is decided differently and why."""
    names = " and ".join(printable(s.device) for s in c.sides)
    xla = "" if c.what_if else f", as XLA in {c.release}"
    console.print(Text(f"{printable(c.module)} on {names}{xla}", style="bold"))
    if c.what_if:
        console.print(Text(warning_line(c.what_if), style="bold yellow"))
    table = plain_table(("", "left"), ("kernels", "left"), ("moved", "left"), ("est. time", "left"))
    for s in c.sides:
        table.add_row(Text(printable(s.device)), *map(Text, _figures(s)))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
    if not c.flipped:
        console.print(Text("Every edge is decided the same on both."))
        return
    groups = _alike(c.flipped)
    console.print(Text(f"{plural(len(c.flipped), 'edge')} decided differently", style="bold cyan"))
    for edges in groups[: limit or None]:
        _print_edges(edges, console)
    left = sum(map(len, groups[limit:])) if limit else 0
    if left:
        console.print(Text(f"  and {plural(left, 'edge')} more (--limit)", style="dim"))


def _alike(flipped: Sequence[FlippedEdge]) -> list[list[FlippedEdge]]:
    """Edges that come apart because of the same two kernels, together."""
    found: dict[object, list[FlippedEdge]] = {}
    for e in flipped:
        key = (e.apart_on, *(e.kernels or (e.producer.name, e.consumer.name)))
        found.setdefault(key, []).append(e)
    return list(found.values())


def _figures(s: DeviceSide) -> tuple[str, str, str]:
    time = f"{us_text(s.before.us)} → {us_text(s.after.us)}" if s.before.us and s.after.us else ""
    moved = f"{bytes_text(s.before.cost.bytes_accessed)} → {bytes_text(s.after.cost.bytes_accessed)}"
    return f"{s.before.kernels:,} → {s.after.kernels:,}", moved, time


def _print_edges(edges: Sequence[FlippedEdge], console: Console) -> None:
    first = edges[0]
    for e in edges[:_EDGES]:
        line = Text(f"{printable(e.producer.name)} → {printable(e.consumer.name)}", style="bold")
        if e is first:
            where = f"  fused on {printable(e.fused_on)}, apart on {printable(e.apart_on)}"
            line.append(where, style="not bold")
        if e.producer.source:
            line.append(f"  {printable(e.producer.source)}", style="not bold dim")
        console.print(Padding(line, (0, 0, 0, 2)))
    if len(edges) > _EDGES:
        more = Text(f"and {len(edges) - _EDGES:,} more between the same two", style="dim")
        console.print(Padding(more, (0, 0, 0, 2)))
    for text in edge_words(first):
        console.print(Padding(Text(text), (0, 0, 0, 6)))


def edge_words(e: FlippedEdge) -> list[str]:
    """Why the two stay apart where they do, and which number of the device makes the difference."""
    out = []
    between = ""
    if e.kernels is not None and e.kernels != (e.producer.name, e.consumer.name):
        between = f" {printable(e.kernels[0])} → {printable(e.kernels[1])}:"
    if e.answer is not None:
        settled = e.answer.settled_by
        if settled is not None and settled.event == "ineligible":
            out.append(
                f"on {printable(e.apart_on)}:{between} {settled.rule.code},"
                f" {printable(settled.reason or settled.rule.title)}"
            )
        elif e.answer.cost is not None:
            out.append(f"on {printable(e.apart_on)}:{between} {worth_text(e.answer.cost)}")
    for name, mine, theirs in e.terms[:3]:
        out.append(
            f"{name} alone would turn that: {number_text(name, mine)} on {printable(e.apart_on)},"
            f" {number_text(name, theirs)} on {printable(e.fused_on)}"
        )
    if not out:
        out.append("what was decided before about their neighbours leads there")
    elif not e.terms:
        out.append("no number of the device turns that alone: several do together")
    return out


def comparison_json(c: Comparison) -> dict[str, Any]:
    """The comparison as JSON values."""
    return {
        "schema": SCHEMA,
        "module": c.module,
        "release": c.release,
        "what_if": list(c.what_if),
        "devices": [
            {
                "device": s.device,
                "kernels_before": s.before.kernels,
                "kernels_after": s.after.kernels,
                "us_before": us_json(s.before.us),
                "us_after": us_json(s.after.us),
            }
            for s in c.sides
        ],
        "flipped": [
            {
                "producer": place_json(e.producer),
                "consumer": place_json(e.consumer),
                "fused_on": e.fused_on,
                "apart_on": e.apart_on,
                "kernels": list(e.kernels) if e.kernels is not None else None,
                "rule": e.answer.settled_by.rule.code
                if e.answer is not None and e.answer.settled_by is not None
                else None,
                "cost": detail_json(e.answer.cost) if e.answer is not None else None,
                "terms": [{"number": n, "here": a, "there": b} for n, a, b in e.terms],
            }
            for e in c.flipped
        ],
    }
