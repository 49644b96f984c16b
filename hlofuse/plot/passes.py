"""Kernels, bytes and estimated time after each fusion pass."""

from __future__ import annotations

from hlofuse.account import KernelTimes
from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import kernels
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.plot.bars import Column, Row, Series, bar_chart
from hlofuse.plot.figure import COLORS, Plot
from hlofuse.replay import Replay


def plot_passes(replay: Replay, times: KernelTimes | None, alerts: tuple[str, ...] = ()) -> Plot:
    """`replay` was made with `keep_modules`; passes that changed nothing are only counted."""
    rows = [_row("as it enters", replay.before, times)]
    idle = 0
    for number, done in enumerate(replay.passes, 1):
        if not done.changed or done.module_text is None:
            idle += 1
            continue
        last = number == len(replay.passes)
        module = replay.after if last else parse_module(done.module_text)
        rows.append(_row(f"{number}. {done.name}", module, times))
    columns = [Column("kernels", lambda v: f"{v:,.0f}"), Column("bytes moved", bytes_text)]
    if times is not None:
        columns.append(Column("estimated time", us_text))
    where = f" on {replay.device}" if replay.device else ""
    lines = [f"{replay.target} fusion{where}: after each pass that changed something"]
    if idle:
        lines.append(f"{plural(idle, 'pass changed', 'passes changed')} nothing")
    return bar_chart(replay.before.name, lines, columns, [Series("", COLORS[0])], rows, alerts)


def _row(label: str, module: Module, times: KernelTimes | None) -> Row:
    costs = CostAnalysis()
    launched = kernels(module)
    moved = sum(costs.instruction(k).bytes_accessed for k in launched)
    values: list[tuple[float | None, ...]] = [(float(len(launched)),), (float(moved),)]
    if times is not None:
        values.append((sum(us for k in launched if (us := times.us(k)) is not None),))
    return Row(label, tuple(values))
