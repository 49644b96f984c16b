"""`stats` for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import print_more, print_rows
from hlofuse.format.units import bytes_text, plural, quantity
from hlofuse.reports.common.phrases import times_text
from hlofuse.reports.stats.model import ModuleStatistics
from hlofuse.reports.stats.phrases import ONE_TURN, where

if TYPE_CHECKING:
    from rich.console import Console

STAGES = {
    "input": "no sign of fusion yet",
    "before optimizations": "before optimizations",
    "fused": "fused",
    "scheduled": "fused and scheduled",
}


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
    head.append(f"  ({STAGES[m.stage]})", style="dim")
    console.print(head)
    cost = m.cost
    line = (
        f"{plural(m.kernels, 'kernel')}   {bytes_text(cost.bytes_accessed)} moved"
        f"   {quantity(cost.flops)} flops   {quantity(cost.transcendentals)} transcendentals"
    )
    console.print(Text(line, style="bold"))
    if cost.unknown:
        console.print(
            Text(f"{plural(cost.unknown, 'custom call')} not counted: XLA does not know their cost")
        )

    console.print()
    loops = any(c.turns > 1 for c in m.computations)
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
            Text(printable(c.name)),
            Text(c.role, style="dim"),
            *([f"{c.turns:,}"] if loops else []),
            f"{c.instructions:,}",
            f"{c.kernels:,}",
            bytes_text(c.cost.bytes_accessed),
            quantity(c.cost.flops),
        ]
        for c in m.computations
    ]
    print_rows(console, columns, rows)
    if loops:
        console.print(Text(ONE_TURN, style="dim"))
    inside = []
    if m.fusion_bodies:
        inside.append(plural(m.fusion_bodies, "fusion body", "fusion bodies"))
    if m.applied_computations:
        inside.append(f"{plural(m.applied_computations, 'function')} applied by reduce, sort and the like")
    if inside:
        console.print(Text("and " + ", ".join(inside), style="dim"))

    console.print()
    _print_counts(console, f"{plural(m.instructions, 'instruction')}: ", m.opcodes)
    if m.fusions:
        _print_counts(console, f"{plural(sum(m.fusions.values()), 'fusion')}: ", m.fusions)

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
                Text(printable(k.name) + times_text(k.turns)),
                str(k.holds) if k.opcode == "fusion" else "",
                bytes_text(k.cost.bytes_accessed) if not k.cost.unknown else "unknown",
                quantity(k.cost.flops + k.cost.transcendentals) if not k.cost.unknown else "unknown",
                Text(" ".join(filter(None, (k.kind, printable(where(k))))), style="dim"),
            ]
            for k in m.heaviest
        ]
        print_rows(console, columns, rows)
        print_more(console, m.kernels - len(m.heaviest), indent=0)


def _print_counts(console: Console, title: str, counts: dict[str, int]) -> None:
    text = Text(title)
    text.append(", ".join(f"{printable(name)} {n:,}" for name, n in counts.items()))
    console.print(Padding(text, (0, 0, 0, 0)))
