"""`hlofuse verify`: our replay against XLA's own result."""

from pathlib import Path
from typing import Any

import click

from hlofuse.library.verifying import verify
from .common.options import (
    FILE,
    limit_option,
    module_option,
    option,
    report_options,
    target_options,
    until_option,
    xla_flags_option,
)
from .common.output import Output
from .common.request import TERMINAL


@click.command("verify")
@click.argument("path", metavar="BEFORE|DIR", type=FILE)
@click.argument("after", metavar="[AFTER]", required=False, type=FILE)
@module_option
@target_options
@xla_flags_option
@until_option
@option(
    "--ties",
    ["ours", "xla"],
    "Break ties between equal priorities by the replay, or as XLA's fusion log does.",
    default="ours",
)
@option("-j --jobs", "N", "Parallel processes.  [default: one per CPU]", type=click.IntRange(min=1))
@limit_option(10, "Differences shown; 0 shows all.")
@click.option("-v", "--verbose", is_flag=True, help="Also list the modules that agree.")
@report_options
def command(
    path: Path,
    after: Path | None,
    limit: int,
    verbose: bool,
    out: Output,
    **how: Any,
) -> int:
    """Replay modules and compare with XLA's own result.

    \b verify BEFORE AFTER   the module before and after the fusion passes verify DUMP_DIR       every module
    of a directory written by XLA_FLAGS=--xla_dump_to verify CORPUS_DIR     directories with before.hlo,
    NN-PASS.hlo, after.hlo

    Instructions are compared by structure, not by name. If the dumps do not show the XLA release, the report
    uses the release that agrees best. With --until end, AFTER is the module after all optimizations; kernel
    names, kernels and copies are compared. Exit status 1 if something differs."""
    answer = verify(path, after, listener=TERMINAL, **how)
    out.show(answer, limit=limit, every=verbose)
    if all(v.error is not None for v in answer.data.verdicts):
        return 2
    return 0 if answer.data.agrees else 1
