"""What `explain` says of a module that is not the input of the fusion passes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlofuse.cli.replaying import ReplayRequest
    from hlofuse.inputs.stage import StageError


def explain_stage(
    asked: ReplayRequest, error: StageError, limit: int, form: str, color: str, output: Path | None
) -> bool:
    """Report on a fused module as it is; False where there is nothing to be said but the error."""
    from hlofuse.inputs.stage import FUSED, SCHEDULED

    stage = error.stage
    if stage.name not in (FUSED, SCHEDULED) or asked.changes_xla:
        return False
    from hlofuse.cli.progress import spinner
    from hlofuse.cli.reporting import report
    from hlofuse.stages.fused import explain_fused
    from hlofuse.stages.fused_report import fused_json, fused_markdown, print_fused

    subject = asked.read(any_stage=True)
    foreign = stage.platform is not None and not subject.target.startswith(stage.platform)
    if foreign or subject.target not in ("cpu", "gpu"):
        return False
    device = subject.variant.device if subject.variant is not None else None
    with spinner("asking the rules"):
        found = explain_fused(subject.module, subject.target, stage, device)
    report(
        form,
        color,
        output,
        text=lambda console: print_fused(found, console, limit=limit),
        markdown=lambda: fused_markdown(found, limit=limit),
        json=lambda: fused_json(found),
    )
    return True
