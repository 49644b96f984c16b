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


def option(
    names: str,
    value: str | Sequence[str],
    meaning: str,
    complete: Callable[..., Any] | None = None,
    **more: Any,
) -> Callable[[F], F]:
    """An option with a value: its names, what stands for the value or the choices, and what it does.

    `complete` is what the shell offers; a default is shown in `--help`.
    """
    more |= {"metavar": value} if isinstance(value, str) else {"type": click.Choice(value)}
    if "default" in more:
        more["show_default"] = True
    return click.option(*names.split(), help=meaning, shell_complete=complete, **more)


input_argument = click.argument("input", metavar="INPUT", type=click.Path(allow_dash=True))
"""`INPUT`: a file, a directory or `-`; a path to the shell's completion."""


name_argument = click.argument("name", metavar="[NAME]", required=False, shell_complete=completion.names)
"""`[NAME]`: any name of kernels that the report is narrowed to."""


def limit_option(default: int, meaning: str) -> Callable[[F], F]:
    """`--limit N`: how many entries of a list are shown; `meaning` say of which, and what 0 means."""
    return option("--limit", "N", meaning, default=default, type=click.IntRange(min=0))


until_option = option(
    "--until",
    ["fusion", "end"],
    "End of the replay: after the fusion passes, or after all passes.",
    default="fusion",
)
"""`--until fusion|end`: where a replay ends."""


module_option = option(
    "--module", "NAME", "Module to read from a dump directory or file.", completion.modules
)
"""`--module NAME`: which module of a dump directory."""


profile_option = option(
    "--profile",
    "PATH",
    "Measured time from a profile: *.xplane.pb or its folder, *.trace.json.gz, an export of nsys.",
    type=click.Path(),
)
"""`--profile`: the module's kernels have their times in this profile."""


target_options = stacked(
    option(
        "--target",
        "T",
        (
            "Backend to replay (hlofuse targets).  [default: gpu with --device, else read from the dump, else"
            " cpu]"
        ),
        completion.targets,
    ),
    option(
        "--xla",
        "V|auto",
        "XLA to replay, as a jaxlib release.  [default: auto, read from the dump]",
        completion.releases,
    ),
    option(
        "--device",
        "D",
        "Device name or file (hlofuse devices).  [default: read from the dump]",
        completion.devices,
    ),
    option(
        "--option", "NAME", "A variant of the target's passes (hlofuse targets).", completion.option_names
    ),
    option(
        "--order",
        ["xla", "replayed", "estimated", "text"],
        (
            "Source of instruction order: XLA's ids, its earlier passes replayed, an estimate, or the text."
            "  [default: the best available]"
        ),
    ),
    option(
        "--ids",
        "FILE",
        "File with XLA's unique instruction ids (.hlo.pb).  [default: the file next to INPUT]",
    ),
)
"""`--target`, `--xla`, `--device`, `--option`, `--order`, `--ids`: what is replayed, as XLA does it."""


xla_flags_option = option(
    "--xla-flags", "FLAGS", "XLA_FLAGS of the compilation.  [default: read from the dump]"
)
"""`--xla-flags`."""


stage_options = stacked(
    option(
        "--stage",
        ["before-optimizations", "fusion-input", "after-fusion", "scheduled"],
        "Stage of the compilation that the module comes from.  [default: read from the module]",
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
    option(
        "--set overrides",
        "NAME=VALUE",
        "Replay with another value of a knob or device number (hlofuse what-if --knobs).",
        completion.knobs,
        multiple=True,
    ),
    option("--disable", "CODE", "Replay without this rule.", completion.rules, multiple=True),
    option(
        "--enable",
        "NAME",
        "Replay with an optional pass or rule that XLA leaves out (hlofuse targets).",
        completion.optional_passes,
        multiple=True,
    ),
    option(
        "--rules",
        "NAME|all",
        "Replay with the rules of an installed package (hlofuse rule lists them).",
        multiple=True,
    ),
    option(
        "--passes",
        "LIST",
        "Replay these passes instead, separated by commas; fixpoint(A, B) repeats until nothing changes.",
        completion.passes,
    ),
)
"""`--set`, `--disable`, `--enable`, `--rules`, `--passes`: what is to be other than in XLA."""


def output_option(meaning: str, metavar: str = "FILE") -> Callable[[F], F]:
    """`-o`: where the result goes, of a command that requires it."""
    return option("-o --output", metavar, meaning, required=True, type=click.Path(path_type=Path))


def report_options_with(formats: Sequence[str], meaning: str) -> Decorator[Any]:
    """`--format`, `--color`, `-o`: how a report comes out, the argument `out` of the command.

    `meaning` says of the formats what needs saying. Colours are automatic on a terminal that wants them
    (NO_COLOR and TERM=dumb are heeded).
    """

    def as_argument(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_output(*args: Any, form: str, color: str, output: Path | None, **rest: Any) -> Any:
            return command(*args, out=Output(form, color, output), **rest)

        return with_output

    return stacked(
        option("--format form", formats, meaning, default=formats[0]),
        option("--color", ["auto", "always", "never"], "Colours.", default="auto"),
        option("-o --output", "FILE", "Write the report to FILE.", type=click.Path(path_type=Path)),
        as_argument,
    )


report_options = report_options_with(FORMATS, "Report format.")
"""The same of a command with the usual formats."""
