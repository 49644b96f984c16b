"""`hlofuse replay`: the module as XLA's fusion passes would leave it."""

from pathlib import Path
from typing import Any

import click

from hlofuse.cli.common.options import input_argument, output_option, until_option
from hlofuse.cli.common.output import emit, save, write_file
from hlofuse.cli.common.request import announce, options_of, replay_options, warn
from hlofuse.library.options import ReplayOptions, require_end

_PATH = click.Path(path_type=Path)


@click.command("replay")
@input_argument
@output_option("File to write; - for standard output.", "OUT.hlo")
@click.option(
    "--trace", type=_PATH, metavar="T.jsonl", help="Write every decision, one JSON object per line."
)
@click.option(
    "--keep-passes", type=_PATH, metavar="DIR", help="Write the module after each pass as DIR/NN-PASS.hlo."
)
@until_option
@replay_options
def command(
    input: str, output: Path, trace: Path | None, keep_passes: Path | None, until: str, **request: Any
) -> None:
    """Write the module in INPUT after XLA's fusion passes, or with --until end after all passes.

    From a module before optimizations the result is approximate, and its first line says so. A fused module
    is rejected, except with --until end, which continues from there.
    """
    from hlofuse.inputs.stage import FUSED, StageError
    from hlofuse.ir.text.printer import print_module
    from hlofuse.replay import ModuleTexts
    from hlofuse.trace.events import to_jsonl

    options = options_of(input, request)
    try:
        loaded = options.read()
    except StageError as error:
        if until != "end" or error.stage.name != FUSED:
            raise
        _finish(options, output, trace)
        return
    if loaded.changes:
        warn(f"settings differ from XLA's: {', '.join(loaded.changes)}")
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
        save(trace, to_jsonl(events))
    if until == "end" and (left := result.final.not_repeated):
        warn(f"these passes are not replayed and would change the module:  {', '.join(left)}")
    emit(head + print_module(result.final.module if until == "end" else result.after), output)


def _finish(options: ReplayOptions, output: Path, trace: Path | None) -> None:
    """Write what becomes of a module that is fused."""
    from hlofuse.inputs.ordered import in_creation_order
    from hlofuse.inputs.stage import stage_of
    from hlofuse.inputs.wire_format import unique_ids_for
    from hlofuse.ir.errors import HlofuseError
    from hlofuse.ir.text.printer import print_module
    from hlofuse.pipelines import NEEDS_DEVICE, TARGETS
    from hlofuse.pipelines.manager import finish
    from hlofuse.trace.events import to_jsonl

    loaded = options.read(any_stage=True)
    warn(loaded.device_note)
    if loaded.config is None:
        raise HlofuseError(f"target {loaded.target} {NEEDS_DEVICE}")
    if stage_of(loaded.module, loaded.target).foreign_to(loaded.target):
        raise HlofuseError(
            f"the module was compiled for another backend than target {loaded.target}; give --target"
        )
    build = loaded.config.build
    require_end(loaded.target, build.device)
    announce(loaded, replayed=False)
    ids = unique_ids_for(loaded.module, options.ids)
    if ids is None and TARGETS[loaded.target].has_history:
        warn("without XLA's ids (.hlo.pb), fusions of one kind may swap the numbers in their names")
    in_creation_order(loaded.module, ids)
    final = finish(loaded.module, loaded.target, build.device, flags=build.flags)
    if trace is not None:
        save(trace, to_jsonl(final.events))
    if final.not_repeated:
        warn(f"these passes are not replayed and would change the module:  {', '.join(final.not_repeated)}")
    emit(print_module(final.module), output)
