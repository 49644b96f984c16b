"""Options that commands share, so that they are called the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.output import Output

F = TypeVar("F", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[F], F]

FORMATS = ("text", "json", "markdown")


def stacked(*options: Decorator[Any]) -> Decorator[F]:
    """The options as one decorator, in the order of `--help`."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


input_argument = click.argument("input", metavar="INPUT", type=click.Path(allow_dash=True))
"""`INPUT`: a file, a directory or `-`; a path to the shell's completion."""


name_argument = click.argument("name", metavar="[NAME]", required=False, shell_complete=completion.names)
"""`[NAME]`: any name of kernels that the report is narrowed to."""


def limit_option(default: int, meaning: str) -> Callable[[F], F]:
    """`--limit N`: how many entries of a list are shown; `meaning` say of which, and what 0 means."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="N",
        help=meaning,
    )


until_option = click.option(
    "--until",
    type=click.Choice(["fusion", "end"]),
    default="fusion",
    show_default=True,
    help="Where the replay ends: after the fusion passes, or with the kernels that are launched.",
)
"""`--until fusion|end`: where a replay ends."""


module_option = click.option(
    "--module",
    metavar="NAME",
    shell_complete=completion.modules,
    help="The module to take from a dump directory or file.",
)
"""`--module NAME`: which module of a dump directory."""


profile_option = click.option(
    "--profile",
    metavar="PATH",
    type=click.Path(),
    help="Measured time from a profile: *.xplane.pb or its folder, *.trace.json.gz, an export of nsys.",
)
"""`--profile`: the module's kernels have their times in this profile."""


target_options = stacked(
    click.option(
        "--target",
        metavar="T",
        shell_complete=completion.targets,
        help="What XLA compiles for (hlofuse targets).  [default: gpu with --device, else what the dump says,"
        " else cpu]",
    ),
    click.option(
        "--xla",
        metavar="V|auto",
        shell_complete=completion.releases,
        help="The XLA to repeat, as a release of jaxlib.  [default: auto, what the dump says]",
    ),
    click.option(
        "--device",
        metavar="D",
        shell_complete=completion.devices,
        help="The device, a name or a file (hlofuse devices); taken from the dump unless said.",
    ),
    click.option(
        "--option",
        metavar="NAME",
        shell_complete=completion.option_names,
        help="A variant of the target's passes (hlofuse targets).",
    ),
    click.option(
        "--order",
        type=click.Choice(["xla", "replayed", "estimated", "text"]),
        help="Source of the order of instructions: XLA's ids, its earlier passes repeated, an"
        " estimate, or the text.  [default: the best there is]",
    ),
    click.option(
        "--ids",
        metavar="FILE",
        help="XLA's unique ids of the instructions (.hlo.pb); default: the file beside the input.",
    ),
)
"""`--target`, `--xla`, `--device`, `--option`, `--order`, `--ids`: what is replayed, as XLA does it."""


xla_flags_option = click.option(
    "--xla-flags",
    metavar="FLAGS",
    help="XLA flags the module was compiled with, as in XLA_FLAGS.  [default: read from the dump]",
)
"""`--xla-flags`."""


stage_options = stacked(
    click.option(
        "--stage",
        type=click.Choice(["before-optimizations", "fusion-input", "after-fusion", "scheduled"]),
        help="Where in the compilation the module stands.  [default: read from the module]",
    ),
    xla_flags_option,
    click.option(
        "--assume-input",
        is_flag=True,
        help="The same as --stage fusion-input: replay the fusion passes whatever the module looks like.",
    ),
)
"""`--stage`, and `--assume-input` for the commonest of them."""


what_if_options = stacked(
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="NAME=VALUE",
        shell_complete=completion.knobs,
        help="What if this knob, or number of the device, had another value?  (hlofuse what-if --knobs)",
    ),
    click.option(
        "--disable",
        multiple=True,
        metavar="CODE",
        shell_complete=completion.rules,
        help="What if this rule did not exist?",
    ),
    click.option(
        "--enable",
        multiple=True,
        metavar="NAME",
        shell_complete=completion.optional_passes,
        help="What if XLA ran this pass, or asked this rule, that it leaves out (hlofuse targets)?",
    ),
    click.option(
        "--rules",
        multiple=True,
        metavar="NAME|all",
        help="What if the rules of an installed package took part (hlofuse rule lists them)?",
    ),
    click.option(
        "--passes",
        metavar="LIST",
        shell_complete=completion.passes,
        help="What if these passes ran? Separated by commas; fixpoint(A, B) repeats until nothing changes.",
    ),
)
"""`--set`, `--disable`, `--enable`, `--rules`, `--passes`: what is to be other than in XLA."""


def output_option(meaning: str, metavar: str = "FILE") -> Callable[[F], F]:
    """`-o`: where the result goes, of a command that must be told."""
    return click.option(
        "-o", "--output", required=True, type=click.Path(path_type=Path), metavar=metavar, help=meaning
    )


def report_options(command: Callable[..., Any]) -> Any:
    """`--format`, `--color`, `-o`: how a report comes out, the argument `out` of the command.

    Colours are automatic on a terminal that wants them (NO_COLOR and TERM=dumb are heeded).
    """
    return report_options_with(FORMATS, "How to report.")(command)


def report_options_with(
    formats: Sequence[str], meaning: str, default: str | None = FORMATS[0]
) -> Callable[[Callable[..., Any]], Any]:
    """The same of a command with other formats; `meaning` say of them what needs saying."""

    def with_options(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def with_output(*args: Any, form: str | None, color: str, output: Path | None, **rest: Any) -> Any:
            return command(*args, out=Output(form or "", color, output), **rest)

        return stacked(
            click.option(
                "--format",
                "form",
                type=click.Choice(formats),
                default=default,
                show_default=True,
                help=meaning,
            ),
            click.option(
                "--color",
                type=click.Choice(["auto", "always", "never"]),
                default="auto",
                show_default=True,
                help="Colours.",
            ),
            click.option(
                "-o",
                "--output",
                metavar="FILE",
                type=click.Path(path_type=Path),
                help="Write the report to FILE.",
            ),
        )(with_output)

    return with_options
