"""`hlofuse trace-op`: from the user's line to the kernel that runs it."""

from __future__ import annotations

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import limit_option, module_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import TERMINAL


@click.command("trace-op")
@click.argument("directory", metavar="DUMP_DIR", type=click.Path())
@click.argument("query", metavar="NAME", shell_complete=completion.names)
@limit_option(5, "Operations shown; 0 for all.")
@module_option
@report_options
def command(
    directory: str,
    query: str,
    limit: int,
    module: str | None,
    out: Output,
) -> int:
    """Follow one operation through every pass to the kernel it ends in.

    NAME is an instruction of any dump, with or without %: it is looked up in the first dump that has it, and
    followed back to where it was made as well. A source line, model.py:42, or a part of an op_name,
    jit(f)/softmax, takes every operation that has it. Instructions are matched by structure; where only their
    op_name tells, that is said.
    """
    from hlofuse.library.passes import followed

    out.show(followed(directory, query, module, TERMINAL), limit=limit)
    return 0
