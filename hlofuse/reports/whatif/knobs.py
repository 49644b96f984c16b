"""Everything `--set` and `--sweep` take, with XLA's values."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.reports.explain.tables import plain_table
from hlofuse.rules.catalogue import catalogue

if TYPE_CHECKING:
    from rich.console import Console


def print_knobs(console: Console) -> None:
    """The knobs of the rules, then the numbers of a device."""
    rules: dict[str, list[str]] = {}
    knobs = {}
    for rule in catalogue().values():
        for knob in rule.knobs:
            rules.setdefault(knob.name, []).append(rule.code)
            knobs[knob.name] = knob
    table = plain_table(("knob", "left"), ("XLA", "right"), ("rules", "left"), ("", "left"))
    table.columns[0].no_wrap = True
    for name, knob in sorted(knobs.items()):
        table.add_row(name, f"{knob.default:g}", " ".join(rules[name]), knob.summary)
    console.print(Text("knobs of the rules", style="bold cyan"))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
    console.print(Text("numbers of the device (hlofuse devices NAME has its values)", style="bold cyan"))
    names = [f.name for f in fields(DeviceDescription) if f.name not in ("name", "matrix_units")]
    console.print(Padding(Text(", ".join(names)), (0, 0, 0, 2)))
