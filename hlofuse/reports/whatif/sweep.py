"""Replays over a grid of knobs' values, on one or several devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product

from hlofuse.account import observed_replay
from hlofuse.cost.gpu.shared_tables import SharedTables
from hlofuse.ir.errors import HlofuseError
from hlofuse.replay import ReplayConfig, ReplayInput
from hlofuse.reports.difference.model import compare_results, result_of
from hlofuse.reports.whatif.model import Point, Sweep, SweepAxis
from hlofuse.rules.settings import all_knobs

Progress = Callable[[int, int], None]
Vary = Callable[[Mapping[str, str]], ReplayConfig]
"""Makes the variant in which these knobs have these values, on one device."""

MOST_POINTS = 400


def sweep(
    input: ReplayInput,
    devices: Sequence[Vary],
    axes: Mapping[str, Sequence[str]],
    *,
    progress: Progress | None = None,
) -> Sweep:
    """Every combination of the axes' values on every device: several axes make a grid.

    HlofuseError for an unknown knob, a value that is none, or more than `MOST_POINTS` combinations.
    """
    grid = list(product(*axes.values()))
    total = len(grid) * len(devices)
    if total > MOST_POINTS:
        raise HlofuseError(f"{total} combinations in a sweep; at most {MOST_POINTS} are allowed")
    configs = [[vary(dict(zip(axes, values, strict=True))) for values in grid] for vary in devices]
    points, xla_totals, xla_values = [], [], []
    structures = SharedTables()
    done = 0
    for row in configs:
        base = row[0].xla or row[0]
        observed = observed_replay(input, base, cache=structures)
        xla_run = result_of(observed)
        default = tuple(_default(name, base) for name in axes)
        for values, config in zip(grid, row, strict=True):
            if progress is not None:
                progress(done, total)
            done += 1
            same = _equal(values, default) and _fixed_changes(config, axes) == ()
            if same:
                baseline = xla_run
            else:
                alone = replace(config, changes=(), xla=None)
                baseline = result_of(observed_replay(input, alone, cache=structures))
            difference = compare_results(xla_run, baseline, config.changes)
            points.append(Point(observed.replay.device, values, same, difference))
        xla_totals.append(xla_run.totals)
        xla_values.append(default)
    first = configs[0][0]
    return Sweep(
        input.module.name,
        input.module.filename,
        first.target,
        first.release.title,
        _fixed_changes(first, axes),
        tuple(_axis(name, values) for name, values in axes.items()),
        tuple(row[0].device.name if row[0].device is not None else None for row in configs),
        tuple(xla_values),
        tuple(xla_totals),
        tuple(points),
    )


def _fixed_changes(config: ReplayConfig, axes: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(c for c in config.changes if c.partition("=")[0] not in axes)


def _axis(name: str, values: Sequence[str]) -> SweepAxis:
    knob = all_knobs().get(name)
    if knob is None:
        return SweepAxis(name, tuple(values), "", "device number")
    return SweepAxis(name, tuple(values), knob.unit, knob.summary)


def _default(name: str, xla: ReplayConfig) -> str:
    """XLA's value of a knob or of device number."""
    knob = all_knobs().get(name)
    if knob is not None:
        standard = knob.value_in(xla.release)
        return f"{standard:g}" if isinstance(standard, float) else str(standard)
    if xla.device is not None and name in {f.name for f in fields(xla.device)}:
        value = getattr(xla.device, name)
        return f"{value:g}" if isinstance(value, float) else str(value)
    return ""


def _equal(values: Sequence[str], default: Sequence[str]) -> bool:
    def number(text: str) -> float | str:
        try:
            return float(text)
        except ValueError:
            return text

    return [number(v) for v in values] == [number(d) for d in default]
