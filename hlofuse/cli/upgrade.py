"""`hlofuse upgrade`: what another release of XLA makes of the same program."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from hlofuse.capture import Capture, Destination
from hlofuse.capture.arguments import parse_arguments
from hlofuse.capture.capturing import capture_function, capture_modules, function_in, module_names
from hlofuse.inputs.companions import companions_of
from hlofuse.ir import HlofuseError, replace
from hlofuse.library.loading import each_module, read
from hlofuse.library.options import ReplayOptions
from hlofuse.library.side_by_side import check_upgrade, upgraded
from .common.messages import spinner
from .common.options import (
    arguments_options,
    input_argument,
    limit_option,
    option,
    replay_options,
    report_options,
)
from .common.output import Output
from .common.request import TERMINAL, options_of, warn


@click.command("upgrade")
@input_argument
@click.argument("compiled", metavar="[COMPILED]", required=False, type=click.Path())
@option("--from old", "V", "Current jaxlib release.  [default: read from the dump]")
@option("--python-from", "PYTHON", "Python with the current JAX, to compile INPUT (script.py:function).")
@option(
    "--python-to",
    "PYTHON",
    "Python with the other JAX, to compile INPUT, or the dump's module before optimizations.",
)
@option("--to new", "V", "Other jaxlib release.  [default: COMPILED's; with --from the newest]")
@arguments_options
@replay_options
@limit_option(10, "Modules and differences shown; 0 shows all.")
@report_options
def command(
    input: str,
    compiled: str | None,
    old: str | None,
    new: str | None,
    python_from: str | None,
    python_to: str | None,
    arguments: str | None,
    args_from: str | None,
    limit: int,
    out: Output,
    **request: Any,
) -> int:
    """Replay a program's fusion as two XLA releases do it, and show which of their changes matter.

    INPUT is a dump, a dump directory, a directory of captures, or script.py:function, which is compiled
    first; modules are listed worst first. COMPILED is the same program dumped or captured with the other
    release; it adds the changes of the passes before fusion. Without it both replays start from the same
    module.

    Exit status 0: same fusions, 1: different, 2: wrong input or call."""
    function, program = function_in(input), input
    if request.pop("xla") is not None:
        raise HlofuseError("--xla sets one release; give --from and --to")
    if python_to is not None and compiled is not None:
        raise HlofuseError(
            "--python-to and COMPILED exclude each other: both give the program of the other release"
        )
    if function is None and (arguments is not None or args_from is not None):
        raise click.UsageError("--args and --args-from need script.py:function")
    # What is wrong with the call is reported before anything is compiled.
    check_upgrade(old, new, compiled=any((compiled, python_from, python_to)))
    of_function = {"arguments": parse_arguments(arguments or ""), "arguments_from": args_from}
    with TemporaryDirectory(prefix="hlofuse-") as scratch:
        if python_from is not None or function is not None:
            old_folder = Path(scratch, "from")
            input = str(_captured([program], of_function, request, python_from, old_folder).folder)
        options = options_of(input, {**request, "xla": old})
        options = replace(options, listener=replace(TERMINAL, note=cache(warn)))
        if python_to is not None:
            programs = [program] if python_from is not None or function is not None else _programs(options)
            other = _captured(programs, of_function, request, python_to, Path(scratch, "to"))
            compiled, new = str(other.folder), new or other.versions.get("jaxlib")
        second = replace(options, input=compiled, module=None) if compiled is not None else None
        answer = upgraded(options, new, second)
    out.show(answer, limit=limit)
    return 0 if all(f.same for f in answer.data) else 1


def _captured(
    programs: Sequence[str],
    of_function: Mapping[str, Any],
    request: Mapping[str, Any],
    python: str | None,
    out: Path,
) -> Capture:
    """The capture of functions (`script.py:function`, one at a time) or of files with modules."""
    device, target = request["device"], request["target"]
    destination = Destination(target or ("gpu" if device is not None else "cpu"), device)
    function = function_in(programs[0])
    with spinner(f"compiling for {destination.text}"):
        if function is not None and len(programs) == 1:
            return capture_function(*function, destination, out, python=python, **of_function)
        return capture_modules(module_names([Path(p) for p in programs]), destination, out, python=python)


def _programs(options: ReplayOptions) -> list[str]:
    """The modules before optimizations that lie beside the dumps."""
    found = []
    for one, name in each_module(options, finished=False):
        module = read(one, any_stage=True).module
        file = companions_of(module).before_optimizations
        if file is None:
            raise HlofuseError(
                f"{name or module.name}: no dump before optimizations, which --python-to needs"
            )
        found.append(str(file))
    return found
