"""Shares of the user's functions: a table and JSON."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from hlofuse.account.functions import Functions, FunctionShare
from hlofuse.format import bytes_text, fields, printable, shorten, us_text
from hlofuse.format.paths import Direction, shown_file
from hlofuse.format.terminal import GAP, plain_table

_DIRECTIONS: tuple[Direction, ...] = ("forward", "backward", "recomputed")
_NAME = 20  # columns that names have at least
_UNITS = {"measured": "measured", "estimated": "est.", "bytes": "bytes"}


def function_table(f: Functions, width: int, most: int | None = None) -> Table:
    """A row for each function with a part: figure, part, name, the part of each direction. `most` bounds the
    rows; the heading says how many there are, and the part in no row. Names are shortened to fit `width`."""
    every = [row for row in f.rows if row.part]
    shown = every[:most]
    notes = ["of the known time"] if f.is_partial else []
    if len(shown) < len(every):
        notes.append(f"{len(shown)} of {len(every)}")
    rest = percent(1 - sum(row.part for row in shown))
    columns = [d for d in _DIRECTIONS if f.directions.get(d)]
    headings = [f"{d} {percent(f.directions[d])}" for d in columns]
    amounts = ((row.amount(f.unit), row.is_floor and f.unit == "estimated") for row in shown)
    figures = [bytes_text(n) if f.unit == "bytes" else us_text(n, is_floor) for n, is_floor in amounts]
    taken = max(map(len, figures)) + GAP + len("100%") + GAP
    taken += sum(GAP + len(h) for h in headings)
    while columns and taken + _NAME > width:
        columns.pop()
        taken -= GAP + len(headings.pop())
    if rest[0].isdigit():
        notes.append(f"rest {rest}")
    heading = "function"
    if notes:
        heading = f"function ({', '.join(notes)})"
    if len(heading) > width - taken and notes:
        heading = f"function ({notes[-1]})"
    parts_of = [(h, "right") for h in headings]
    table = plain_table((_UNITS[f.unit], "right"), ("", "right"), (heading, "name"), *parts_of)
    for row, figure in zip(shown, figures, strict=True):
        parts = [percent(row.directions.get(d, 0.0)) for d in columns]
        name = shorten(_name(f, row), max(width - taken, len(heading)))
        table.add_row(figure, percent(row.part), name, *parts)
    return table


def changes(before: Functions, after: Functions) -> list[tuple[str, float, float, tuple[bool, bool]]]:
    """The name of each function whose figure changed, with both figures, largest change first. The last two
    say which figures are lower bounds. Empty where one side names no functions."""
    old, new = ({_name(f, row): row for row in f.rows} for f in (before, after))
    found = []
    for name in old | new if old and new else ():
        sides = old.get(name), new.get(name)
        figures = [row.amount(before.unit) if row is not None else 0 for row in sides]
        bounds = [row is not None and row.is_floor and before.unit == "estimated" for row in sides]
        if figures[0] != figures[1]:
            found.append((name, figures[0], figures[1], (bounds[0], bounds[1])))
    return sorted(found, key=lambda row: -abs(row[2] - row[1]))


def _name(f: Functions, row: FunctionShare) -> str:
    """`attention`; with the file where two have the name."""
    name = printable(row.name) or "(unnamed)"
    if [other.name for other in f.rows].count(row.name) == 1:
        return name
    return f"{name} ({(printable(shown_file(row.file)) or 'function') if row.file else 'scope'})"


def percent(part: float) -> str:
    """`14%`, `<1%`, `–` for nothing."""
    return "–" if not part else "<1%" if 0 < part < 0.005 else f"{100 * part:.0f}%"


def functions_json(f: Functions) -> dict[str, Any]:
    spec = "kernels launches time_us=us~ floor=is_floor measured_us~ bytes=bytes_accessed"
    return {
        "share_of": f.unit,
        "directions": _parts(f.directions),
        "rows": [
            {
                "name": row.name,
                "file": shown_file(row.file) if row.file not in ("", ".") else None,
                **fields(row, spec),
                "share": round(row.part, 4),
                "directions": _parts(row.directions),
            }
            for row in f.rows
        ],
    }


def _parts(directions: Mapping[Direction, float]) -> dict[str, float]:
    return {direction: round(part, 4) for direction, part in directions.items()}
