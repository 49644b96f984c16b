"""`hlofuse capture`: from a program to what XLA makes of it, with no accelerator."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from hlofuse.capture.arguments import parse_arguments, parse_mesh
from hlofuse.capture.capturing import (
    capture_command,
    capture_function,
    capture_modules,
    function_in,
    module_names,
)
from hlofuse.capture.model import Capture, Destination, settled_destination
from hlofuse.format import listing, plural, printable, shorten
from hlofuse.inputs.profile import slowest_module
from hlofuse.ir import HlofuseError, Json, Strings
from .common.messages import message, spinner
from .common.options import FILE, arguments_options, destination_options, flag, option


@click.command("capture")
@click.argument("program", metavar="PROGRAM", nargs=-1, required=True, type=click.UNPROCESSED)
@arguments_options
@destination_options
@option(
    "-o --output",
    "DIR",
    "Directory to write.  [default: PROGRAM's name and target]",
    type=FILE,
)
@flag("--run", "Run PROGRAM, a Python script, on the device of this machine: dump and profile in one folder.")
@flag("--explain", "Then run hlofuse explain on the largest module.")
@flag("--measure", "Then run it on this CPU, too: hlofuse explain --measure.")
@click.pass_context
def command(
    context: click.Context,
    /,
    program: Strings,
    arguments: str | None,
    args_from: str | None,
    only: Strings,
    target: str | None,
    device: str | None,
    topology: str | None,
    mesh: str | None,
    output: Path | None,
    run: bool,
    explain: bool,
    measure: bool,
    **how: Any,
) -> int:
    """Compile PROGRAM ahead of time and dump the modules before and after XLA's fusion passes.

    PROGRAM is script.py:function, module:function, a mapping of programs (script.py:PROGRAMS), a .mlir file,
    StableHLO bytecode, HLO text or an HLO proto. After --, PROGRAM is a command to run: every function it
    jits is captured. The JAX of your environment compiles. No GPU or TPU is needed.

    With --run, PROGRAM is a script and, after --, its arguments. It runs where it always does, and reports on
    the folder have measured time. The exit status is that of the script."""
    word = program[0]  # of `-- python train.py`, and not a function or a file with a module
    is_command = len(program) > 1 or not (":" in word or Path(word).suffix or Path(word).is_file())
    if run or is_command:
        if any(given is not None for given in (arguments, args_from, device, topology, mesh)):
            raise click.UsageError(
                "a running command chooses its own arguments and devices: --args, --args-from, --device,"
                " --topology and --mesh need script.py:function"
            )
        name = Path(program[1] if len(program) > 1 and program[1].endswith(".py") else program[0]).stem
        captured = capture_command(
            program,
            output or Path(f"{name}-capture"),
            target=target,
            flags=how["flags"],
            python=(how["python"] or sys.executable) if run else "",
        )
    else:
        destination = settled_destination(target, device, topology, parse_mesh(mesh) if mesh else ())
        how |= {"arguments_from": args_from, "only": only}
        captured = _compile(program[0], destination, output, arguments, how)
    _report(captured)
    largest = str(captured.largest.folder)
    if explain or measure:
        given = [largest, "--measure"] if measure else [largest]
        return _explain(context.parent, given)
    folder = captured.largest.folder.parent
    ran = slowest_module(str(folder)) if run else None
    click.echo(f"Next: hlofuse explain {shlex.quote(str(folder / ran) if ran else largest)}")
    return captured.status if run else 0


def _compile(
    program: str,
    destination: Destination,
    output: Path | None,
    arguments: str | None,
    how: Json,
) -> Capture:
    """The capture of a function (`how`: further arguments of `capture_function`), or of a file."""
    function = function_in(program)
    ending = f"{destination.target}-{destination.device}" if destination.device else destination.target
    ending = Path(ending).name.replace(":", "-")
    if function is not None:
        if arguments is not None and how["arguments_from"] is not None:
            raise click.UsageError("--args and --args-from exclude each other")
        parsed = parse_arguments(arguments or "")
        with spinner(f"compiling for {destination.text}"):
            out = output or Path(f"{function[1]}-{ending}")
            return capture_function(*function, destination, out, arguments=parsed, **how)
    file = Path(program)
    if not file.is_file():
        raise HlofuseError(
            f"{printable(program)}: no such file; expected script.py:function or a file with a module"
        )
    if file.suffix == ".py":
        raise HlofuseError(f"{printable(program)}: no function named; give {printable(program)}:FUNCTION")
    with spinner(f"compiling for {destination.text}"):
        named = module_names([file])
        out = output or Path(f"{named[0][0]}-{ending}")
        return capture_modules(named, destination, out, python=how["python"], flags=how["flags"])


def _report(captured: Capture) -> None:
    versions = ", ".join(f"{k} {v}" for k, v in captured.versions.items())
    count, where = plural(len(captured.modules), "module"), printable(str(captured.folder))
    click.echo(f"{count} for {captured.target} in {where}" + (f"  ({versions})" if versions else ""))
    for module in captured.modules[:20]:
        click.echo(f"  {printable(module.name):<28} {shorten(listing(module.passes, 4), 49) or 'unchanged'}")
    if len(captured.modules) > 20:
        click.echo(f"  … {len(captured.modules) - 20} more")
    for name, why in [*captured.errors.items(), *captured.left_out.items()][:20]:
        click.echo(f"  {printable(name)}: {printable(why)}", err=True)
    for warning in captured.warnings:
        message("warning", warning)


def _explain(parent: click.Context | None, arguments: list[str]) -> int:
    assert parent is not None
    assert isinstance(parent.command, click.Group)
    command = parent.command.get_command(parent, "explain")
    assert command is not None
    with command.make_context("explain", arguments, parent=parent) as inner:
        status = command.invoke(inner)
    return status if isinstance(status, int) else 0
