"""`hlofuse trace-op`: from the user's line to the kernel that runs it."""

from __future__ import annotations

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import limit_option, module_option, profile_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import TERMINAL


@click.command("trace-op")
@click.argument("directory", metavar="DUMP_DIR", type=click.Path())
@click.argument("query", metavar="NAME", shell_complete=completion.names)
@limit_option(5, "Operations shown; 0 shows all.")
@module_option
@profile_option
@report_options
def command(
    directory: str, query: str, module: str | None, profile: str | None, out: Output, limit: int
) -> int:
    """Follow one operation through every pass to its final kernel.

    NAME is an instruction of any dump, with or without %; it is looked up in the first dump that has it and
    followed in both directions. A source line, model.py:42, or part of an op_name,
    jit(f)/softmax, selects every operation that has it. Instructions are matched by structure; a match by
    op_name alone is marked.
    """
    from hlofuse.library.passes import followed

    out.show(followed(directory, query, module, TERMINAL, profile), limit=limit)
    return 0
