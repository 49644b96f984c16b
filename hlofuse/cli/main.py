"""The `hlofuse` command. Each subcommand is a file of its own, imported only when it runs."""

import gc
import importlib
import os
import sys

import click

# Under each heading: a name and its line in `--help`: help must not import what it lists.
_SECTIONS: dict[str, dict[str, str]] = {
    "From a program to a dump": {
        "capture": "Compile a JAX program or StableHLO for a CPU, GPU or TPU and keep what XLA's fusion did.",
    },
    "Why it was fused so": {
        "explain": "Which operations XLA fuses, in which order, and what stopped the rest.",
        "why": "Why two operations were fused, or were not.",
        "what-if": "Which rule costs most; what if a knob had other values, a rule did not exist.",
        "rule": "The rule catalogue: what a rule asks, why, and what to do about it.",
    },
    "What would run better": {
        "optimize": "Search for an order of passes, XLA flags or fusion decisions better than XLA's.",
        "passes": "The passes that optimize may run, and how each was checked.",
    },
    "What runs": {
        "stats": "Instructions, kernels, flops and bytes of modules.",
        "model-error": "How far XLA's time model is from a profile, kernel by kernel.",
        "kernels": "Who runs each kernel that fusion leaves: library, Triton or emitter.",
    },
    "To look at": {
        "explore": "A page to step through every decision, in one HTML file.",
        "render": "Draw a module and its fusions as SVG, PNG, PDF or DOT.",
        "plot": "Plot passes, the time of kernels, the roofline.",
    },
    "What changed": {
        "diff": "What changed between two modules, fusion by fusion.",
        "upgrade": "What another release of XLA makes of the same program, and which of its changes matter.",
        "check": "Hold fusion against a budget or a stored baseline, for CI.",
        "timeline": "What each pass of a compilation did, from a dump directory.",
        "trace-op": "One operation's way through every pass to the kernel it ends in.",
    },
    "The replay itself": {
        "replay": "Write the module as XLA's fusion passes would leave it.",
        "verify": "Compare our replay with XLA's own result.",
        "judge": "Do two modules compute the same? XLA compiles and runs both.",
        "run-as": "Run a program with modules of hlofuse in place of XLA's.",
        "targets": "What can be replayed, and how faithfully.",
        "devices": "The GPUs whose numbers come with hlofuse.",
    },
}
_COMMANDS = {name: found for section in _SECTIONS.values() for name, found in section.items()}
_WIDEST = max(map(len, _COMMANDS))

TRACEBACK_VARIABLE = "HLOFUSE_TRACEBACK"
"""Set to have an internal error raised with its traceback."""


class _PipeClosed(Exception):
    """Nobody reads our output any more (`| head`)."""


class _Lazy(click.Group):
    """A group that knows its commands' names without importing them."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would end with status 1
            raise _PipeClosed from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"hlofuse.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from hlofuse.format.escape import printable
            from hlofuse.inputs.suggest import did_you_mean

            ctx.fail(f"no command {printable(args[0])}{did_you_mean(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, commands in _SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(_WIDEST), line) for name, line in commands.items()])


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from hlofuse import __version__
        from hlofuse.ir import graph

        plain = str(graph.__file__).endswith(".py")
        click.echo(f"hlofuse {__version__}{'' if plain else ' (compiled)'}")
        ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def group() -> None:
    """Replay XLA's operator-fusion decisions from an HLO text dump, and explain each one.

    INPUT is everywhere a text dump (.hlo, .txt, also .gz), - for standard input, or a directory
    written by XLA_FLAGS=--xla_dump_to=DIR.
    """


_GARBAGE = 1_000_000
"""Objects made before garbage is looked for: nearly all that a command makes it keeps to its end."""


_FORMATS = ("--json", "--markdown", "--html", "--svg", "--sarif", "--junit", "--github")
"""What some expect to be options of their own."""


def main() -> None:
    """Run the command line; exit status 0 done, 1 a difference was found, 2 bad input or call."""
    gc.set_threshold(_GARBAGE, 10, 10)
    sys.exit(_run())


def _run() -> int:
    try:
        status = group.main(standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Abort:
        return 130
    except click.ClickException as e:
        if isinstance(e, click.NoSuchOption) and e.option_name in _FORMATS:
            meant = f"--format {e.option_name.removeprefix('--')}"
            e = click.NoSuchOption(e.option_name, possibilities=[meant], ctx=e.ctx)
        e.show()
    except (_PipeClosed, BrokenPipeError):  # no failure of ours
        _drop_what_is_unwritten()
        return 0
    except Exception as e:
        _complain(_explained(e))
        if isinstance(e, OSError) and e.filename is None:
            _drop_what_is_unwritten()
    return 2


def _drop_what_is_unwritten() -> None:
    """Python flushes standard output once more at its end, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explained(error: Exception) -> str:
    """What to tell the user; raises the error again where it is ours and a traceback is wanted."""
    # Imported here: the package behind it is not needed where nothing goes wrong.
    from hlofuse.ir.errors import HlofuseError

    if isinstance(error, HlofuseError):
        return str(error)
    if os.environ.get(TRACEBACK_VARIABLE):
        raise error
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if isinstance(error, MemoryError):
        return "the input is too large for this machine's memory"
    if isinstance(error, OSError):
        return f"{error.filename or 'writing the output'}: {error.strerror or error}"
    return (
        f"internal error: {type(error).__name__}: {str(error)[:200]}\n"
        f"This is a bug in hlofuse: please report it, with the output under {TRACEBACK_VARIABLE}=1."
    )


def _complain(message: str) -> None:
    # A message may quote a dump: line ends stay, control sequences do not reach the terminal.
    from hlofuse.format.escape import printable

    click.echo("\n".join(printable(line) for line in message.split("\n")), err=True)
