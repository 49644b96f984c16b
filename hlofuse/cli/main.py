"""The `hlofuse` command. The file of a subcommand is imported only when it runs."""

import gc
import importlib
import os
import sys

import click

# Under each heading: a name and its line in `--help`: help must not import what it lists.
_SECTIONS: dict[str, dict[str, str]] = {
    "Get a dump": {
        "capture": "Compile a JAX program or StableHLO for a CPU, GPU or TPU and dump XLA's fusion passes.",
    },
    "Explain fusion": {
        "explain": "Kernels, their time, what fusion could still save, and every decision.",
        "why": "Why two operations were fused or not.",
        "what-if": "Rank changes by what they save: recipes, flags, rules, knobs.",
        "recipe": "Changes to a program: symptom, code before and after, figures.",
        "fix": "Edit a JAX program so that it runs faster; each edit is compiled and its values judged.",
        "rule": "The rule catalogue: condition, reason, advice.",
    },
    "Search for something faster": {
        "optimize": "Search passes and XLA flags that beat XLA's defaults.",
        "passes": "The passes that optimize may run, and how each was checked.",
    },
    "What runs": {
        "stats": "Instructions, kernels, FLOP and bytes of modules.",
        "kernels": "Kernels after fusion and who generates each: library, Triton or emitter.",
        "memory": "Bytes of arguments, results and temporaries; the arrays alive at the peak.",
        "model-error": "XLA's time model against a profile, worst kernel first.",
    },
    "See it": {
        "explore": "One HTML page that steps through every decision.",
        "render": "Draw a module and its fusions as SVG, PNG, PDF or DOT.",
        "plot": "Plot passes, kernel times or memory.",
    },
    "What changed": {
        "diff": "What changed between two modules, fusion by fusion.",
        "upgrade": "What another XLA release changes in the same program, and why.",
        "check": "Check kernels, bytes and time against a budget or baseline, for CI.",
        "timeline": "What each pass of a compilation did, from a dump directory.",
        "trace-op": "Follow one operation through every pass to its final kernel.",
    },
    "Many modules": {
        "batch": "Replay thousands of modules into tables; compare two such runs.",
    },
    "Replay and verify": {
        "replay": "Write the module after XLA's fusion passes.",
        "verify": "Compare a replay with XLA's own result.",
        "judge": "Compile and run two modules with XLA and compare their results.",
        "reduce": "Make a module smaller while a command succeeds.",
        "run-as": "Run a program with replayed modules in place of XLA's.",
        "targets": "Backends and releases that can be replayed, and their fidelity.",
        "devices": "GPUs with built-in device data.",
        "cache": "Show or clear the replays that later questions begin with.",
        "calibrate": "Measure this CPU, so that reports estimate times on it.",
    },
}
_COMMANDS = {name: found for section in _SECTIONS.values() for name, found in section.items()}
_QUESTIONS = tuple("explain why kernels memory stats timeline trace-op".split())
"""Commands that parse options and print an answer of the library, nothing else."""
_FILES = {
    "judging": "judge reduce run_as",
    "pages": "rule recipe",
    "pictures": "render plot",
    "replaying": "replay verify",
    "searching": "optimize passes",
}
_SHARED = {name: file for file, names in _FILES.items() for name in names.split()}
"""The file of a command that shares it with others."""
_WIDEST = max(map(len, _COMMANDS))
_OVERVIEW = "overview"  # the command for `hlofuse INPUT`, and for `hlofuse` alone on the current directory
TRACEBACK_VARIABLE = "HLOFUSE_TRACEBACK"  # Set to have an internal error raised with its traceback


class _PipeClosed(Exception):
    pass


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
        if cmd_name not in _COMMANDS and cmd_name != _OVERVIEW:
            return None
        if cmd_name in _QUESTIONS:
            command = importlib.import_module("hlofuse.cli.common.questions").command_of(cmd_name)
        else:
            name = cmd_name.replace("-", "_")
            module = importlib.import_module(f"hlofuse.cli.{_SHARED.get(name, name)}")
            command = getattr(module, f"{name}_command" if name in _SHARED else "command")
        assert isinstance(command, click.Command)
        if cmd_name != _OVERVIEW:
            from .common.examples import epilog

            command.epilog = epilog(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and os.path.exists(args[0]):
            if args[1:] and args[1] in _COMMANDS:
                ctx.fail(f"the command comes first: hlofuse {args[1]} INPUT")
            return super().resolve_command(ctx, [_OVERVIEW, *args])
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from hlofuse.format import printable
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


@click.group(cls=_Lazy, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@click.pass_context
def group(ctx: click.Context) -> None:
    """Explain XLA's fusion from an HLO dump: every kernel, every decision, what would be faster.

    INPUT is an HLO dump (.hlo, .txt, .hlo.pb, also .gz), - for standard input, or a directory
    written by XLA_FLAGS=--xla_dump_to=DIR. Without a command, hlofuse INPUT lists what it can tell about it.
    """
    if ctx.invoked_subcommand is None:
        overview = group.get_command(ctx, _OVERVIEW)
        assert overview is not None
        ctx.invoke(overview, path=".")


_GARBAGE = 3_000_000  # Objects made before garbage is looked for: a command keeps nearly all to its end
_FORMATS = (
    "--json",
    "--markdown",
    "--html",
    "--svg",
    "--sarif",
    "--junit",
    "--github",
)
"""Formats often given as options."""


def main() -> None:
    """Run the command line; exit status 0 done, 1 a difference was found, 2 bad input or call."""
    gc.set_threshold(_GARBAGE, 10, 10)
    status = _run()
    gc.freeze()  # at its end Python looks for garbage once more
    sys.exit(status)


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
        from .common.messages import refused_call

        refused_call(e)
    except (_PipeClosed, BrokenPipeError):  # no failure of ours
        _drop_what_is_unwritten()
        return 0
    except Exception as e:
        from .common.messages import message, misplaced

        message("error", _explained(e) + misplaced(sys.argv[1:]))
        if isinstance(e, OSError) and e.filename is None:
            _drop_what_is_unwritten()
    return 2


def _drop_what_is_unwritten() -> None:
    """Python flushes standard output once more at its end, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explained(error: Exception) -> str:
    """The message for the user; raises an internal error again where a traceback is wanted."""
    # Imported here: its package is needed for errors only.
    from hlofuse.ir import HlofuseError

    if isinstance(error, HlofuseError):
        return str(error)
    if os.environ.get(TRACEBACK_VARIABLE):
        raise error
    if isinstance(error, RecursionError):
        return "the input is nested too deeply, or a chain of its operations is too long, for this command"
    if isinstance(error, MemoryError):
        return "the input is too large for this machine's memory"
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename} does not exist"
    if isinstance(error, OSError):
        return f"cannot access {error.filename or 'the output'}: {error.strerror or error}"
    return (
        f"internal error: {type(error).__name__}: {str(error)[:200]}\nThis is a bug in hlofuse: report it"
        f" with the output under {TRACEBACK_VARIABLE}=1."
    )
