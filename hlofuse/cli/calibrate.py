"""`hlofuse calibrate`: measure what this machine's CPU takes for the kernels of XLA."""

from pathlib import Path
from typing import Any

import click

from hlofuse.cost.cpu.device import CHOICE, cpu_text
from hlofuse.format import fields, plural
from hlofuse.format.terminal import indented, plain_table
from hlofuse.judge.calibrate import calibrate
from .common.messages import progress_bar
from .common.options import FILE, option, report_options
from .common.output import Output, save


@click.command("calibrate")
@click.argument("file", metavar="FILE", type=FILE)
@option("--python", "PYTHON", "Python whose JAX runs the programs.  [default: $HLOFUSE_PYTHON or this one]")
@report_options
def command(file: Path, python: str | None, out: Output) -> int:
    """Run some 600 small programs twice on this CPU, and write the device FILE with the rates that they give.

    It takes some minutes, on a machine that does nothing else. Set HLOFUSE_CPU=FILE and reports on CPU
    modules estimate times by it. Limit the threads with taskset."""
    with progress_bar("calibrating") as report:
        device = calibrate(file.name.removesuffix(".toml"), python, report)
    save(file, cpu_text(device))

    def text(console: Any) -> None:
        threads = plural(device.threads, "thread")
        console.print(f"{device.processor}, {threads}, jaxlib {device.jaxlib}: {len(device.rates)} rates")
        console.print(f"Use it: export {CHOICE}={file}")
        console.print("8 of 10 estimates of programs that were left out are within:")
        table = plain_table(("kind of kernel", "left"), ("factor", "right"))
        for kind, factor in sorted(device.errors.items(), key=lambda pair: pair[1]):
            table.add_row(kind, f"{factor:.2f}")
        indented(console, table)

    found = fields(device, "processor threads jaxlib errors rates")
    out.report(text=text, json=lambda: {"schema": "hlofuse.calibrate/3", "file": str(file), **found})
    return 0
