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
        "--limit", type=click.IntRange(min=0), default=default, show_default=True, metavar="N", help=meaning
    )


until_option = click.option(
    "--until",
    type=click.Choice(["fusion", "end"]),
    default="fusion",
    show_default=True,
    help="End of the replay: after the fusion passes, or after all passes.",
)
"""`--until fusion|end`: where a replay ends."""


module_option = click.option(
    "--module",
    metavar="NAME",
    shell_complete=completion.modules,
    help="Module to read from a dump directory or file.",
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
        help=(
            "Backend to replay (hlofuse targets).  [default: gpu with --device, else read from the dump, else"
            " cpu]"
        ),
    ),
    click.option(
        "--xla",
        metavar="V|auto",
        shell_complete=completion.releases,
        help="XLA to replay, as a jaxlib release.  [default: auto, read from the dump]",
    ),
    click.option(
        "--device",
        metavar="D",
        shell_complete=completion.devices,
        help="Device name or file (hlofuse devices).  [default: read from the dump]",
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
        help=(
            "Source of instruction order: XLA's ids, its earlier passes replayed, an estimate, or the text."
            "  [default: the best available]"
        ),
    ),
    click.option(
        "--ids",
        metavar="FILE",
        help="File with XLA's unique instruction ids (.hlo.pb).  [default: the file next to INPUT]",
    ),
)
"""`--target`, `--xla`, `--device`, `--option`, `--order`, `--ids`: what is replayed, as XLA does it."""


xla_flags_option = click.option(
    "--xla-flags", metavar="FLAGS", help="XLA_FLAGS of the compilation.  [default: read from the dump]"
)
"""`--xla-flags`."""


stage_options = stacked(
    click.option(
        "--stage",
        type=click.Choice(["before-optimizations", "fusion-input", "after-fusion", "scheduled"]),
        help="Stage of the compilation that the module comes from.  [default: read from the module]",
    ),
    xla_flags_option,
    click.option(
        "--assume-input",
        is_flag=True,
        help="Same as --stage fusion-input: replay the fusion passes on any module.",
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
        help="Replay with another value of a knob or device number (hlofuse what-if --knobs).",
    ),
    click.option(
        "--disable",
        multiple=True,
        metavar="CODE",
        shell_complete=completion.rules,
        help="Replay without this rule.",
    ),
    click.option(
        "--enable",
        multiple=True,
        metavar="NAME",
        shell_complete=completion.optional_passes,
        help="Replay with an optional pass or rule that XLA leaves out (hlofuse targets).",
    ),
    click.option(
        "--rules",
        multiple=True,
        metavar="NAME|all",
        help="Replay with the rules of an installed package (hlofuse rule lists them).",
    ),
    click.option(
        "--passes",
        metavar="LIST",
        shell_complete=completion.passes,
        help=(
            "Replay these passes instead, separated by commas; fixpoint(A, B) repeats until nothing changes."
        ),
    ),
)
"""`--set`, `--disable`, `--enable`, `--rules`, `--passes`: what is to be other than in XLA."""


def output_option(meaning: str, metavar: str = "FILE") -> Callable[[F], F]:
    """`-o`: where the result goes, of a command that requires it."""
    return click.option(
        "-o", "--output", required=True, type=click.Path(path_type=Path), metavar=metavar, help=meaning
    )


def report_options(command: Callable[..., Any]) -> Any:
    """`--format`, `--color`, `-o`: how a report comes out, the argument `out` of the command.

    Colours are automatic on a terminal that wants them (NO_COLOR and TERM=dumb are heeded).
    """
    return report_options_with(FORMATS, "Report format.")(command)


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
