"""Options that commands share, so that they are called the same everywhere."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from functools import partial, reduce, wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from hlofuse.library.option import Option
from hlofuse.library.options import ReplayOptions
from .output import Output

F = TypeVar("F", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[F], F]
FORMATS = ("text", "json", "markdown")
INPUT = click.Path(allow_dash=True)
FILE = click.Path(path_type=Path)


def stacked(*options: Decorator[Any]) -> Decorator[F]:
    """The options as one decorator, in the order of `--help`."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


def option(names: str, value: str | Sequence[str], meaning: str, **more: Any) -> Callable[[F], F]:
    """An option with a value: its names, placeholder or choices, what it does, a default for `--help`."""
    more |= {"metavar": value} if isinstance(value, str) else {"type": click.Choice(value)}
    if "default" in more:
        more["show_default"] = True
    return click.option(*names.split(), help=meaning, **more)


def flag(name: str, meaning: str) -> Callable[[F], F]:
    """An option without a value."""
    return click.option(name, is_flag=True, help=meaning)


input_argument = click.argument("input", metavar="INPUT", type=INPUT)
"""`INPUT`: a file, a directory or `-`; a path for the shell."""


def limit_option(default: int, meaning: str) -> Callable[[F], F]:
    """`--limit N`: how many entries of a list are shown; `meaning` say of which, and what 0 means."""
    return option("--limit", "N", meaning, default=default, type=click.IntRange(min=0))


arguments_options: Decorator[Any] = stacked(
    option(
        "--args arguments",
        "SHAPES",
        'Shapes of the function\'s arguments: "f32[128,512], s32[]"; lists, tuples and dictionaries nest.',
    ),
    option(
        "--args-from",
        "NAME",
        "A list of arguments in the same file, or a function that returns them; only shapes are used.",
    ),
)
"""The arguments of a function that is compiled."""
destination_options: Decorator[Any] = stacked(
    option("--only", "NAME", "Compile only this program of a mapping.", multiple=True),
    option(
        "--target",
        ["cpu", "gpu", "tpu"],
        "Backend to compile for.  [default: that of --device, tpu with --topology, else cpu]",
    ),
    option("--device", "D", "GPU or TPU name, or device file (hlofuse devices)."),
    option("--topology", "T", "TPU topology, v5e:2x2, or slices x hosts x GPUs, 1x2x8."),
    click.option(
        "--mesh",
        metavar="M",
        help=(
            "Partition over devices: 4, or named axes data=2,model=4. Arguments that nothing places stay"
            " open, as in jax.jit."
        ),
    ),
    option("--python", "PYTHON", "Python whose JAX compiles.  [default: $HLOFUSE_PYTHON or this one]"),
    click.option("--flags", metavar="FLAGS", default="", help="Additional XLA_FLAGS."),
)
"""The programs to compile, the devices to compile for, and the compiler."""
until_option = option(
    "--until",
    ["fusion", "end"],
    "End of the replay: after the fusion passes, or after all passes.",
    default="fusion",
)
"""`--until fusion|end`: where a replay ends."""


class _Percent(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(str(value).removesuffix("%"), param, ctx)  # type: ignore[arg-type]


def parameters(options: type, *names: str) -> Decorator[Any]:
    """Some fields of a dataclass of options, in the order of `names`; all of them without names."""
    declared = {f.name: f for f in fields(options) if "option" in f.metadata}
    return stacked(*(parameter(declared[name]) for name in names or declared))


def parameter(field: Field[Any], name: str = "") -> Decorator[Any]:
    """A field of options as an argument or an option of click."""
    given: Option = field.metadata["option"]
    name = name or field.name
    if not given.flags:
        required = field.default is MISSING
        return click.argument(name, metavar=given.value, required=required)
    flags = [*given.flags.split(), name]
    if not given.value:
        return click.option(*flags, is_flag=True, help=given.help)
    more: dict[str, Any] = {"multiple": given.multiple}
    if field.default not in (None, (), ""):
        more["default"] = field.default
    if given.kind == "int":
        more["type"] = int if given.least is None else click.IntRange(min=int(given.least))
    elif given.kind == "float":
        more["type"] = click.FloatRange(min=given.least)
    elif given.kind == "percent":
        more["type"] = _Percent(min=given.least)
    elif given.kind == "path":
        more["type"] = click.Path()
    return option(" ".join(flags), given.value, given.help, **more)


_of_replay = partial(parameters, ReplayOptions)
module_option = _of_replay("module")
profile_option = _of_replay("profile")
measure_option: Decorator[Any] = stacked(_of_replay("measure"), _of_replay("inputs"))
target_options = _of_replay("target", "xla", "device", "option", "order", "ids")
xla_flags_option = _of_replay("xla_flags")
stage_options = _of_replay("stage", "xla_flags", "assume_input")
what_if_options = _of_replay("overrides", "disable", "enable", "passes")
strict_option = _of_replay("strict")
cache_option = _of_replay("no_cache")
shared_replay_options: Decorator[Any] = stacked(
    module_option, target_options, what_if_options, stage_options, _of_replay("xla_trace")
)
"""The options of a replay that no question has as its own."""
replay_options: Decorator[Any] = stacked(shared_replay_options, strict_option)
"""The options that make a ReplayOptions, the INPUT argument not among them."""
measured_options: Decorator[Any] = stacked(profile_option, measure_option, replay_options)
"""`replay_options`, `--profile` and `--measure`, of reports that show measured time."""


def output_option(meaning: str, metavar: str = "FILE") -> Callable[[F], F]:
    """`-o`: where the result goes, of a command that requires it."""
    return option("-o --output", metavar, meaning, required=True, type=FILE)


def report_options_with(formats: Sequence[str], meaning: str) -> Decorator[Any]:
    """`--format`, `--color`, `-o`: how a report comes out, the argument `out` of the command. `meaning` says
    of the formats what needs saying. Colours: on a terminal that wants them (by NO_COLOR and TERM)."""

    def as_argument(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_output(*args: Any, form: str, color: str, output: Path | None, **rest: Any) -> Any:
            return command(*args, out=Output(form, color, output), **rest)

        return with_output

    return stacked(
        option("--format form", formats, meaning, default=formats[0]),
        option("--color", ["auto", "always", "never"], "Colours.", default="auto"),
        option("-o --output", "FILE", "Write the report to FILE.", type=FILE),
        as_argument,
    )


report_options = report_options_with(FORMATS, "Report format.")  # Same of a command with the usual formats
