"""`hlofuse upgrade`: what another release of XLA makes of the same program."""

from dataclasses import replace
from functools import cache
from typing import Any

import click

from hlofuse.cli.common.options import limit_option, option, replay_options, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import TERMINAL, options_of, warn
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.builds import upgraded


@click.command("upgrade")
@click.argument("input", metavar="INPUT", type=click.Path(allow_dash=True))
@click.argument("compiled", metavar="[COMPILED]", required=False, type=click.Path())
@option("--from old", "V", "Current jaxlib release.  [default: read from the dump]")
@option("--to new", "V", "Other jaxlib release.  [default: COMPILED's; with --from the newest]")
@replay_options
@limit_option(10, "Modules and differences shown; 0 shows all.")
@report_options
def command(
    input: str,
    compiled: str | None,
    old: str | None,
    new: str | None,
    limit: int,
    out: Output,
    **request: Any,
) -> int:
    """Replay a program's fusion as two XLA releases do it, and show which of their changes matter.

    INPUT is a dump, a dump directory or a directory of captures; modules are listed worst first. COMPILED is
    the same program dumped or captured with the other release; it adds the changes of the passes before
    fusion. Without it both replays start from the same module.

    Exit status 0: same fusions, 1: different, 2: wrong input or call.
    """

    if request.pop("xla") is not None:
        raise HlofuseError("--xla sets one release; give --from and --to")
    options = options_of(input, {**request, "xla": old})
    options = replace(options, listener=replace(TERMINAL, note=cache(warn)))
    second = replace(options, input=compiled, module=None) if compiled is not None else None
    answer = upgraded(options, new, second)
    out.show(answer, limit=limit)
    return 0 if all(f.same for f in answer.data) else 1
