"""`hlofuse verify`: our replay against XLA's own result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.options import (
    limit_option,
    module_option,
    report_options,
    target_options,
    until_option,
    xla_flags_option,
)
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.progress import progress_bar
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.options import require_end
from hlofuse.pipelines import NEEDS_DEVICE, TARGETS, device_of, passes_of
from hlofuse.pipelines.flags import merged, parse_flags
from hlofuse.pipelines.targets import target_by_flags
from hlofuse.releases import release_of
from hlofuse.replay.config import release_for

if TYPE_CHECKING:
    from hlofuse.reports.verify import Case, Until


@click.command("verify")
@click.argument("path", metavar="BEFORE|DIR", type=click.Path(path_type=Path))
@click.argument("after", metavar="[AFTER]", required=False, type=click.Path(path_type=Path))
@module_option
@target_options
@xla_flags_option
@until_option
@click.option(
    "--ties",
    type=click.Choice(["ours", "xla"]),
    default="ours",
    show_default=True,
    help="Break ties between equal priorities by the replay, or as XLA's fusion log does.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help=("Parallel processes.  [default: one per CPU]"),
)
@limit_option(10, "Differences shown; 0 shows all.")
@click.option("-v", "--verbose", is_flag=True, help="Also list the modules that agree.")
@report_options
def command(
    path: Path,
    after: Path | None,
    module: str | None,
    target: str | None,
    xla_flags: str | None,
    ties: str,
    jobs: int | None,
    limit: int,
    verbose: bool,
    out: Output,
    **how: Any,
) -> int:
    """Replay modules and compare with XLA's own result.

    \b
    verify BEFORE AFTER   the module before and after the fusion passes
    verify DUMP_DIR       every module of a directory written by XLA_FLAGS=--xla_dump_to
    verify CORPUS_DIR     directories with before.hlo, NN-PASS.hlo, after.hlo

    Instructions are compared by structure, not by name. If the dumps do not show the XLA release, the
    report uses the release that agrees best. With --until end, AFTER is the module after all
    optimizations; kernel names, kernels and copies are compared. Exit status 1 if
    something differs.
    """
    from hlofuse.inputs.choose_target import choose_target, target_of_files
    from hlofuse.inputs.companions import recorded_device
    from hlofuse.reports.verify import verify
    from hlofuse.reports.verify.json import report_json
    from hlofuse.reports.verify.text import print_report

    device, xla, option, until = (how[name] for name in ("device", "xla", "option", "until"))
    if target is None:  # what the dumps were made by counts more than what they are asked about
        chosen = target_of_files(path, module) or choose_target(path, module, device=device is not None)
        target = chosen.name
    # What is wrong with the call is reported before anything is read.
    passes_of(target, release_of(release_for(target, xla)), option)
    if device is not None:
        device_of(target, device)
    if how["ids"] is not None and after is None:
        raise HlofuseError("--ids FILE needs BEFORE AFTER; for a directory give --order xla")
    if until == "end":
        require_end(target, device_of(target, device)[0] if device is not None else None)
    cases, skipped = _cases(path, after, target, option, module, until)
    flags = parse_flags(xla_flags) if xla_flags is not None else ()
    by_flags = _target_by_flags(target, cases, flags, xla if xla != "auto" else None)
    if by_flags != target:
        target = by_flags
        cases, skipped = _cases(path, after, target, option, module, until)
    has_device = device is not None or not TARGETS[target].needs_device
    if not has_device and not any(recorded_device(str(c.before)) for c in cases):
        raise HlofuseError(f"target {target} {NEEDS_DEVICE}")
    workers = jobs or (os.cpu_count() or 1)
    if len(cases) < 8 and jobs is None:
        workers = 1  # starting processes would take longer
    with progress_bar("verifying") as progress:
        found = verify(
            cases,
            target=target,
            ties_from_record=ties == "xla",
            flags=flags,
            jobs=workers,
            skipped=skipped,
            progress=progress,
            **how,
        )
    if after is not None and found.verdicts[0].error is not None:
        raise HlofuseError(found.verdicts[0].error)
    out.report(
        text=lambda console: print_report(found, console, limit=limit, every=verbose),
        json=lambda: report_json(found),
        heads=[v.head for v in found.verdicts],
    )
    if all(v.error is not None for v in found.verdicts):
        return 2
    return 0 if found.agrees else 1


def _target_by_flags(target: str, cases: list[Case], flags: tuple[str, ...], xla: str | None) -> str:
    """The target whose passes the flags of the call and of a capture choose, in the release that it says."""
    from hlofuse.inputs.companions import flags_of, stamp_of

    before = str(cases[0].before)
    stamp = stamp_of(before)
    version = xla or (stamp.jaxlib if stamp is not None else None)
    if not version:
        return target
    return target_by_flags(target, release_for(target, version), merged(flags_of(before), flags))


def _cases(
    path: Path, after: Path | None, target: str, option: str | None, module: str | None, until: Until
) -> tuple[list[Case], list[str]]:
    """What is compared with what, and what of a directory cannot be."""
    from hlofuse.reports.verify import Case, find_cases

    if after is not None:
        if module is not None:
            raise HlofuseError("--module needs a directory, and two files were given")
        if folder := next((p for p in (path, after) if p.is_dir()), None):
            raise HlofuseError(f"{folder} is a directory; give hlofuse verify {folder}, or two files")
        return [Case(path.name, path, after)], []
    if path.is_dir():
        return find_cases(path, target=target, option=option, module=module, until=until)
    if path.exists():
        raise HlofuseError(f"{path}: no result to compare with; give hlofuse verify BEFORE AFTER")
    raise HlofuseError(f"{path} does not exist")
