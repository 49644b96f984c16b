"""What `explain` says of a module that is not the input of the fusion passes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from hlofuse.cli.replaying import ReplayRequest
    from hlofuse.explainer.costs import Observed
    from hlofuse.ir.errors import HlofuseError


def explain_stage(asked: ReplayRequest, error: HlofuseError, how: Mapping[str, Any], limit: int) -> bool:
    """Report on a fused module as it is, or on a TPU's; False where there is nothing to say but the error.

    `how` are the options of the report: its form, color and output.
    """
    from hlofuse.inputs.stage import StageError

    if asked.changes_xla:
        return False
    if _explain_tpu(asked, error, how, limit):
        return True
    if not isinstance(error, StageError) or not error.stage.is_fused:
        return False
    from hlofuse.cli.progress import spinner
    from hlofuse.cli.reporting import report
    from hlofuse.stages.fused import explain_fused
    from hlofuse.stages.fused_report import fused_json, fused_markdown, print_fused

    subject = asked.read(any_stage=True)
    if error.stage.foreign_to(subject.target):
        return False
    device = subject.variant.device if subject.variant is not None else None
    with spinner("asking the rules"):
        found = explain_fused(subject.module, subject.target, error.stage, device)
    report(
        **how,
        text=lambda console: print_fused(found, console, limit=limit),
        markdown=lambda: fused_markdown(found, limit=limit),
        json=lambda: fused_json(found),
    )
    return True


def approximate(asked: ReplayRequest, error: HlofuseError) -> tuple[Observed, str] | None:
    """A replay from a module before optimizations, and what is to be said of it.

    None for other stages and platforms, and where the dump ahead of fusion lies beside it: that is better.
    """
    from dataclasses import replace

    from hlofuse.inputs.dump_stages import FUSION_STAGES
    from hlofuse.inputs.stage import BEFORE, StageError
    from hlofuse.stages.unoptimized import EXACT_WAY, simplified, what_it_is

    if not isinstance(error, StageError) or error.stage.name != BEFORE or error.stage.right_file is not None:
        return None
    subject = asked.read(any_stage=True)
    if subject.variant is None or error.stage.foreign_to(subject.target):
        return None
    device = subject.variant.device
    module = simplified(subject.module, subject.target, device)
    rough = replace(subject, module=module, ids=None, record_path=None, record=None)
    flags = FUSION_STAGES[subject.target].flags
    return rough.observe(), f"{what_it_is(subject.target, device)} {EXACT_WAY.format(flags=flags)}"


def remarked(
    remark: str,
    *,
    text: Callable[[Console], None],
    markdown: Callable[[], str],
    json: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """The three forms of a report, headed by a remark; as they are where there is none."""
    if not remark:
        return {"text": text, "markdown": markdown, "json": json}
    from hlofuse.present import escape

    def draw(console: Console) -> None:
        console.print(f"{remark}\n", style="bold yellow")
        text(console)

    return {
        "text": draw,
        "markdown": lambda: f"> **{escape.markdown(remark)}**\n\n{markdown()}",
        "json": lambda: {"approximate": remark, **json()},
    }


def _explain_tpu(asked: ReplayRequest, error: HlofuseError, how: Mapping[str, Any], limit: int) -> bool:
    from hlofuse.inputs.dump_stages import TPU_PIPELINES
    from hlofuse.inputs.stage import StageError
    from hlofuse.stages.tpu import DEVICE, compare_tpu, tpu_files

    if asked.input == "-" or asked.target is not None:
        return False
    files = tpu_files(Path(asked.input), asked.module)
    if files is None:
        return False
    if isinstance(error, StageError):
        if error.stage.platform != "tpu":
            return False
    elif not any(name in files[0].name for name in TPU_PIPELINES):
        return False
    from hlofuse.cli.progress import spinner
    from hlofuse.cli.reporting import report
    from hlofuse.inputs import load
    from hlofuse.stages.tpu_report import print_tpu, tpu_json, tpu_markdown

    with spinner("comparing"):
        found = compare_tpu(load(files[0]), load(files[1]), asked.device or DEVICE)
    report(
        **how,
        text=lambda console: print_tpu(found, console, limit=limit),
        markdown=lambda: tpu_markdown(found, limit=limit),
        json=lambda: tpu_json(found),
    )
    return True
