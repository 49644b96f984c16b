"""`what-if` for the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.escape import printable, shorten
from hlofuse.format.terminal import GAP, indented, plain_table, print_command, print_more, print_rows
from hlofuse.format.units import bytes_text
from hlofuse.reports.difference.phrases import warning_line
from hlofuse.reports.whatif import phrases
from hlofuse.reports.whatif.model import FixedRule, Ranking, RelaxedRule, Sweep
from hlofuse.rules.catalogue import catalogue


def print_ranking(
    r: Ranking, console: Console, *, input_arguments: Sequence[str] = (), limit: int = 10
) -> None:
    """The answer first, then every rule that was relaxed, then those that cannot be."""
    console.print(Text(phrases.title(r), style="bold"))
    if r.changes:
        console.print(Text(warning_line(r.changes), style="bold yellow"))
    console.print(Text(phrases.totals_line(r.after)))
    note = phrases.untimed_note(r.after)
    if note:
        console.print(Text(note, style="dim"))
    console.print()
    saves = bool(r.relaxed) and r.relaxed[0].saves
    for line in phrases.lead(r):
        console.print(Text(line, style="bold green" if saves else "bold"))
    if saves:
        _print_advice(r.relaxed[0], console, input_arguments, limit)
    other = phrases.to_act_on(r) if saves else None
    if other is not None:
        console.print()
        console.print(Text(phrases.lead_to_act_on(other), style="bold"))
        _print_advice(other, console, input_arguments, limit)
    if r.relaxed:
        console.print()
        _print_table(r, console, limit)
    for x in r.relaxed[1 if saves else 0 : limit or None]:
        if x.saves and x is not other:
            _print_blocks(x, console, limit)
    if r.fixed:
        console.print()
        _print_fixed(r.fixed, console, limit)


def _print_advice(r: RelaxedRule, console: Console, input_arguments: Sequence[str], limit: int) -> None:
    _print_edges(r, console, limit)
    for line in phrases.advice(r):
        indented(console, line)
    print_command(console, 2, "explain", *input_arguments, "--disable", r.rule.code)


def _print_edges(r: RelaxedRule, console: Console, limit: int) -> None:
    rows = plain_table(("", "left"), ("", "right"), ("", "left"))
    for b in r.blocks[: limit or None]:
        source = shorten(b.producer.source or "", max(48, console.width // 4))
        rows.add_row(Text(phrases.edge_text(b)), Text(bytes_text(b.bytes_between)), Text(source, style="dim"))
    if r.blocks:
        indented(console, rows)
    print_more(console, len(r.blocks) - (limit or len(r.blocks)), "edge")


_NARROW = {"edges it blocks": "edges it\nblocks", "edges turned": "edges\nturned"}
"""Headings with which a rule and its figures stay on one line of 80 columns."""


def _print_table(r: Ranking, console: Console, limit: int) -> None:
    rows = [x for x in r.relaxed if x.changes_anything]
    shown = [k for k in phrases.ranking_columns(r) if phrases.RANKING_COLUMNS[k] != "rule"]
    names = [phrases.RANKING_COLUMNS[k] for k in shown]
    table = plain_table(*((_NARROW.get(c, c), "left" if c == "without" else "right") for c in names))
    for x in rows[: limit or None]:
        cells = phrases.ranking_row(x)
        table.add_row(*(Text(cells[k], style="" if x.saves else "dim") for k in shown))
    if rows:
        indented(console, table)
    print_more(console, len(rows) - (limit or len(rows)), "rule")
    for x in rows[: limit or None]:
        legend = Text(f"{x.rule.code}  ", style="dim")
        legend.append(printable(x.rule.title), style="not dim")
        indented(console, legend)
    marks = phrases.marks_line(x.difference for x in rows[: limit or None])
    for note in (phrases.CHANGED_DECISIONS if rows else "", marks, phrases.idle_line(r)):
        if note:
            indented(console, note, 2, "dim")


def _print_blocks(r: RelaxedRule, console: Console, limit: int) -> None:
    if not r.blocks:
        return
    console.print()
    console.print(Text(f"{r.rule.code} blocks", style="bold"))
    _print_edges(r, console, limit)


def _print_fixed(rules: Sequence[FixedRule], console: Console, limit: int) -> None:
    console.print(Text("cannot be relaxed", style="bold cyan"))
    table = plain_table(("rule", "left"), ("edges it blocks", "right"), ("bytes", "right"), ("", "left"))
    blocking = [f for f in rules if f.blocks]
    for f in blocking[: limit or None]:
        size = bytes_text(sum(b.bytes_between for b in f.blocks))
        table.add_row(f.rule.code, f"{len(f.blocks):,}", size, Text(printable(f.rule.title)))
    if blocking:
        indented(console, table)
    quiet = [f.rule.code for f in rules if not f.blocks]
    if quiet:
        text = f"and {', '.join(quiet)}, which keep no two kernels apart in the end"
        indented(console, text, 2, "dim")
    reason = rules[0].reason
    indented(console, f"{reason[:1].upper()}{reason[1:]}.", 2, "dim")


def print_sweep(s: Sweep, console: Console) -> None:
    """The table, XLA's own rows marked."""
    console.print(Text(phrases.sweep_headline(s), style="bold"))
    text = "Not XLA's behaviour, but for the rows marked XLA; per cent are against those."
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
    headings = [_NARROW.get(columns[k]) or _folded(columns[k]) for k in shown]
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


def _folded(heading: str, width: int = 12) -> str:
    """A long name on several lines, broken where its words meet."""
    lines = [""]
    for part in re.findall(r"[^-_ ]*[-_ ]?", heading):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


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
    indented(console, table)
    console.print()
    console.print(Text("numbers of the device (hlofuse devices NAME has its values)", style="bold cyan"))
    names = [f.name for f in fields(DeviceDescription) if f.name not in ("name", "matrix_units")]
    indented(console, ", ".join(names))
