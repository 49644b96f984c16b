"""The cost story of a pair for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from hlofuse.account import PairDetail, ReadTerm
from hlofuse.format.escape import printable, shorten
from hlofuse.format.units import bytes_text, us_text
from hlofuse.reports.explain.cost_phrases import (
    choice_text,
    cost_heading,
    roofline,
    share_text,
    try_text,
    turning_text,
    why_saves,
    worth_text,
)
from hlofuse.reports.explain.model import Place
from hlofuse.reports.explain.tables import plain_table

if TYPE_CHECKING:
    from rich.console import Console

_READS = 6


def print_pair_cost(d: PairDetail, producer: Place, console: Console, *, forbidden: bool = False) -> None:
    """The sums, the three kernels they come from, what the kernel would read, and what would turn it.

    `forbidden`: a rule keeps the two apart, whatever they cost.
    """

    def say(text: str, style: str = "default", by: int = 2) -> None:
        console.print(Padding(Text(text, style=style), (0, 0, 0, by)))

    say(cost_heading(forbidden=forbidden), "bold cyan")
    say(worth_text(d), "default", 4)
    say(why_saves(d.cost, producer.opcode), "default", 4)
    table = plain_table(("", "left"), ("", "left"), ("", "right"), ("", "right"))
    table.show_header = False
    for label, kernel in d.cost.kernels:
        table.add_row(
            Text(label, style="dim"),
            Text(roofline(kernel)),
            Text(f"{bytes_text(kernel.bytes_read)} in"),
            Text(f"{bytes_text(kernel.bytes_written)} out"),
        )
    console.print(Padding(table, (0, 0, 0, 4)))
    choice = choice_text(d.cost.fused)
    if choice:
        say(choice, "default", 4)
    if d.fused_reads:
        _print_reads(d.consumer_reads, d.fused_reads, console)
    for remark in d.remarks:
        say(printable(remark), "default", 4)
    say(turning_text(d, forbidden=forbidden), "default", 4)
    attempt = try_text(d, forbidden=forbidden)
    if attempt:
        say(attempt, "dim", 4)


def _print_reads(before: Sequence[ReadTerm], after: Sequence[ReadTerm], console: Console) -> None:
    """Operand by operand: what the consumer reads now, and what it would with the producer inside."""
    now = {r.operand: r for r in before}
    table = plain_table(
        ("reads", "left"),
        ("size", "right"),
        ("consumer", "right"),
        ("fused", "right"),
        ("", "right"),
        ("", "left"),
    )
    for r in after[:_READS]:
        old = now.get(r.operand)
        table.add_row(
            Text(f"{printable(r.operand)} {shorten(printable(r.shape), 28)}"),
            Text(bytes_text(r.size)),
            Text(bytes_text(old.read) if old is not None else "–"),
            Text(bytes_text(r.read)),
            Text(us_text(r.us)),
            Text(share_text(r), style="yellow"),
        )
    console.print(Padding(table, (0, 0, 0, 4)))
    if len(after) > _READS:
        rest = sum(r.us for r in after[_READS:])
        more = f"and {len(after) - _READS} more operands, {us_text(rest)}"
        console.print(Padding(Text(more, style="dim"), (0, 0, 0, 4)))
