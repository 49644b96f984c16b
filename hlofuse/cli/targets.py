"""`hlofuse targets`: what can be replayed, and how faithfully."""

from typing import TYPE_CHECKING, Any

import click

from hlofuse.cost.gpu.device import load_device
from hlofuse.format import fields
from hlofuse.passes.base import FixedPoint, Pipeline, UnimplementedPass
from hlofuse.pipelines.targets import TARGETS, Step, Target, compilation
from hlofuse.releases import ANY, EARLIEST, NEWEST
from .common.options import flag, report_options
from .common.output import Output

if TYPE_CHECKING:
    from rich.console import Console


@click.command("targets")
@flag("--verbose", "List all passes of the compilation; those in [brackets] are not implemented.")
@report_options
def command(verbose: bool, out: Output) -> int:
    """List the backends that can be replayed: releases, passes in order, measured fidelity."""
    targets = list(TARGETS.values())
    out.report(
        text=lambda console: _print(targets, verbose, console),
        json=lambda: {"schema": "hlofuse.targets/3", "targets": [_json(t, verbose) for t in targets]},
    )
    return 0


def _compilation(target: Target) -> list[str]:
    """XLA's passes from the front end on; those of a GPU for an H100, which has nearly all."""
    tops = compilation(target.name, load_device("h100_sxm") if target.needs_device else None)
    single = [p for top in tops for p in top.flattened() if not isinstance(p, Pipeline | FixedPoint)]
    return [f"[{p.name}]" if isinstance(p, UnimplementedPass) else p.name for p in single]


def _passes(steps: tuple[Step, ...]) -> list[str]:
    return [step.text if step.span == ANY else f"{step.text} ({step.span})" for step in steps]


def _json(target: Target, verbose: bool) -> dict[str, Any]:
    return {
        **fields(target, "name title release?"),
        "passes": [s.text for s in target.steps],
        "spans": {s.text: str(s.span) for s in target.steps if s.span != ANY},
        "options": {name: [s.text for s in steps] for name, steps in target.options.items()},
        "additions": {a.name: list(a.passes) for a in target.optional_passes},
        "fidelity": target.fidelity,
        **({"compilation": _compilation(target)} if verbose else {}),
    }


def _print(targets: list[Target], verbose: bool, console: "Console") -> None:
    from rich.table import Table

    for target in targets:
        span = f"as in jaxlib {target.release}" if target.release else f"of jaxlib {EARLIEST} to {NEWEST}"
        console.print(f"{target.name}  {target.title} {span}", style="bold")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        table.add_column(no_wrap=True, style="cyan")
        table.add_column()
        table.add_row("passes", ", ".join(_passes(target.steps)))
        for name, steps in target.options.items():
            table.add_row(f"--option {name}", ", ".join(_passes(steps)))
        for a in target.optional_passes:
            table.add_row(f"--enable {a.name}", f"also {', '.join(a.passes)}: {a.title}")
        table.add_row("fidelity", target.fidelity)
        if verbose:
            table.add_row("compilation", ", ".join(_compilation(target)))
        console.print(table)
    console.print("hlofuse verify DIR compares a replay of your own dumps with XLA's result.", style="dim")
