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
    from hlofuse.inputs import require_input_stage
    from hlofuse.inputs.stage import FUSED, SCHEDULED, stage_of
    from hlofuse.pipelines import device_of

    subject = asked.read(any_stage=True)
    module, target = subject.module, subject.target
    device = subject.variant.device if subject.variant is not None else device_of(target, None)[0]
    stage = stage_of(module, target)
    foreign = stage.platform is not None and not target.startswith(stage.platform)
    if not (asked.assume_input or asked.changes_xla or foreign) and stage.name in (FUSED, SCHEDULED):
        return kernel_selection(module, target, device=device)
    if not asked.assume_input:
        require_input_stage(module, target)
    return kernel_selection(
        subject.observe().replay.after,
        target,
        device=device,
        replayed=True,
        what_if=subject.changes,
        file=module.filename,
    )
