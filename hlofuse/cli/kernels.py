"""`hlofuse kernels`: who runs each kernel that fusion leaves, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.options import input_argument, limit_option, name_argument, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.replaying import ReplayOptions, replay_options
from hlofuse.cli.common.reporting import head_of
from hlofuse.pipelines import device_of

if TYPE_CHECKING:
    from hlofuse.cli.common.reporting import ReportedModule
    from hlofuse.reports.common.final_names import FinalNames
    from hlofuse.reports.difference.model import Difference
    from hlofuse.reports.kernels import KernelSelection


@click.command("kernels")
@input_argument
@name_argument
@limit_option(20, "Kernels shown; 0 shows all.")
@click.option(
    "--sort",
    type=click.Choice(["cost", "module"]),
    default="cost",
    show_default=True,
    help="Slowest kernels first, or in the order of the module.",
)
@replay_options
@report_options
def command(
    input: str,
    name: str | None,
    limit: int,
    sort: str,
    out: Output,
    **request: Any,
) -> int:
    """List the kernels of INPUT after fusion: who generates each, by which rule, and its launch dimensions.

    A module before fusion is replayed first; a fused or fully optimized one is
    taken as it is. NAME selects kernels: a final name (as in a profiler), a name at the
    fusion input or before optimizations, a source line, model.py:42, or part of an op_name, jit(f)/softmax.
    """
    from hlofuse.reports.kernels.json import selection_json
    from hlofuse.reports.kernels.text import print_selection

    found, names, difference, reported = _selection(ReplayOptions(input=input, **request), name)
    ordered = found.heaviest_first if sort == "cost" else list(found.kernels)
    shown = ordered[: limit or None]
    out.report(
        text=lambda console: print_selection(found, shown, console),
        json=lambda: selection_json(found),
        note=reported.input.note,
        heads=[head_of(reported, replayed=found.replayed, names=names)],
        differences=[difference] if difference is not None else [],
        limit=limit,
    )
    return 0


def _selection(
    options: ReplayOptions,
    name: str | None,
) -> tuple[KernelSelection, FinalNames | None, Difference | None, ReportedModule]:
    from hlofuse.cli.common.naming import final_names_of, resolver_of, with_events
    from hlofuse.inputs.stage import stage_of
    from hlofuse.reports.common.facts import Facts
    from hlofuse.reports.common.final_names import LaunchedNames
    from hlofuse.reports.common.names import launched_in
    from hlofuse.reports.difference.model import difference_of
    from hlofuse.reports.kernels import kernel_selection

    loaded = options.read(any_stage=True)
    module, target = loaded.module, loaded.target
    device = loaded.config.device if loaded.config is not None else device_of(target, None)[0]
    stage = stage_of(module, target)
    as_it_is = stage.is_fused and not stage.foreign_to(target)
    if as_it_is and not options.takes_any_stage:
        found = kernel_selection(module, target, loaded.release, device=device)
        if name is not None:
            found = found.only(name, launched_in(module, name))
        return found, None, None, loaded
    observed = options.at_fusion_input(loaded).observe()
    replay = observed.replay
    with_events(replay)
    names = final_names_of(replay)
    found = kernel_selection(
        replay.final.module,
        target,
        replay.config.release,
        device=device,
        replay=replay,
        what_if=observed.changes,
        names=LaunchedNames(replay, names),
    )
    if name is not None:
        found = found.only(name, resolver_of(Facts(replay, observed.costs, names)).launched(name))
    return found, names, difference_of(observed), replay
