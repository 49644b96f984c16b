"""What `explain` says of a module that is not the input of the fusion passes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.cli.common.progress import spinner
from hlofuse.cli.common.reporting import Output, head_of, head_of_dump
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.cli.common.replaying import ReplayOptions


def explain_stage(
    options: ReplayOptions,
    error: HlofuseError,
    out: Output,
    limit: int,
    name: str | None = None,
    details: bool = False,
) -> bool:
    """Report on a fused module as it is, or on a TPU's; False where there is nothing to say but the error.

    `name` narrows it to some kernels; `details` has what keeps each two of them apart.
    """
    from hlofuse.inputs.stage import StageError

    if options.changes_xla:
        return False
    if _explain_tpu(options, error, out, limit, name):
        return True
    if not isinstance(error, StageError) or not error.stage.is_fused:
        return False

    from hlofuse.inputs.choose_target import NO_TARGET
    from hlofuse.reports.common.names import launched_in
    from hlofuse.reports.fused.boundaries import explain_fused
    from hlofuse.reports.fused.json import fused_json
    from hlofuse.reports.fused.text import print_fused

    loaded = options.read(any_stage=True)
    if error.stage.foreign_to(loaded.target) and error.stage.backend not in NO_TARGET:
        return False
    device = loaded.config.device if loaded.config is not None else None
    identity = loaded.input.identity
    answer = found = None
    if name is None and identity is not None:
        from hlofuse.account.running import running
        from hlofuse.reports.verdict.verdict import verdict_as_it_is

        answer = verdict_as_it_is(running(loaded.module, identity, device)[0], loaded.release, device)
    better: tuple[str, ...] = ()
    if details or answer is None or out.form == "json":
        with spinner("asking the rules"):
            found = explain_fused(loaded.module, loaded.target, loaded.release, error.stage, device)
        if name is not None:
            found = found.only(name, launched_in(loaded.module, name))
        if found.right_file is not None:
            better = replace(options, input=found.right_file, module=None).input_arguments
    head = head_of(loaded, replayed=False)

    def draw(console: Console) -> None:
        from hlofuse.reports.verdict.text import print_screen

        if answer is not None:
            print_screen(answer, console, head, details=found is None)
            if found is not None:
                console.print()
        if found is not None:
            print_fused(found, console, limit=limit, better=better)

    def data() -> dict[str, Any]:
        from hlofuse.reports.verdict.json import verdict_json

        assert found is not None
        return {**fused_json(found), **(verdict_json(answer) if answer is not None else {})}

    out.report(text=draw, json=data, heads=[head], shows_heads=answer is None)
    return True


def _explain_tpu(
    options: ReplayOptions, error: HlofuseError, out: Output, limit: int, name: str | None
) -> bool:
    from hlofuse.inputs.dump_names import TPU_PIPELINES
    from hlofuse.inputs.stage import StageError
    from hlofuse.reports.tpu.model import DEVICE, compare_tpu, tpu_files

    if options.input == "-" or options.target is not None:
        return False
    files = tpu_files(Path(options.input), options.module)
    if files is None:
        return False
    if isinstance(error, StageError):
        if error.stage.backend != "tpu":
            return False
    elif not any(name in files[0].name for name in TPU_PIPELINES):
        return False
    if name is not None:
        raise HlofuseError("of a TPU's dumps explain takes no NAME: hlofuse trace-op follows one operation")
    from hlofuse.inputs import load
    from hlofuse.reports.tpu.json import tpu_json
    from hlofuse.reports.tpu.text import print_tpu

    with spinner("comparing"):
        found = compare_tpu(load(files[0]), load(files[1]), options.device or DEVICE)
    out.report(
        text=lambda console: print_tpu(found, console, limit=limit),
        json=lambda: tpu_json(found),
        heads=[head_of_dump(files[0])],
    )
    return True
