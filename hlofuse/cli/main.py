"""The `hlofuse` command. Each subcommand is a file of its own, imported only when it runs."""

from __future__ import annotations

import importlib
import sys

import click

# Name, where it lives, and its line in `--help`: help must not import what it lists.
_COMMANDS: dict[str, tuple[str, str]] = {
    "explain": ("hlofuse.cli.explain", "Which operations XLA fuses, in which order, and what stopped the rest."),
    "why": ("hlofuse.cli.why", "Why two operations were fused, or were not."),
    "replay": ("hlofuse.cli.replay", "Write the module as XLA's fusion passes would leave it."),
    "verify": ("hlofuse.cli.verify", "Compare our replay with XLA's own result."),
    "diff": ("hlofuse.cli.diff", "What changed between two modules, fusion by fusion."),
    "stats": ("hlofuse.cli.stats", "Instructions, kernels, flops and bytes of modules."),
    "render": ("hlofuse.cli.render", "Draw a module and its fusions as SVG, PNG, PDF or DOT."),
    "rule": ("hlofuse.cli.rule", "The rule catalogue: what a rule asks, why, and what to do about it."),
    "targets": ("hlofuse.cli.targets", "What can be replayed, and how faithfully."),
}


class _Lazy(click.Group):
    """A group that knows its commands' names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from hlofuse import __version__

        click.echo(f"hlofuse {__version__}")
        ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version.")
def group() -> None:
    """Replay XLA's operator-fusion decisions from an HLO text dump, and explain each one."""


def main() -> None:
    """Run the command line; exit status 0 done, 1 a difference was found, 2 bad input or call."""
    from hlofuse.ir.errors import HlofuseError

    try:
        status = group.main(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as e:
        e.show()
        sys.exit(2)
    except HlofuseError as e:
        click.echo(str(e), err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is no failure of ours.
        sys.stderr.close()
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)
