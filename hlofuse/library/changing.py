"""Changes that are tried on a module: rules, recipes, flags, values of knobs, passes left out."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from hlofuse.account import Observed
from hlofuse.compilation import ReplayConfig
from hlofuse.format.terminal import Page
from hlofuse.ir import HlofuseError, replace
from hlofuse.judge.judge import Judge
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import totals_json
from hlofuse.reports.explain.explain import explain, selected
from hlofuse.reports.explain.model import Explanation
from hlofuse.reports.verdict.changes import (
    changes,
    print_changes,
    print_passes,
    with_flags,
    with_module,
    without_passes,
)
from hlofuse.reports.verdict.json import changes_json, verdict_json
from hlofuse.reports.verdict.verdict import verdict
from hlofuse.reports.whatif.model import SCHEMA, Ranking, rank, ranking_json, sweep, sweep_json
from hlofuse.reports.whatif.text import print_sweep
from .answer import Answer
from .explaining import print_advice_at
from .heads import head_of
from .loading import config_of
from .naming import resolver_of, unoptimized_of, with_events
from .program import Program
from .questions import WhatIf


def what_if(report: Program, options: WhatIf) -> Answer[Any]:
    """The answer of `what-if`: a ranking, a sweep, or passes left out."""
    if options.without_pass:
        if options.name is not None or options.sweep or options.also or options.also_flags:
            raise HlofuseError("--without-pass excludes NAME, --sweep, --also and --also-flags")
        if options.confirm and (target := report.loaded.target) != "cpu":
            raise HlofuseError(f"--confirm compiles with XLA:CPU; the module is for target {target}")
        loaded = report.before_optimizations("--without-pass")
        observed = report.replayed
        spin = report.options.listener.activity("compiling without passes")
        with spin, Judge() if options.confirm else nullcontext() as judge:
            totals, found = without_passes(observed, [*options.without_pass], loaded.module, judge)
        return Answer(
            "without passes",
            lambda: found,
            json=lambda data: {"schema": SCHEMA, "about": "passes", "passes": changes_json(data)},
            body=lambda console, **_: print_passes(totals, found, console),
            rows_of="passes",
            note=observed.note,
            heads=[head_of(loaded)],
        )
    if report.options.xla_trace is not None:
        raise HlofuseError("what-if changes decisions and cannot follow an --xla-trace")
    if not options.sweep:
        if options.also_device:
            raise HlofuseError("--also-device needs --sweep")
        own = replace(report.options, module=None, ids=None, given=None)
        others = [o if isinstance(o, Program) else Program(replace(own, input=o)) for o in options.also]
        return _ranked(report, options.name, others, options.also_flags)
    if options.name is not None:
        raise HlofuseError("--sweep replays the whole module and takes no NAME")
    if options.also or options.also_flags:
        raise HlofuseError("--sweep excludes --also and --also-flags")
    loaded = report.at_fusion
    devices = [partial(_varied, report, device) for device in (None, *options.also_device)]
    with report.options.listener.progress("replaying") as progress:
        texts = {name: [str(v) for v in values] for name, values in options.sweep.items()}
        swept = sweep(loaded.input, devices, texts, progress=progress)
    return Answer(
        "sweep",
        lambda: swept,
        json=sweep_json,
        body=lambda console, **_: print_sweep(swept, console),
        rows_of="points",
        note=loaded.note,
        heads=[head_of(loaded)],
    )


def _ranked(
    report: Program,
    name: str | None,
    also: Sequence[Program],
    also_flags: Sequence[str],
) -> Answer[Ranking]:
    options, loaded = report.options, report.at_fusion
    assert loaded.config is not None
    others = [(other.at_fusion.observe(), other.options.input) for other in also]
    with options.listener.progress("replaying") as progress:
        around = partial(_around, name) if name is not None else None
        found = rank(loaded.input, loaded.config, attach=loaded.attach, progress=progress, narrowed=around)
    observed = found.observed
    assert observed is not None
    with_events(observed.replay)
    facts = Facts(observed.replay, observed.costs)
    unoptimized = partial(unoptimized_of, observed.replay)
    answer = verdict(observed, facts, ranking=found, unoptimized=unoptimized, about_all=name is None)
    answer = report.with_measured_changes(answer)
    rows = [
        *(with_module(facts.account_replayed, other, path) for other, path in others),
        *(with_flags(observed, facts.account_replayed, flags, unoptimized()) for flags in also_flags),
    ]

    def draw(console: Page) -> None:
        print_changes(answer, found, rows, console, input_arguments=options.input_arguments)
        if name is not None:
            print_advice_at(report, name, console)

    return Answer(
        "what-if",
        lambda: found,
        json=lambda data: {
            **ranking_json(data),
            "totals": totals_json(answer.totals, observed.replay.counted),
            **verdict_json(answer),
            "also": changes_json(rows),
        },
        body=draw,
        rows_of=lambda _: changes_json(changes(answer, found, rows)),
        entries_of=lambda data: changes(answer, data, rows),
        note=loaded.note,
        heads=[head_of(observed.replay)],
    )


def _around(name: str, observed: Observed) -> Explanation:
    facts = Facts(observed.replay, observed.costs)
    return selected(explain(observed.replay, facts=facts), name, resolver_of(facts))


def _varied(report: Program, device: str | None, values: Mapping[str, str]) -> ReplayConfig:
    loaded = report.at_fusion
    xla = loaded.config.xla or loaded.config if loaded.config is not None else None
    own = xla.device if xla is not None else None
    more = [f"{name}={value}" for name, value in values.items()]
    return config_of(report.options, loaded.target, device or own, loaded.release.name, more)
