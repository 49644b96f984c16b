"""`hlofuse replay`: the module as XLA's fusion passes would leave it."""

from __future__ import annotations

from pathlib import Path

import click

from hlofuse.cli.options import input_argument, module_option, target_options
from hlofuse.cli.rules_option import banner, rules_option, settings_of

_PATH = click.Path(path_type=Path)


@click.command("replay")
@input_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=_PATH,
    metavar="OUT.hlo",
    help="Where to write the module; - for standard output.",
)
@click.option(
    "--trace", type=_PATH, metavar="T.jsonl", help="Write every decision there, one JSON object a line."
)
@target_options
@click.option(
    "--ids",
    metavar="FILE|none",
    help="Unique ids of the instructions (.hlo.pb); taken from beside the input unless said.",
)
@click.option("--option", metavar="NAME", help="A variant of the target's passes (hlofuse targets).")
@module_option
@click.option(
    "--keep-passes", type=_PATH, metavar="DIR", help="Write the module after each pass, as DIR/NN-PASS.hlo."
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="NAME=VALUE",
    help="What if this knob, or number of the device, had another value?",
)
@click.option("--disable", multiple=True, metavar="CODE", help="What if this rule did not exist?")
@rules_option
def command(
    input: str,
    output: Path,
    trace: Path | None,
    target: str,
    device: str | None,
    assume_input: bool,
    ids: str | None,
    option: str | None,
    module: str | None,
    keep_passes: Path | None,
    overrides: tuple[str, ...],
    disable: tuple[str, ...],
    rules: tuple[str, ...],
) -> None:
    """Write the module in INPUT as XLA's fusion passes would leave it."""
    from hlofuse.cli.output import emit, write_file
    from hlofuse.cli.progress import spinner
    from hlofuse.inputs import StageError, load, require_input_stage
    from hlofuse.inputs.unique_ids import unique_ids_for
    from hlofuse.ir.printer import print_module
    from hlofuse.pipelines import device_of, passes_of, replay
    from hlofuse.trace.jsonl import to_jsonl

    # What is wrong with the call is said before anything is read.
    passes_of(target, option)
    description, overrides = device_of(target, device, overrides)
    settings = settings_of(overrides, disable, rules)
    with spinner("reading"):
        before = load(input, module, target=target)
    if not assume_input:
        try:
            require_input_stage(before, target)
        except StageError as e:
            # Nothing is claimed about the module here, so it is repeated as asked, with a word of warning.
            click.echo(f"warning: {e.problem}\nReplayed all the same.", err=True)
    with spinner("replaying"):
        result = replay(
            before,
            target,
            device=description,
            option=option,
            keep_modules=keep_passes is not None,
            settings=settings,
            ids=unique_ids_for(before, ids),
        )
    if rules:
        click.echo(banner(rules), err=True)
    if keep_passes is not None:
        keep_passes.mkdir(parents=True, exist_ok=True)
        for number, done in enumerate((p for p in result.passes if p.changed), 1):
            write_file(keep_passes / f"{number:02d}-{done.name}.hlo", done.module_text or "")
    if trace is not None:
        write_file(trace, to_jsonl(result.events))
    emit(print_module(result.after), output)
