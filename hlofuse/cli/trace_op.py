"""`hlofuse trace-op`: from the user's line to the kernel that runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import limit_option, module_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.progress import spinner
from hlofuse.cli.common.reporting import head_of_dump
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from hlofuse.reports.timeline.dumps import DumpSequence


@click.command("trace-op")
@click.argument("directory", metavar="DUMP_DIR", type=click.Path())
@click.argument("query", metavar="NAME", shell_complete=completion.names)
@limit_option(5, "Operations shown; 0 shows all.")
@module_option
@report_options
def command(
    directory: str,
    query: str,
    limit: int,
    module: str | None,
    out: Output,
) -> int:
    """Follow one operation through every pass to its final kernel.

    NAME is an instruction of any dump, with or without %; it is looked up in the first dump that has it and
    followed in both directions. A source line, model.py:42, or part of an op_name,
    jit(f)/softmax, selects every operation that has it. Instructions are matched by structure; a match by
    op_name alone is marked.
    """
    from hlofuse.inputs.dump_directory import far_largest, is_corpus_case
    from hlofuse.reports.timeline import dump_sequences
    from hlofuse.reports.trace_op import follow
    from hlofuse.reports.trace_op.json import provenance_json
    from hlofuse.reports.trace_op.text import print_provenance

    found = dump_sequences(directory, module)
    sequence = far_largest(found, lambda r: r.size)
    if sequence is None:
        ranked = sorted(found, key=lambda r: -r.size)
        listed = "\n".join(f"  {printable(r.label)}" for r in ranked[:12])
        raise HlofuseError(
            f"{printable(directory)} has {len(found)} modules; select one with --module:\n{listed}"
            + ("\n  …" if len(ranked) > 12 else "")
        )
    if is_corpus_case(Path(directory)):
        sequence = _whole(sequence, directory)
    with spinner("following"):
        provenance = follow(sequence, query)
    out.report(
        text=lambda console: print_provenance(provenance, console, limit=limit),
        json=lambda: provenance_json(provenance),
        heads=[head_of_dump(sequence.dumps[0].path)],
    )
    return 0


def _whole(sequence: DumpSequence, folder: str) -> DumpSequence:
    """A capture folder's dumps and what lies around them, for the device that it was captured for."""
    from hlofuse.cli.common.replaying import ReplayOptions
    from hlofuse.reports.trace_op.replayed import with_replayed_passes

    try:
        loaded = ReplayOptions(folder).read(any_stage=True)
    except HlofuseError:
        return sequence
    config = loaded.config
    device, flags = (config.device, config.build.flags) if config is not None else (None, ())
    with spinner("replaying the passes around fusion"):
        return with_replayed_passes(sequence, loaded.target, device, flags)
