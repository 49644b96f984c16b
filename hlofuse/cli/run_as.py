"""`hlofuse run-as`: a program runs with modules of hlofuse in place of XLA's own."""

import os
import subprocess
import tempfile
from pathlib import Path

import click

from hlofuse.compilation import CompilationInput, compile
from hlofuse.format import plural, printable
from hlofuse.inputs import load
from hlofuse.inputs.stage import BEFORE, SCHEDULED, stage_of
from hlofuse.ir import HlofuseError, print_module
from hlofuse.pipelines.targets import Stage
from .common.messages import message


@click.command("run-as", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument(
    "arguments", metavar="MODULE... -- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED
)
def command(arguments: tuple[str, ...]) -> int:
    """Run COMMAND, such as python train.py, with each MODULE in place of XLA:CPU's module of the same name.

    MODULE is a module after fusion, as hlofuse replay -o writes it, or later. It replaces the module of the
    same name, parameters and results when JAX (0.11 or later) compiles that for the CPU. Standard error lists
    what was replaced. Exit status: that of COMMAND; 2 for a module that cannot be used."""
    at = arguments.index("--") if "--" in arguments else 0
    files, program = arguments[:at], arguments[at + 1 :]
    if not files or not program:
        raise click.UsageError("expected MODULE... -- COMMAND...")
    with tempfile.TemporaryDirectory(prefix="hlofuse-run-as-") as folder:
        for n, file in enumerate(files):
            Path(folder, f"{n}.hlo").write_text(_prepared(file), encoding="utf-8")
        start_up = str(Path(__file__).parents[1] / "judge" / "start_up")
        path = os.pathsep.join(filter(None, [start_up, os.environ.get("PYTHONPATH")]))
        more = {"HLOFUSE_RUN_AS": folder, "PYTHONPATH": path, "JAX_ENABLE_COMPILATION_CACHE": "false"}
        (log := Path(folder, "events")).touch()
        try:
            status = subprocess.run(program, env={**os.environ, **more}).returncode
        except OSError as error:
            raise HlofuseError(f"cannot run {printable(program[0])}: {error.strerror or error}") from None
        events = log.read_text(encoding="utf-8").splitlines()
    other = "not replaced: the module of this name has different parameters or results"
    for n, file in enumerate(files):
        missing = other if f"other {n}" in events else "never compiled"
        times = plural(events.count(f"replaced {n}"), "time")
        click.echo(f"{printable(file)}: {missing if times[0] == '0' else f'replaced {times}'}", err=True)
    if "registered" not in events:
        message("note", "nothing was replaced: COMMAND did not import JAX 0.11 or later")
    return status if status >= 0 else 128 - status


def _prepared(file: str) -> str:
    """As it goes to the scheduler, where XLA:CPU has its hook (`ApplyXlaTransforms`)."""
    module = load(file)
    stage = stage_of(module)
    if stage.foreign_to("cpu") or stage.name == BEFORE:
        more = f"({stage.evidence}); hlofuse replay --target cpu -o FILE writes one"
        raise HlofuseError(f"{printable(file)}: expected a module after XLA:CPU's fusion passes {more}")
    if stage.name != SCHEDULED:
        module = compile(CompilationInput(module, stage=Stage.FUSED), until=Stage.SCHEDULED).final
    module.attributes = module.attributes.without("is_scheduled")
    return print_module(module)
