"""`trace-op` for the terminal, as markdown and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import markdown, markdown_code, printable, shorten
from hlofuse.format.markdown import table
from hlofuse.format.units import plural
from hlofuse.reports.explain.tables import plain_table
from hlofuse.reports.timeline.phrases import pass_name
from hlofuse.reports.trace_op import phrases as words
from hlofuse.reports.trace_op.model import Journey, Stop, Trail

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "hlofuse.trace-op/1"


def print_journey(journey: Journey, console: Console, *, limit: int = 5) -> None:
    """Each operation: its stops, then the kernel it ends in."""
    console.print(Text(printable(words.headline(journey)), style="bold"))
    if journey.unreadable:
        console.print(Text(_unreadable(journey), style="yellow"))
    for trail in journey.trails[: limit or None]:
        console.print()
        console.print(Text(printable(words.subject(trail)), style="bold"))
        rows = plain_table(("dump", "right"), ("pass", "left"), ("", "left"))
        rows.show_header = False
        for stop, text in _told(trail):
            name = Text(shorten(pass_name(stop.frame), 36))
            rows.add_row(Text(_number(stop), style="dim"), name, Text(printable(text)))
        console.print(Padding(rows, (0, 0, 0, 2)))
        for end in _ends(trail):
            console.print(Padding(Text(printable(end), style="green" if trail.ends else "dim"), (0, 0, 0, 2)))
    hidden = len(journey.trails) - limit
    if limit and hidden > 0:
        console.print()
        console.print(Text(f"and {plural(hidden, 'more operation')} (--limit)", style="dim"))


def journey_markdown(journey: Journey, *, limit: int = 5) -> str:
    """The same as a markdown document."""
    out = [f"## {markdown(words.headline(journey))}\n"]
    if journey.unreadable:
        out.append(f"> {markdown(_unreadable(journey))}\n")
    for trail in journey.trails[: limit or None]:
        out.append(f"### {markdown(words.subject(trail))}\n")
        rows = [
            [_number(stop), markdown_code(pass_name(stop.frame)), markdown(text)]
            for stop, text in _told(trail)
        ]
        out.append(table(["dump", "pass", ""], rows, right=(0,)))
        out += [f"{markdown(end)}\n" for end in _ends(trail)]
    hidden = len(journey.trails) - limit
    if limit and hidden > 0:
        out.append(f"and {plural(hidden, 'more operation')}\n")
    return "\n".join(out)


def journey_json(journey: Journey) -> dict[str, Any]:
    """Everything; `docs/timeline.md` says what the fields mean."""
    return {
        "schema": SCHEMA,
        "module": journey.label,
        "asked": journey.asked,
        "first": journey.first.path.name,
        "last": journey.last.path.name,
        "unreadable": [f.path.name for f in journey.unreadable],
        "operations": [
            {
                "name": t.name,
                "opcode": t.opcode,
                "source": t.source or None,
                "op_name": t.op_name or None,
                "stops": [
                    {
                        "file": s.frame.path.name,
                        "pipeline": s.frame.pipeline or None,
                        "pass": s.frame.after,
                        "how": str(s.how),
                        "places": [asdict(spot) for spot in s.spots],
                        "instead_of": list(s.instead_of),
                    }
                    for s in t.stops
                ],
                "ends_in": [asdict(k) for k in t.ends],
            }
            for t in journey.trails
        ],
    }


def _told(trail: Trail) -> list[tuple[Stop, str]]:
    before = [None, *trail.stops]
    return [(s, words.stop_text(s, before[n])) for n, s in enumerate(trail.stops)]


def _ends(trail: Trail) -> list[str]:
    if not trail.ends:
        return ["ends: it is in no kernel"]
    head = "ends in " if len(trail.ends) == 1 else f"ends in {len(trail.ends)} kernels: "
    more = "; …" if len(trail.ends) > 4 else ""
    return [head + "; ".join(words.end_text(k) for k in trail.ends[:4]) + more]


def _number(stop: Stop) -> str:
    return "" if stop.frame.number is None else f"{stop.frame.number:04d}"


def _unreadable(journey: Journey) -> str:
    names = ", ".join(f.path.name for f in journey.unreadable[:3])
    count = plural(len(journey.unreadable), "dump")
    return printable(f"{count} cannot be read and left out: {names}")
