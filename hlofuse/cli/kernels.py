"""`hlofuse kernels`: who runs each kernel that fusion leaves, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.options import input_argument, report_options
from hlofuse.cli.replaying import ReplayRequest, replay_options

if TYPE_CHECKING:
    from hlofuse.explainer.kernels import KernelSelection


@click.command("kernels")
@input_argument
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Kernels shown; 0 for all.",
)
@click.option(
    "--order",
    type=click.Choice(["cost", "module"]),
    default="cost",
    show_default=True,
    help="Dearest kernels first, or as they stand in the module.",
)
@replay_options
@report_options
def command(
    input: str,
    limit: int,
    order: str,
    form: str,
    color: str,
    output: Path | None,
    **request: Any,
) -> int:
    """Tell who runs each kernel that fusion leaves in INPUT, by which rule, and how it is launched.

    A module from before fusion is replayed first; one that is fused already, or optimised to the end, is
    taken as it is.
    """
    from hlofuse.cli.output import emit, rendered

    found = _selection(ReplayRequest(input=input, **request))
    ordered = found.heaviest_first if order == "cost" else list(found.kernels)
    shown = ordered[: limit or None]
    if form == "json":
        import json

        from hlofuse.explainer.kernels.json_report import selection_json

        emit(json.dumps(selection_json(found), indent=2), output)
    elif form == "markdown":
        from hlofuse.explainer.kernels.markdown import selection_markdown

        emit(selection_markdown(found, shown), output)
    else:
        from hlofuse.explainer.kernels.text import print_selection

        emit(rendered(lambda console: print_selection(found, shown, console), color, output), output)
    return 0


def _selection(asked: ReplayRequest) -> KernelSelection:
    from hlofuse.explainer.kernels import kernel_selection
    from hlofuse.inputs.stage import FUSED, SCHEDULED, stage_of

    loaded = asked.load()
    stage = stage_of(loaded.module, asked.target)
    foreign = stage.platform is not None and not asked.target.startswith(stage.platform)
    if stage.name in (FUSED, SCHEDULED) and not foreign and not asked.assume_input and not asked.what_if:
        return kernel_selection(loaded.module, asked.target, device=loaded.device)
    observed = asked.run(loaded)
    return kernel_selection(
        observed.replay.after,
        asked.target,
        device=loaded.device,
        replayed=True,
        what_if=asked.what_if,
        file=loaded.module.filename,
    )
