"""`hlofuse judge`: do two modules compute the same, by XLA:CPU."""

from typing import Any

import click

from hlofuse.format.terminal import indented, plain_table
from hlofuse.format.units import plural
from hlofuse.inputs import load
from hlofuse.judge.judge import SCALES, judge
from .common.messages import spinner
from .common.options import INPUT, option, report_options
from .common.output import Output


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
def command(a: str, b: str, scale: tuple[float, ...], out: Output, **how: Any) -> int:
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
