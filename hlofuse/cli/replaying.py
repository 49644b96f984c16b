"""`hlofuse replay` and `verify`: the module as XLA's fusion passes would leave it, and against XLA's own."""

from pathlib import Path
from typing import Any

import click

from hlofuse.library.verifying import replayed_until, verify
from hlofuse.trace.recorder import to_jsonl
from .common.options import (
    FILE,
    input_argument,
    limit_option,
    module_option,
    option,
    output_option,
    replay_options,
    report_options,
    target_options,
    until_option,
    xla_flags_option,
)
from .common.output import Output, emit, save, write_file
from .common.request import TERMINAL, announce, report_on, warn

_PATH = click.Path(path_type=Path)


@click.command("replay")
@input_argument
@output_option("File to write; - for standard output.", "OUT.hlo")
@option("--trace", "T.jsonl", "Write every decision, one JSON object per line.", type=_PATH)
@option("--keep-passes", "DIR", "Write the module after each pass as DIR/NN-PASS.hlo.", type=_PATH)
@until_option
@replay_options
def replay_command(
    input: str,
    output: Path,
    trace: Path | None,
    keep_passes: Path | None,
    until: str,
    **request: Any,
) -> None:
    """Write the module in INPUT after XLA's fusion passes, or with --until end after all passes.

    From a module before optimizations the result is approximate, and its first line says so. A fused module
    is rejected, except with --until end, which continues from there."""
    done = replayed_until(report_on(input, request), until, with_texts=keep_passes is not None)
    if done.loaded.changes and not done.was_fused:
        warn(f"settings differ from XLA's: {', '.join(done.loaded.changes)}")
    announce(done.loaded, replayed=not done.was_fused)
    warn(done.note)
    if keep_passes is not None and not done.was_fused:
        keep_passes.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(done.passes, 1):
            write_file(keep_passes / f"{number:02d}-{one.name}.hlo", done.head + (one.module_text or ""))
    if trace is not None:
        save(trace, to_jsonl(done.events))
    if done.not_repeated:
        warn(f"these passes are not replayed and would change the module:  {', '.join(done.not_repeated)}")
    emit(done.text, output)


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
def verify_command(
    path: Path,
    after: Path | None,
    limit: int,
    verbose: bool,
    out: Output,
    **how: Any,
) -> int:
    """Replay modules and compare with XLA's own result.

    \b
    verify BEFORE AFTER   the module before and after the fusion passes
    verify DUMP_DIR       every module of a dump (XLA_FLAGS=--xla_dump_to)
    verify CORPUS_DIR     directories with before.hlo, NN-PASS.hlo, after.hlo

    Instructions are compared by structure, not by name. If the dumps do not show the XLA release, the report
    uses the release that agrees best. With --until end, AFTER is the module after all optimizations; kernel
    names, kernels and copies are compared. Exit status 1 if something differs."""
    answer = verify(path, after, listener=TERMINAL, **how)
    out.show(answer, limit=limit, every=verbose)
    if all(v.error is not None for v in answer.data.verdicts):
        return 2
    return 0 if answer.data.agrees else 1
