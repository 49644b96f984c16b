"""`hlofuse fix`: edits of a program's source, each proved."""

from pathlib import Path
from tokenize import open as open_source
from typing import Any

import click
from msgspec import to_builtins
from rich.console import Console

from hlofuse.capture import Capture, Destination
from hlofuse.capture.arguments import parse_arguments, parse_mesh
from hlofuse.capture.capturing import capture_function, function_in
from hlofuse.capture.model import settled_destination
from hlofuse.format import broken, listing, printable
from hlofuse.ir import HlofuseError
from hlofuse.library.fixing import CPU, Fixed, fixed
from hlofuse.reports.verdict.phrases import totals_line
from .common.options import arguments_options, destination_options, flag, option, report_options
from .common.output import Output, write_file
from .common.request import TERMINAL


@click.command("fix")
@click.argument("program", metavar="PROGRAM.py:FUNCTION")
@arguments_options
@destination_options
@flag("--measure", "On a CPU: offer what runs faster here, measured alternately.")
@option("--tries", "N", "Most edits to compile.", default=24, type=click.IntRange(min=1))
@flag("--write", "Write the edits into PROGRAM.py.")
@report_options
def command(
    program: str,
    out: Output,
    arguments: str | None,
    args_from: str | None,
    target: str | None,
    device: str | None,
    topology: str | None,
    mesh: str | None,
    write: bool,
    measure: bool,
    tries: int,
    **how: Any,
) -> int:
    """Edit a JAX program so that XLA makes it faster, and show each edit with its proof.

    XLA compiles each edit, as by capture. An edit is offered if its compilation saves time or memory, and if
    XLA:CPU computes the same values, up to rounding, on random inputs. No file changes without --write.

    The page "What hlofuse fix edits" lists the forms. Flags that help are named, not set."""
    named = function_in(program)
    if named is None or not named[0].endswith(".py"):
        raise click.UsageError(f"{printable(program)}: expected PROGRAM.py:FUNCTION")
    file, name = Path(named[0]), named[1]
    destination = settled_destination(target, device, topology, parse_mesh(mesh) if mesh else ())
    if measure and destination != CPU:
        raise click.UsageError("--measure runs the program on this CPU; it excludes other targets")
    own = {"arguments": parse_arguments(arguments or ""), "arguments_from": args_from, **how}

    def compile(file: Path, destination: Destination, out: Path) -> Capture:
        return capture_function(str(file), name, destination, out, **own)

    try:
        with open_source(file) as source:
            text, encoding, ending = source.read(), source.encoding, source.newlines
    except (SyntaxError, UnicodeDecodeError) as error:
        raise HlofuseError(f"{printable(named[0])} is no Python program: {error}") from None
    limits = {"measure": measure, "tries": tries, "python": how["python"]}
    found = fixed(file, text, compile, destination, listener=TERMINAL, **limits)
    out.report(
        text=lambda console: _print(found, console, is_written=write),
        json=lambda: {"schema": "hlofuse.fix/3", "program": program, "written": write, **to_builtins(found)},
    )
    if write and found.fixes:
        text = found.text.replace("\n", ending) if isinstance(ending, str) else found.text
        write_file(file, text.encode(encoding))
    return 0


def _print(found: Fixed, console: Console, *, is_written: bool) -> None:
    console.print(totals_line(found.before), style="bold")
    for number, fix in enumerate(found.fixes, 1):
        recipe = f" · hlofuse recipe {fix.recipe}" if fix.recipe else ""
        head = broken(f"\n{number}. line {fix.line}: {fix.gain}{recipe}", console.width)
        console.print("\n".join(head), style="bold")
        console.print(f"   {' · '.join(fix.proof)}\n", style="cyan")
        for line in fix.diff.splitlines():
            style = {"+": "green", "-": "red"}.get(line[:1], "dim")
            console.print(printable(line), style=style, markup=False, soft_wrap=True)
    console.print()
    for setting in found.flags:
        console.print(f"Without an edit, by a replay: {printable(setting)}", style="dim")
    for reason, forms in found.refused.items():
        names = listing([printable(name) for name in dict.fromkeys(forms)], 4)
        console.print(f"Not offered, {printable(reason)}: {names}", style="dim")
    if not found.fixes:
        console.print("No edit is proved to help. Nothing is written.")
        return
    console.print(f"With all: {totals_line(found.after)}", style="bold")
    console.print("Written." if is_written else "Nothing is written; --write applies the edits.")
