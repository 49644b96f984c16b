"""One program by two builds of XLA: another device, another release."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hlofuse.library.answer import Answer
from hlofuse.library.heads import head_of
from hlofuse.library.loading import Loaded, config_of, on_device, read
from hlofuse.library.modules import each_module
from hlofuse.library.options import ReplayOptions
from hlofuse.releases import NEWEST, nearest, release_of
from hlofuse.reports.comparison.json import comparison_json
from hlofuse.reports.comparison.reasons import compare_builds
from hlofuse.reports.comparison.text import print_comparison
from hlofuse.reports.upgrade import upgrade
from hlofuse.reports.upgrade.json import upgrade_json
from hlofuse.reports.upgrade.text import print_upgrade

if TYPE_CHECKING:
    from hlofuse.compilation import ReplayConfig
    from hlofuse.library.program import Program
    from hlofuse.releases import Release
    from hlofuse.reports.upgrade import Upgrade


def devices_compared(report: Program, device: str) -> Answer[Any]:
    """The decisions that differ on another device."""
    found = compare_builds(report.replayed, on_device(report.options, report.replayed, device))
    return Answer(
        "comparison of devices",
        lambda: found,
        json=comparison_json,
        body=lambda console, limit=10, hint=False: print_comparison(found, console, limit=limit),
        note=report.replayed.note,
        heads=[head_of(report.replay)],
    )


def upgraded(options: ReplayOptions, to: str | None, compiled: ReplayOptions | None) -> Answer[list[Upgrade]]:
    """Every module of the input by its release and by `to`, the newest for None; worst first.

    `compiled` has the same modules as the other release brings them to fusion.
    """

    requests = list(each_module(options, finished=False))
    to, note = nearest(to if to is not None else NEWEST)
    options.listener.note(note)
    new, others = release_of(to), {}
    if compiled is not None:
        for one, name in each_module(replace(compiled, xla=to), finished=False):
            loaded = read(one)
            others[name or loaded.module.name] = loaded.replay()
    found, heads = [], []
    with options.listener.progress("replaying") as progress:
        for number, (one, name) in enumerate(requests, 1):
            loaded = read(one)
            name = name or loaded.module.name
            other = others.get(name) or (next(iter(others.values())) if len(others) == 1 else None)
            config_of = partial(_config, one, loaded)
            assert loaded.config is not None
            found.append(upgrade(name, loaded.input, loaded.config.release, new, config_of, other))
            heads.append(head_of(loaded))
            progress(number, len(requests))
    found.sort(key=lambda f: f.worst_first)
    first = heads[0].build.release if heads and heads[0] is not None and heads[0].build is not None else ""
    return Answer(
        "upgrade",
        lambda: found,
        json=lambda data: upgrade_json(data, first, to),
        body=lambda console, limit=10: print_upgrade(found, first, to, console, limit=limit),
        rows_of=lambda document: document["modules"],
        entries_of=lambda data: data,
        heads=heads,
    )


def _config(options: ReplayOptions, loaded: Loaded, release: Release) -> ReplayConfig:
    """The settings of a replay, as another release."""
    own = loaded.config
    assert own is not None
    return config_of(options, loaded.target, own.device, release.name, mixed=release, flags=own.build.flags)
