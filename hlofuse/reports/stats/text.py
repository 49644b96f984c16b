"""`stats` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.page import name_text
from hlofuse.format.terminal import indented, print_more, print_rows
from hlofuse.format.units import bytes_text, plural, quantity
from hlofuse.reports.common.phrases import times_text
from hlofuse.reports.stats import phrases
from hlofuse.reports.stats.model import ModuleStatistics
from hlofuse.reports.stats.phrases import counts


def print_statistics(modules: list[ModuleStatistics], console: Console) -> None:
    """Each module after the other."""
    for number, module in enumerate(modules):
        if number:
            console.print()
        _print_module(module, console)


def _print_module(m: ModuleStatistics, console: Console) -> None:
    head = Text(printable(m.name), style="bold")
    if m.filename is not None:
        head.append(f"  {printable(m.filename)}", style="dim")
    head.append(f"  ({phrases.STAGES[m.stage]})", style="dim")
    console.print(head)
    console.print(Text("   ".join(phrases.headline(m)), style="bold"))
    if uncounted := phrases.uncounted_line(m):
        console.print(Text(uncounted))

    console.print()
    loops = any(c.iterations > 1 for c in m.computations)
    columns = [
        ("computation", "left"),
        ("", "left"),
        *([("turns", "right")] if loops else []),
        ("instructions", "right"),
        ("kernels", "right"),
        ("bytes", "right"),
        ("flops", "right"),
    ]
    rows: list[list[str | Text]] = [
        [
            name_text(c.name),
            Text(c.role, style="dim"),
            *([f"{c.iterations:,}"] if loops else []),
            f"{c.instructions:,}",
            f"{c.kernels:,}",
            bytes_text(c.cost.bytes_accessed),
            quantity(c.cost.flops),
        ]
        for c in m.computations
    ]
    print_rows(console, columns, rows)
    if loops:
        console.print(Text(phrases.ITERATIONS, style="dim"))
    inside = []
    if m.fusion_bodies:
        inside.append(plural(m.fusion_bodies, "fusion body", "fusion bodies"))
    if m.applied_computations:
        inside.append(f"{plural(m.applied_computations, 'function')} applied by reduce, sort and the like")
    if inside:
        console.print(Text("and " + ", ".join(inside), style="dim"))

    console.print()
    for title, by_name in counts(m):
        _print_counts(console, title, by_name)

    if m.heaviest:
        console.print()
        columns = [
            ("heaviest kernels", "left"),
            ("holds", "right"),
            ("bytes", "right"),
            ("flops", "right"),
            ("", "left"),
        ]
        rows = [
            [
                name_text(k.shown).append(times_text(k.iterations)),
                str(k.holds) if k.opcode == "fusion" else "",
                *phrases.kernel_figures(k),
                Text(" ".join(filter(None, (k.kind, printable(phrases.where(k))))), style="dim"),
            ]
            for k in m.heaviest
        ]
        print_rows(console, columns, rows)
        print_more(console, m.totals.kernels - len(m.heaviest), indent=0)


def _print_counts(console: Console, title: str, counts: dict[str, int]) -> None:
    text = Text(title)
    text.append(", ".join(f"{printable(name)} {n:,}" for name, n in counts.items()))
    indented(console, text, 0)
