"""`hlofuse replay`: the module as XLA's fusion passes would leave it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hlofuse.cli.common.options import input_argument, output_option, until_option
from hlofuse.cli.common.output import emit, write_file
from hlofuse.cli.common.replaying import ReplayOptions, replay_options, require_end, warn
from hlofuse.cli.common.reporting import announce
from hlofuse.format.escape import printable

_PATH = click.Path(path_type=Path)


@click.command("replay")
@input_argument
@output_option("Where to write the module; - for standard output.", "OUT.hlo")
@click.option(
    "--trace", type=_PATH, metavar="T.jsonl", help="Write every decision there, one JSON object a line."
)
@click.option(
    "--keep-passes", type=_PATH, metavar="DIR", help="Write the module after each pass, as DIR/NN-PASS.hlo."
)
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
    """Write the module in INPUT as XLA's fusion passes would leave it, or with --until end all of its passes.

    Of a module before optimizations it is approximate, and the file says so in its first line. One that is
    fused already is refused.
    """
    from hlofuse.ir.text.printer import print_module
    from hlofuse.replay import ModuleTexts
    from hlofuse.trace.events import to_jsonl

    loaded = ReplayOptions(input=input, **request).read()
    if loaded.changes:
        click.echo(f"note: not XLA's behaviour: {', '.join(map(printable, loaded.changes))}", err=True)
    announce(loaded)
    warn(loaded.note)
    head = f"// {loaded.note}\n" if loaded.note else ""
    if until == "end" and loaded.config is not None:
        require_end(loaded.target, loaded.config.device)
    result = loaded.replay([ModuleTexts()] if keep_passes is not None else [])
    if keep_passes is not None:
        keep_passes.mkdir(parents=True, exist_ok=True)
        for number, done in enumerate((p for p in result.passes if p.changed), 1):
            write_file(keep_passes / f"{number:02d}-{done.name}.hlo", head + (done.module_text or ""))
    if trace is not None:
        events = [*result.events, *(result.final.events if until == "end" else ())]
        write_file(trace, to_jsonl(events))
    if until == "end" and (left := result.final.not_repeated):
        warn(f"passes that are not repeated and have work here: {', '.join(left)}")
    emit(head + print_module(result.final.module if until == "end" else result.after), output)
