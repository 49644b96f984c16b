"""What each kernel takes, and what the kernels took that it was made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hlofuse.account import KernelTimes
from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import kernels
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.ir.graph import Instruction
from hlofuse.plot.bars import Column, Row, Series, bar_chart
from hlofuse.plot.figure import COLORS, Plot
from hlofuse.render.pair import ModulePair

MOST = 30
"""Kernels that have a row of their own; a person reads no more."""


@dataclass(slots=True)
class _Kernel:
    label: str
    before: float | None
    after: float | None
    made_of: int


def plot_kernels(
    pair: ModulePair, times: KernelTimes | None, title: str, alerts: tuple[str, ...] = (), most: int = MOST
) -> Plot:
    """By the greater of both figures; estimated time where there is a model of it, else bytes.

    What went into several kernels counts in equal parts in each.
    """
    costs = CostAnalysis()

    def moved(k: Instruction) -> float | None:
        return float(costs.instruction(k).bytes_accessed)

    found = _kernels(pair, times.us if times is not None else moved)
    found.sort(key=lambda k: (-max(k.after or 0.0, k.before or 0.0), k.label))
    rows = [_row(k) for k in found[:most]]
    lines = [
        title,
        "kernels after, by the greater of both figures; before: the kernels that each was made of",
    ]
    if rest := found[most:]:
        sums = [sum(v for k in rest if (v := getattr(k, side)) is not None) for side in ("before", "after")]
        rows.append(Row(f"{plural(len(rest), 'other kernel')}", (tuple(sums),)))
    if untimed := sum(k.after is None for k in found):
        lines.append(f"{plural(untimed, 'kernel')} of libraries and the like have no estimate")
    column = Column("estimated time, launches included", us_text) if times is not None else None
    series = [Series("before", "#59636e", hollow=True), Series("after", COLORS[0])]
    return bar_chart(
        pair.after.name, lines, [column or Column("bytes moved", bytes_text)], series, rows, alerts
    )


def _kernels(pair: ModulePair, measure: Callable[[Instruction], float | None]) -> list[_Kernel]:
    launched = kernels(pair.after)
    shares: dict[Instruction, list[float | None]] = {k: [] for k in launched}
    gone: list[float | None] = []
    for k in kernels(pair.before):
        value = measure(k)
        homes = _homes(pair.kernels, k, shares)
        if not homes:
            gone.append(value)
        for home in homes:
            shares[home].append(None if value is None else value / len(homes))
    found = [_Kernel(k.name, _sum(shares[k]), measure(k), len(shares[k])) for k in launched]
    if gone:
        found.append(_Kernel("gone: computed in no kernel", _sum(gone), 0.0, len(gone)))
    return found


def _homes(
    into: Mapping[Instruction, tuple[Instruction, ...]], k: Instruction, known: Mapping[Instruction, object]
) -> list[Instruction]:
    return [home for home in dict.fromkeys(into.get(k, ())) if home in known]


def _sum(values: list[float | None]) -> float | None:
    """None where one has no figure: the sum would mislead."""
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _row(k: _Kernel) -> Row:
    return Row(k.label, ((k.before, k.after),), f"made of {plural(k.made_of, 'kernel')}")
