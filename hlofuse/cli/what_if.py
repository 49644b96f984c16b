"""`hlofuse what-if`: sweeps over knobs, and which rule costs most."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, limit_option, name_argument, report_options
from hlofuse.cli.common.output import Output, emit, rendered, save
from hlofuse.cli.common.progress import progress_bar
from hlofuse.cli.common.replaying import Loaded, ReplayOptions, replay_options
from hlofuse.cli.common.reporting import head_of
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hlofuse.account import Observed
    from hlofuse.replay import ReplayConfig
    from hlofuse.reports.explain.model import Explanation
    from hlofuse.reports.whatif.sweep import Vary


def _print_knobs(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from hlofuse.reports.whatif.text import print_knobs

        emit(rendered(print_knobs))
        ctx.exit()


@click.command("what-if")
@input_argument
@name_argument
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="NAME=V1,V2,…",
    shell_complete=completion.knobs,
    help="Replay with each value of a knob or device number; several sweeps make a grid.",
)
@click.option(
    "--also-device",
    "more_devices",
    multiple=True,
    metavar="D",
    shell_complete=completion.devices,
    help="Also sweep on this device.",
)
@click.option(
    "--also",
    multiple=True,
    metavar="FILE",
    help="Add another version of the program as a row: its dump or directory.",
)
@click.option(
    "--also-flags",
    multiple=True,
    metavar="FLAGS",
    help="Add the module compiled with these XLA flags as a row.",
)
@click.option(
    "--without-pass",
    "without",
    multiple=True,
    metavar="PASS|all",
    help="Compile without this XLA pass and show the difference; all: each pass that changes the module.",
)
@click.option(
    "--confirm", is_flag=True, help=("With --without-pass: confirm by compiling with XLA:CPU (needs JAX).")
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plot the sweep: .svg, .png, .pdf or .dot.",
)
@limit_option(10, "Rules and edges listed; 0 shows all.")
@click.option(
    "--knobs",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_knobs,
    help="List the names for --set and --sweep with XLA's values.",
)
@replay_options
@report_options
def command(
    input: str,
    name: str | None,
    sweeps: tuple[str, ...],
    more_devices: tuple[str, ...],
    also: tuple[str, ...],
    also_flags: tuple[str, ...],
    without: tuple[str, ...],
    confirm: bool,
    plot: Path | None,
    limit: int,
    out: Output,
    **request: Any,
) -> int:
    """Rank changes to the module in INPUT by what they save; with --sweep, try other knob values.

    Every change is replayed: recipes that apply to the program, XLA flags, the versions given by
    --also and --also-flags, and each rule that refused a fusion, disabled alone. Rules that
    code generation needs stay. NAME, any name of kernels, selects the
    rules that refused to fuse these kernels with another.
    """
    options = ReplayOptions(input=input, **request)
    if options.xla_trace is not None:
        raise HlofuseError("what-if changes decisions and cannot follow an --xla-trace")
    if without:
        if name is not None or sweeps or also or also_flags:
            raise HlofuseError("--without-pass excludes NAME, --sweep, --also and --also-flags")
        _without(options, without, confirm, out)
        return 0
    if not sweeps:
        if plot is not None or more_devices:
            raise HlofuseError("--plot and --also-device need --sweep")
        _rank(options, name, also, also_flags, limit, out)
        return 0
    if name is not None:
        raise HlofuseError("--sweep replays the whole module and takes no NAME")
    if also or also_flags:
        raise HlofuseError("--sweep excludes --also and --also-flags")
    axes = _axes(sweeps)
    if plot is not None:
        from hlofuse.render import format_of
        from hlofuse.render.engine import require_engine

        if (form := format_of(plot)) != "svg":
            require_engine(form)
    _sweep(options, axes, more_devices, plot, out)
    return 0


def _rank(
    options: ReplayOptions,
    name: str | None,
    also: tuple[str, ...],
    also_flags: tuple[str, ...],
    limit: int,
    out: Output,
) -> None:
    from hlofuse.cli.common.naming import final_names_of, unoptimized_of, with_events
    from hlofuse.reports.common.facts import Facts
    from hlofuse.reports.verdict.changes import print_changes, with_flags, with_module
    from hlofuse.reports.verdict.json import changes_json, verdict_json
    from hlofuse.reports.verdict.verdict import verdict
    from hlofuse.reports.whatif.json import ranking_json
    from hlofuse.reports.whatif.ranking import rank

    loaded = options.read()
    assert loaded.config is not None
    others = [_other(options, path) for path in also]
    with progress_bar("replaying") as progress:
        around = partial(_around, name) if name is not None else None
        found = rank(loaded.input, loaded.config, progress=progress, narrowed=around)
    observed = found.observed
    assert observed is not None
    with_events(observed.replay)
    facts = Facts(observed.replay, observed.costs, final_names_of(observed.replay))
    unoptimized = partial(unoptimized_of, observed.replay)
    answer = verdict(observed, facts, ranking=found, unoptimized=unoptimized, about_all=name is None)
    rows = [
        *(with_module(facts.totals_after, other, path) for path, other in zip(also, others, strict=True)),
        *(with_flags(observed, facts.totals_after, flags, unoptimized()) for flags in also_flags),
    ]
    out.report(
        text=lambda console: print_changes(
            answer, found, rows, console, input_arguments=options.input_arguments, limit=limit
        ),
        json=lambda: {**ranking_json(found), **verdict_json(answer), "also": changes_json(rows)},
        note=loaded.note,
        heads=[head_of(observed.replay)],
    )


def _without(options: ReplayOptions, names: tuple[str, ...], confirm: bool, out: Output) -> None:
    from hlofuse.cli.common.naming import unoptimized_of
    from hlofuse.cli.common.progress import spinner
    from hlofuse.judge.judge import Judge
    from hlofuse.reports.verdict.changes import print_passes, without_passes
    from hlofuse.reports.verdict.json import changes_json
    from hlofuse.reports.whatif.json import SCHEMA

    loaded = options.read()
    if confirm and loaded.target != "cpu":
        raise HlofuseError(f"--confirm compiles with XLA:CPU; the module is for target {loaded.target}")
    observed = loaded.observe()
    with spinner("compiling without passes"), Judge() if confirm else nullcontext() as judge:
        totals, rows = without_passes(observed, [*names], unoptimized_of(observed.replay), judge)
    text, heads = partial(print_passes, totals, rows), [head_of(observed.replay)]
    json = {"schema": SCHEMA, "about": "passes", "passes": changes_json(rows)}
    out.report(text=text, json=lambda: json, note=loaded.note, heads=heads)


def _other(options: ReplayOptions, path: str) -> Observed:
    """Another program with the options of this one."""
    from dataclasses import replace

    return replace(options, input=path, module=None, ids=None, xla_trace=None).read().observe()


def _around(name: str, observed: Observed) -> Explanation:
    """What is decided about the kernels that a name means."""
    from hlofuse.cli.common.naming import final_names_of, resolver_of
    from hlofuse.reports.common.facts import Facts
    from hlofuse.reports.explain.explain import explain
    from hlofuse.reports.explain.selection import selected

    facts = Facts(observed.replay, observed.costs, final_names_of(observed.replay))
    return selected(explain(observed.replay, facts=facts), name, resolver_of(facts))


def _sweep(
    options: ReplayOptions,
    axes: dict[str, list[str]],
    more_devices: tuple[str, ...],
    plot: Path | None,
    out: Output,
) -> None:
    from hlofuse.reports.whatif.json import sweep_json
    from hlofuse.reports.whatif.sweep import sweep
    from hlofuse.reports.whatif.text import print_sweep

    loaded = options.read()
    devices = [_vary(options, loaded, None), *(_vary(options, loaded, d) for d in more_devices)]
    with progress_bar("replaying") as progress:
        found = sweep(loaded.input, devices, axes, progress=progress)
    if plot is not None:
        from hlofuse.render import format_of
        from hlofuse.reports.whatif.plot import plot_sweep

        save(plot, plot_sweep(found).to_bytes(format_of(plot)))
    out.report(
        text=lambda console: print_sweep(found, console),
        json=lambda: sweep_json(found),
        note=loaded.note,
        heads=[head_of(loaded)],
    )


def _vary(options: ReplayOptions, loaded: Loaded, device: str | None) -> Vary:
    """What makes the variants of one device; the request's own for None."""

    def vary(values: Mapping[str, str]) -> ReplayConfig:
        xla = loaded.config.xla or loaded.config if loaded.config is not None else None
        own = xla.device if xla is not None else None
        more = [f"{name}={value}" for name, value in values.items()]
        return options.config(loaded.target, device or own, loaded.release.name, more)

    return vary


def _axes(sweeps: tuple[str, ...]) -> dict[str, list[str]]:
    axes: dict[str, list[str]] = {}
    for text in sweeps:
        name, equals, values = text.partition("=")
        listed = [v.strip() for v in values.split(",")]
        if not name or not equals or not all(listed):
            raise HlofuseError(f"--sweep {text}: expected NAME=VALUE,VALUE,…")
        if name in axes:
            raise HlofuseError(f"--sweep {name} is given twice")
        axes[name] = list(dict.fromkeys(listed))
    return axes
