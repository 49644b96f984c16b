"""Sweeps and rankings for the terminal."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hlofuse.account import Totals
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format import printable, us_text
from hlofuse.format.terminal import GAP, indented, plain_table, print_rows
from hlofuse.ir import Strings, grouped
from hlofuse.reports.common.phrases import floors_and_copies
from hlofuse.reports.comparison.model import Comparison
from hlofuse.reports.comparison.text import share
from hlofuse.rules.catalogue import catalogue
from .model import Point, Sweep, SweepAxis

_NARROW = {"changed decisions": "changed\ndecisions"}
"""Headings with which a row stays on one line of 80 columns."""


def print_sweep(s: Sweep, console: Console) -> None:
    """The table, XLA's own rows marked."""
    console.print(sweep_headline(s), style="bold")
    text = "Rows marked XLA are XLA's own result; percentages are relative to them."
    console.print(text, style="bold yellow")
    for k, axis in enumerate(s.axes):
        console.print(axis_line(axis, [v[k] for v in s.xla_values]), style="dim")
    note = untimed_note(s.xla[0])
    if note:
        console.print(note, style="dim")
    console.print()
    _print_points(s, console)
    decided = CHANGED_DECISIONS if any(p.difference.flipped for p in s.points) else ""
    for note in (decided, marks_line(p.difference for p in s.points)):
        if note:
            indented(console, note, 2, "dim")


def _print_points(s: Sweep, console: Console) -> None:
    """A column for each knob; where they have no room, the knobs of a row in one that may fold."""
    own = (*["device"] * (len(s.devices) > 1), *(printable(a.name) for a in s.axes))
    columns = (*own, "kernels", "moved", "est. time", "changed decisions")
    shown = [k for k, c in enumerate(columns) if s.timed or c != "est. time"]
    headings = [_NARROW.get(columns[k]) or _fold(columns[k]) for k in shown]
    rows = [[Text(row[k], style="bold" if is_xla else "") for k in shown] for is_xla, row in sweep_rows(s)]
    cells = [
        [*heading.split("\n"), *map(str, column)] for heading, *column in zip(headings, *rows, strict=True)
    ]
    widths = [max(map(cell_len, column)) for column in cells]
    if sum(widths) + GAP * len(widths) <= console.width:
        table = plain_table(*((heading, "right") for heading in headings))
        for row in rows:
            table.add_row(*row)
        indented(console, table)
        return
    devices = len(s.devices) > 1
    knobs = devices + len(s.axes)

    def bold(row: list[Text]) -> Text:
        named = [f"{printable(a.name)}={value}" for a, value in zip(s.axes, row[devices:knobs], strict=True)]
        return Text(", ".join([*map(str, row[:devices]), *named]), style=row[0].style)

    figures = [(columns[k], "right") for k in shown[knobs:]]
    print_rows(console, [("with", "left"), *figures], [[bold(row), *row[knobs:]] for row in rows])


def _fold(heading: str, width: int = 12) -> str:
    """A long name on several lines, broken where its words meet."""
    lines = [""]
    for part in re.findall(r"[^-_ ]*[-_ ]?", heading):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def print_knobs(console: Console) -> None:
    """The rule knobs, then the numbers of a device."""
    knobs = {knob.name: knob for rule in catalogue().values() for knob in rule.knobs}
    rules = grouped((knob.name, rule.code) for rule in catalogue().values() for knob in rule.knobs)
    console.print("rule knobs, with XLA's values and their rules", style="bold cyan")
    for name, knob in sorted(knobs.items()):
        indented(console, f"{name} {knob.default:,.12g} ({', '.join(rules[name])}): {knob.summary}")
    console.print()
    console.print("device numbers (hlofuse devices NAME shows the values)", style="bold cyan")
    names = [f.name for f in fields(DeviceDescription) if f.name not in ("name", "matrix_units")]
    indented(console, ", ".join(names))


def untimed_note(t: Totals) -> str:
    """For how many kernels the times hold a lower bound, or that there are no times; empty for neither."""
    if t.us is None:
        return (
            "no time estimate for this target: fewer kernels and bytes can still be slower if values are"
            " recomputed"
        )
    return "; ".join(floors_and_copies(t))


CHANGED_DECISIONS = "Changed decisions: + fused here but not by XLA, − fused by XLA but not here."
_MARK = " *"


def marks_line(differences: Iterable[Comparison]) -> str:
    """The meaning of the marks at times; empty where there is none."""
    if not any(map(_mark, differences)):
        return ""
    return "*: this time includes lower bounds for more or fewer kernels than the time it is compared with."


def _mark(d: Comparison) -> str:
    return _MARK if d.replayed.us is not None and d.xla.floors != d.replayed.floors else ""


def edges_text(d: Comparison) -> str:
    """`+5 −1`: edges fused that XLA does not fuse, and the other way round."""
    parts = [f"+{len(d.fused):,}"] if d.fused else []
    parts += [f"−{len(d.parted):,}"] if d.parted else []
    return " ".join(parts) or "–"


def sweep_rows(s: Sweep) -> Iterator[tuple[bool, Strings]]:
    """One row for each point, and one for XLA's own where no point is that; true for XLA's."""
    for device, xla, values in zip(s.devices, s.xla, s.xla_values, strict=True):
        points = [p for p in s.points if p.device == device]
        if not any(p.is_xla for p in points):
            head = [printable(device or "")] if len(s.devices) > 1 else []
            yield True, (*head, *map(printable, values), *_totals(xla, None), "XLA")
        for p in points:
            yield p.is_xla, _sweep_row(s, p)


def _sweep_row(s: Sweep, p: Point) -> Strings:
    head = [printable(p.device or "")] if len(s.devices) > 1 else []
    against = "XLA" if p.is_xla else edges_text(p.difference)
    kernels, moved, time = _totals(p.totals, p.difference.xla)
    return (*head, *map(printable, p.values), kernels, moved, time + _mark(p.difference), against)


def _totals(t: Totals, xla: Totals | None) -> Strings:
    moved, time = t.moved_text, us_text(t.us, t.is_floor) if t.us is not None else ""
    if xla is not None:
        moved += share(xla.cost.bytes_accessed, t.cost.bytes_accessed)
        if xla.us is not None and t.us is not None:
            time += share(xla.us, t.us)
    return (f"{t.kernels:,}", moved, time)


def sweep_headline(s: Sweep) -> str:
    """The headline: the swept knobs, and that the result is not XLA's."""
    names = " × ".join(printable(a.name) for a in s.axes)
    fixed = f", changed: {', '.join(map(printable, s.changes))}" if s.changes else ""
    devices = [printable(d) for d in s.devices if d]
    on = f" ({', '.join(devices)})" if devices else ""
    return f"{printable(s.module)} on {s.target}{on}: sweep of {names}{fixed}"


def axis_line(a: SweepAxis, xla: list[str]) -> str:
    """The description of a knob, and XLA's value."""
    unit = f" {a.unit}" if a.unit else ""
    values = ", ".join(dict.fromkeys(x for x in xla if x))
    xla_text = f"; XLA: {values}{unit}" if values else ""
    return f"{printable(a.name)}: {printable(a.summary.rstrip('.'))}{xla_text}"
