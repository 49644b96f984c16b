"""`hlofuse reduce`: a smaller module for which a command still succeeds."""

import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from hlofuse.format.units import plural
from hlofuse.inputs import load
from hlofuse.judge.reduction import Reduction
from .common.messages import progress_bar
from .common.options import input_argument, option, output_option
from .common.output import emit


@click.command("reduce")
@input_argument
@option("--while", "CMD", "Shell command that exits 0 while the module is of interest.", required=True)
@option("--timeout", "S", "Time limit in seconds of each run of CMD.", type=float, default=60)
@output_option("File to write; - for standard output.", "OUT.hlo")
def command(input: str, timeout: float, output: Path, **condition: str) -> None:
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
