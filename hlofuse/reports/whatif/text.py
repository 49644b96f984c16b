"""Sweeps and knobs of `what-if` for the terminal."""

import re
from dataclasses import fields

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.escape import printable
from hlofuse.format.terminal import GAP, indented, plain_table, print_rows
from hlofuse.ir.grouping import grouped
from hlofuse.reports.whatif import phrases
from hlofuse.reports.whatif.model import Sweep
from hlofuse.rules.catalogue import catalogue

_NARROW = {"changed decisions": "changed\ndecisions"}
"""Headings with which a row stays on one line of 80 columns."""


def print_sweep(s: Sweep, console: Console) -> None:
    """The table, XLA's own rows marked."""
    console.print(Text(phrases.sweep_headline(s), style="bold"))
    text = "Rows marked XLA are XLA's own result; percentages are relative to them."
    console.print(Text(text, style="bold yellow"))
    for k, axis in enumerate(s.axes):
        console.print(Text(phrases.axis_line(axis, [v[k] for v in s.xla_values]), style="dim"))
    note = phrases.untimed_note(s.xla[0])
    if note:
        console.print(Text(note, style="dim"))
    console.print()
    _print_points(s, console)
    for note in (phrases.CHANGED_DECISIONS, phrases.marks_line(p.difference for p in s.points)):
        if note:
            indented(console, note, 2, "dim")


def _print_points(s: Sweep, console: Console) -> None:
    """A column for each knob; where they have no room, the knobs of a row in one that may fold."""
    columns = phrases.sweep_columns(s)
    shown = [k for k, c in enumerate(columns) if s.timed or c != "est. time"]
    headings = [_NARROW.get(columns[k]) or _fold(columns[k]) for k in shown]
    rows = [
        [Text(row[k], style="bold" if is_xla else "") for k in shown] for is_xla, row in phrases.sweep_rows(s)
    ]
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
    table = plain_table(("knob", "left"), ("XLA", "right"), ("rules", "left"), ("", "left"))
    table.columns[0].no_wrap = True
    for name, knob in sorted(knobs.items()):
        table.add_row(name, f"{knob.default:g}", " ".join(rules[name]), knob.summary)
    console.print(Text("rule knobs", style="bold cyan"))
    indented(console, table)
    console.print()
    console.print(Text("device numbers (hlofuse devices NAME shows the values)", style="bold cyan"))
    names = [f.name for f in fields(DeviceDescription) if f.name not in ("name", "matrix_units")]
    indented(console, ", ".join(names))
