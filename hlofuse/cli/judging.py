"""`hlofuse judge`, `reduce` and `run-as`: modules that XLA:CPU compiles and runs."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from hlofuse.compilation import CompilationInput, compile
from hlofuse.format import plural, printable
from hlofuse.format.terminal import indented, plain_table
from hlofuse.inputs import load
from hlofuse.inputs.stage import BEFORE, SCHEDULED, stage_of
from hlofuse.ir import HlofuseError, Strings, print_module
from hlofuse.judge.judge import SCALES, judge
from hlofuse.judge.reduction import Reduction
from hlofuse.pipelines.targets import Stage
from .common.messages import message, progress_bar, spinner
from .common.options import INPUT, input_argument, option, output_option, report_options
from .common.output import Output, emit


@click.command("judge")
@click.argument("a", metavar="A", type=INPUT)
@click.argument("b", metavar="B", type=INPUT)
@option("--python", "PYTHON", "Python whose JAX compiles.  [default: $HLOFUSE_PYTHON or this one]")
@option(
    "--scale", "S", "Magnitude of random floats; repeatable.  [default: 0.1, 1]", multiple=True, type=float
)
@option("--seed", "N", "Seed of the random inputs.", type=click.IntRange(0), default=0)
@option("--timeout", "S", "Time limit in seconds for each compilation and run.", type=float, default=300)
@report_options
def judge_command(a: str, b: str, scale: tuple[float, ...], out: Output, **how: Any) -> int:
    """Compile A and B for the CPU, run both on the same random inputs, compare kernels and values.

    A and B are modules with the same parameters and results. Of a fused one its operations count. Results may
    differ by ten times what A's results change when its inputs move by one floating-point step, and rounding.

    Exit status 0: same values; 1: different values, a module XLA rejects, or undecidable
    (nan or inf in A's results, or results too sensitive to rounding); 2: wrong input."""
    with spinner("compiling and running"):
        found = judge(load(a), load(b), scales=scale or SCALES, **how)

    def text(console: Any) -> None:
        style = {"same": "bold green", "different": "bold red"}.get(found.verdict, "bold yellow")
        console.print(f"{found.verdict.capitalize()}: {found.reason}", style=style)
        for name, x in (("A", found.a), ("B", found.b)):
            if x is not None:
                console.print(
                    f"  {name}: {plural(x.kernels, 'kernel')}, {plural(x.instructions, 'instruction')}"
                )
        table = plain_table(*((c, "right") for c in ("inputs", "output", "largest change", "tolerated")))
        ranked = sorted(found.differences, key=lambda d: d.excess)
        for d in {(d.scale, d.sign): d for d in ranked}.values():  # the furthest off
            size = f"{d.scale:g}{('', ', positive', ', negative')[d.sign]}"
            table.add_row(size, f"{d.output}", d.why or f"{d.change:.3g}", f"{d.tolerance:.3g}")
        if ranked:
            indented(console, table)

    out.report(text=text, json=found.to_json)
    return 0 if found.verdict == "same" else 1


@click.command("reduce")
@input_argument
@option("--while", "CMD", "Shell command that exits 0 while the module is of interest.", required=True)
@option("--timeout", "S", "Time limit in seconds of each run of CMD.", type=float, default=60)
@output_option("File to write; - for standard output.", "OUT.hlo")
def reduce_command(input: str, timeout: float, output: Path, **condition: str) -> None:
    """Make the module in INPUT smaller while CMD succeeds.

    {} in CMD stands for the file of the module that is tried; without it, the file is the last argument.
    Every module that is tried is valid, by XLA's parser too where jaxlib is installed. Ctrl-C ends the work
    and writes the smallest so far."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module.hlo"
        text = condition["while"]
        line = text.replace("{}", str(file)) if "{}" in text else f"{text} {file}"

        def holds(module: str) -> bool:
            errors = subprocess.DEVNULL if file.exists() else None  # those of the first run are shown
            file.write_text(module, encoding="utf-8")
            run = partial(subprocess.run, line, shell=True, stdout=subprocess.DEVNULL, stderr=errors)
            try:
                return run(timeout=timeout).returncode == 0
            except subprocess.TimeoutExpired:
                return False

        with progress_bar("instructions left") as progress:
            reduction = Reduction(load(input), holds, progress)
            with suppress(KeyboardInterrupt):  # the smallest so far is of use, too
                reduction.run()
    emit(reduction.text, output)
    left = plural(reduction.instructions, "instruction")
    print(f"{left} of {reduction.first}; {plural(reduction.tries, 'run')} of the command", file=sys.stderr)


@click.command("run-as", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument(
    "arguments", metavar="MODULE... -- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED
)
def run_as_command(arguments: Strings) -> int:
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
