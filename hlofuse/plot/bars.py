"""Rows of bars: a label at the left, one or more columns of figures, one or more bars a row in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlofuse.format.escape import shorten
from hlofuse.plot.canvas import Canvas
from hlofuse.plot.figure import Plot, plot_of
from hlofuse.render.metrics import text_width
from hlofuse.render.palette import ALERT, FAINT, PALE

_WIDTH, _GAP, _FIGURE = 200.0, 34.0, 62.0
_THICK = 11.0


@dataclass(frozen=True, slots=True)
class Column:
    """One measure."""

    title: str
    text: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured: for each column a value for each series; None where there is none."""

    label: str
    values: tuple[tuple[float | None, ...], ...]
    note: str = ""
    """Said when somebody points at the bars."""


@dataclass(frozen=True, slots=True)
class Series:
    """How one of a row's bars looks: by colour, and hollow or full."""

    label: str
    color: str
    hollow: bool = False


def bar_chart(
    title: str,
    lines: Sequence[str],
    columns: Sequence[Column],
    series: Sequence[Series],
    rows: Sequence[Row],
    alerts: Sequence[str] = (),
) -> Plot:
    """Rows from the top down; every column has a scale of its own, from zero."""
    canvas = Canvas()
    labels = [shorten(row.label, 44) for row in rows]
    left = max(text_width(label, 9) for label in labels) + 14
    step = _THICK * len(series) + 9
    bottom = -step * len(rows)
    room = left + len(columns) * (_WIDTH + _FIGURE + _GAP)
    head = 34.0 + 13 * (len(lines) + len(alerts)) + (18 if len(series) > 1 else 0)
    canvas.text((0, head), title, size=14, width=room, bold=True)
    for k, (line, color) in enumerate([*((a, ALERT) for a in alerts), *((one, FAINT) for one in lines)]):
        canvas.text((0, head - 17 - 13 * k), line, size=9, width=room, color=color)
    if len(series) > 1:
        _legend(canvas, series)
    for n, label in enumerate(labels):
        canvas.text((0, -step * (n + 0.5)), label, size=9, width=left)
    for c, column in enumerate(columns):
        x = left + c * (_WIDTH + _FIGURE + _GAP)
        most = max((v for row in rows for v in row.values[c] if v is not None), default=0.0) or 1.0
        canvas.text((x, 9), column.title, size=10, width=_WIDTH, bold=True)
        canvas.line([(x, 2), (x, bottom)], PALE)
        for n, row in enumerate(rows):
            _bars(canvas, (x, -step * (n + 0.5)), row, c, column, series, most)
    names = ", ".join(column.title for column in columns)
    return plot_of(canvas, title, f"{names}: {'; '.join(lines)}")


def _bars(
    canvas: Canvas,
    at: tuple[float, float],
    row: Row,
    index: int,
    column: Column,
    series: Sequence[Series],
    most: float,
) -> None:
    for k, (one, value) in enumerate(zip(series, row.values[index], strict=True)):
        y = at[1] + _THICK * ((len(series) - 1) / 2 - k)
        if value is None:
            continue
        said = " ".join(filter(None, (one.label, column.text(value), row.note)))
        width = value / most * _WIDTH
        canvas.bar(
            (at[0], y), width, _THICK - 2, one.color, hollow=one.hollow, tooltip=f"{row.label}: {said}"
        )
        canvas.text((at[0] + width + 4, y), column.text(value), size=8, width=_FIGURE, color=FAINT)


def _legend(canvas: Canvas, series: Sequence[Series]) -> None:
    x = 0.0
    for one in series:
        canvas.bar((x, 28), 14, 8, one.color, hollow=one.hollow)
        width = text_width(one.label, 9) + 10
        canvas.text((x + 19, 28), one.label, size=9, width=width)
        x += 19 + width + 14
