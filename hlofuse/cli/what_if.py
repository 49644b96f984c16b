"""`hlofuse what-if`: changes ranked by what they save, sweeps over knobs, passes left out."""

import click

from .common.output import emit, rendered
from .common.questions import command_of


def _print_knobs(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from hlofuse.reports.whatif.text import print_knobs

        emit(rendered(print_knobs))
        ctx.exit()


command = command_of(
    "what-if",
    click.option(
        "--knobs",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_knobs,
        help="List the names for --set and --sweep with XLA's values.",
    ),
)
