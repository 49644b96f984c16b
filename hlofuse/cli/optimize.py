"""`hlofuse optimize`: a better order of passes, XLA flags or fusion plan, measured in what runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hlofuse.cli.common.options import (
    input_argument,
    module_option,
    option,
    profile_option,
    report_options,
    stage_options,
    target_options,
)
from hlofuse.cli.common.output import Output, emit
from hlofuse.cli.common.request import report_on

_METHODS = ("greedy", "beam", "random", "evolve", "mcts", "policy")
_OBJECTIVES = ("time", "measured-time", "kernels", "bytes", "ops", "peak-memory")
_SEARCH = ("space", "objective", "method", "seconds", "tries", "seed", "policy")


@click.command("optimize")
@input_argument
@click.option("--passes", metavar="A,B,…", help="Measure these passes and flags instead of searching.")
@option("--search method", _METHODS, "How.", default="evolve")
@option(
    "--space",
    ["passes", "flags", "all", "fusion"],
    "What to change: passes run before XLA's own, XLA_FLAGS that skip passes, both, or fusion decisions.",
    default="all",
)
@option(
    "--objective",
    _OBJECTIVES,
    (
        "What to minimize in the final module; ops counts before XLA's own passes.  [default: measured-time"
        " with a device and a profile, time with a device, else kernels]"
    ),
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="Seconds to search.",
)
@click.option("--tries", type=click.IntRange(min=1), help="Maximum number of sequences to try.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--policy", metavar="FILE", help="Policy file for --search policy (hlofuse.gym).")
@click.option("--write", metavar="OUT.hlo", type=click.Path(path_type=Path), help="Write the best module.")
@report_options
@profile_option
@module_option
@target_options
@stage_options
def command(input: str, passes: str | None, write: Path | None, out: Output, **request: Any) -> int:
    """Search for passes, flags or fusion decisions that make the module in INPUT faster than XLA's defaults.

    Every candidate is replayed to the final kernels and measured there: kernels, bytes, time with lower
    bounds for library calls. The result has no superfluous move. It is XLA's default if nothing
    is better.
    """
    how = {name: request.pop(name) for name in _SEARCH}
    moves = [p.strip() for p in passes.split(",")] if passes is not None else None
    found = report_on(input, request).optimize(passes=moves, **how)
    if write is not None:
        from hlofuse.ir.text.printer import print_module

        emit(print_module(found.data.module), write)
    out.show(found)
    return 0
