"""`hlofuse replay`: the module as XLA's fusion passes would leave it."""

from pathlib import Path
from typing import Any

import click

from hlofuse.library.writing import replayed_until
from hlofuse.trace.recorder import to_jsonl
from .common.options import input_argument, option, output_option, replay_options, until_option
from .common.output import emit, save, write_file
from .common.request import announce, report_on, warn

_PATH = click.Path(path_type=Path)


@click.command("replay")
@input_argument
@output_option("File to write; - for standard output.", "OUT.hlo")
@option("--trace", "T.jsonl", "Write every decision, one JSON object per line.", type=_PATH)
@option("--keep-passes", "DIR", "Write the module after each pass as DIR/NN-PASS.hlo.", type=_PATH)
@until_option
@replay_options
def command(
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
