"""A module after fusion, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.page import name_text
from hlofuse.format.terminal import indented, plain_table, print_command, print_more
from hlofuse.format.units import bytes_text, plural
from hlofuse.reports.common.phrases import advice_line, figures_text
from hlofuse.reports.fused.model import Boundary, Fused
from hlofuse.reports.fused.phrases import BETTER, by_rule, bytes_between, contents, head_lines


def print_fused(f: Fused, console: Console, *, limit: int = 10, better: Sequence[str] = ()) -> None:
    """What the module is, its kernels, then the rule at each boundary.

    `better` are the words for `hlofuse explain` of the dump ahead of fusion, where that lies beside.
    """
    for line, style in head_lines(f):
        console.print(Text(printable(line), style=style))
    if better:
        console.print(Text(BETTER, style="green"))
        print_command(console, 2, "explain", *better)
    console.print()
    console.print(Text("kernels that are there", style="bold cyan"))
    rows = plain_table(("kernel", "left"), ("moves", "right"), ("what is in it", "left"))
    for k in f.kernels[: limit or None]:
        rows.add_row(name_text(k.name), bytes_text(k.bytes), Text(printable(contents(k))))
    indented(console, rows)
    print_more(console, len(f.kernels) - (limit or len(f.kernels)), "kernel")
    console.print()
    if not f.boundaries:
        console.print(Text("No kernel reads what another one wrote."))
        return
    console.print(Text("why these are still two kernels", style="bold cyan"))
    groups = by_rule(f)
    for code, refused in groups[: limit or None]:
        _print_group(f, code, refused, console, limit)
    print_more(console, len(groups) - (limit or len(groups)), "reason")


def _print_group(f: Fused, code: str, refused: list[Boundary], console: Console, limit: int) -> None:
    rule = f.rules.get(code)
    head = Text(f"{code}  {printable(rule.title)}" if rule else f"not known: {printable(code)}")
    head.stylize("yellow" if rule else "dim")
    head.append(
        f"   {plural(len(refused), 'boundary', 'boundaries')}, {bytes_text(bytes_between(refused))}",
        style="bold",
    )
    indented(console, head)
    for b in refused[: min(3, limit) or None]:
        line = name_text(b.producer, b.consumer).append(f"  {bytes_text(b.bytes_between)}")
        if b.figures:
            line.append(f"  {figures_text(b.figures)}", style="dim")
        indented(console, line, 6)
    if limit and len(refused) > min(3, limit):
        indented(console, f"and {len(refused) - min(3, limit)} more", 6, "dim")
    if rule and rule.advice:
        indented(console, advice_line(rule), 6)
