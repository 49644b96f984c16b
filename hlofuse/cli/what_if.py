"""`hlofuse what-if`: sweeps over knobs, and which rule costs most."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, limit_option, name_argument, option, report_options
from hlofuse.cli.common.output import Output, emit, rendered
from hlofuse.cli.common.request import measured_options, report_on
from hlofuse.ir.errors import HlofuseError


def _print_knobs(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from hlofuse.reports.whatif.text import print_knobs

        emit(rendered(print_knobs))
        ctx.exit()


@click.command("what-if")
@input_argument
@name_argument
@option(
    "--sweep sweeps",
    "NAME=V1,V2,…",
    "Replay with each value of a knob or device number; several sweeps make a grid.",
    completion.knobs,
    multiple=True,
)
@option("--also-device more_devices", "D", "Also sweep on this device.", completion.devices, multiple=True)
@option(
    "--also", "FILE", "Add another version of the program as a row: its dump or directory.", multiple=True
)
@option("--also-flags", "FLAGS", "Add the module compiled with these XLA flags as a row.", multiple=True)
@option(
    "--without-pass without",
    "PASS|all",
    "Compile without this XLA pass and show the difference; all: each pass that changes the module.",
    multiple=True,
)
@click.option(
    "--confirm", is_flag=True, help=("With --without-pass: confirm by compiling with XLA:CPU (needs JAX).")
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
@measured_options
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
    report = report_on(input, request)
    if without:
        if name is not None or sweeps or also or also_flags:
            raise HlofuseError("--without-pass excludes NAME, --sweep, --also and --also-flags")
        out.show(report.without_pass(*without, confirm=confirm))
        return 0
    if not sweeps:
        if more_devices:
            raise HlofuseError("--also-device needs --sweep")
        others = [report_on(path, {**request, "module": None, "ids": None}) for path in also]
        out.show(report.what_if(name, also=others, also_flags=also_flags), limit=limit)
        return 0
    if name is not None:
        raise HlofuseError("--sweep replays the whole module and takes no NAME")
    if also or also_flags:
        raise HlofuseError("--sweep excludes --also and --also-flags")
    out.show(report.what_if(sweep=_axes(sweeps), also_device=more_devices))
    return 0


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
