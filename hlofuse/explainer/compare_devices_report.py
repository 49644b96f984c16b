"""`explain --compare-device`: for the terminal, and as JSON (schema in docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from hlofuse.explainer.compare_devices import Comparison, DeviceSide, FlippedEdge
from hlofuse.explainer.cost_json import detail_json, us_json
from hlofuse.explainer.cost_words import us_text, worth_text
from hlofuse.explainer.explain_json import place_json
from hlofuse.explainer.tables import plain_table
from hlofuse.present.escape import printable
from hlofuse.present.not_xla import not_xla
from hlofuse.present.units import bytes_text, plural

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "hlofuse.compare-devices/1"


def print_comparison(c: Comparison, console: Console, *, limit: int = 10) -> None:
    """Both results in figures, then what is decided differently and why."""
    names = " and ".join(printable(s.device) for s in c.sides)
    xla = f"XLA in {c.release} with rules added" if c.packages else f"as XLA in {c.release}"
    console.print(Text(f"{printable(c.module)} on {names}, {xla}", style="bold"))
    if c.packages:
        console.print(Text(not_xla(c.packages), style="yellow"))
    table = plain_table(("", "left"), ("kernels", "left"), ("moved", "left"), ("est. time", "left"))
    for s in c.sides:
        table.add_row(Text(printable(s.device)), *map(Text, _figures(s)))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
    if not c.flipped:
        console.print(Text("Every edge is decided the same on both."))
        return
    console.print(Text(f"{plural(len(c.flipped), 'edge')} decided differently", style="bold cyan"))
    for edge in c.flipped[: limit or None]:
        _print_edge(edge, console)
    if limit and len(c.flipped) > limit:
        console.print(Text(f"  and {len(c.flipped) - limit} more (--limit)", style="dim"))


def _figures(s: DeviceSide) -> tuple[str, str, str]:
    time = f"{us_text(s.before.us)} → {us_text(s.after.us)}" if s.before.us and s.after.us else ""
    moved = f"{bytes_text(s.before.cost.bytes_accessed)} → {bytes_text(s.after.cost.bytes_accessed)}"
    return f"{s.before.kernels:,} → {s.after.kernels:,}", moved, time


def _print_edge(e: FlippedEdge, console: Console) -> None:
    line = Text(f"{printable(e.producer.name)} → {printable(e.consumer.name)}", style="bold")
    line.append(f"  fused on {printable(e.fused_on)}, apart on {printable(e.apart_on)}", style="not bold")
    if e.producer.source:
        line.append(f"  {printable(e.producer.source)}", style="not bold dim")
    console.print(Padding(line, (0, 0, 0, 2)))
    for text in edge_words(e):
        console.print(Padding(Text(text), (0, 0, 0, 6)))


def edge_words(e: FlippedEdge) -> list[str]:
    """Why the two stay apart where they do, and which number of the device makes the difference."""
    out = []
    if e.answer is not None:
        settled = e.answer.settled_by
        if settled is not None and settled.event == "ineligible":
            out.append(f"{settled.rule.code} on {printable(e.apart_on)}: {printable(settled.reason or '')}")
        elif e.answer.cost is not None:
            out.append(f"{printable(e.apart_on)}: {worth_text(e.answer.cost)}")
    for name, mine, theirs in e.terms[:3]:
        out.append(f"{name} is enough to turn it: {_number(mine)} here, {_number(theirs)} there")
    return out


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else printable(str(value))


def comparison_json(c: Comparison) -> dict[str, Any]:
    """The comparison as JSON values."""
    return {
        "schema": SCHEMA,
        "module": c.module,
        "release": c.release,
        "packages": list(c.packages),
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
                "rule": e.answer.settled_by.rule.code
                if e.answer is not None and e.answer.settled_by is not None
                else None,
                "cost": detail_json(e.answer.cost) if e.answer is not None else None,
                "terms": [{"number": n, "here": a, "there": b} for n, a, b in e.terms],
            }
            for e in c.flipped
        ],
    }
