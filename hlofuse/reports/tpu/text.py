"""What XLA:TPU fused, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.page import name_text
from hlofuse.format.terminal import indented, plain_table, print_more
from hlofuse.format.units import bytes_text
from hlofuse.reports.diff import phrases
from hlofuse.reports.tpu.model import TpuPair
from hlofuse.reports.tpu.phrases import CLOSED, OTHERS, agreement_lines, differences, headline, kernels_line


def print_tpu(p: TpuPair, console: Console, *, limit: int = 10) -> None:
    """The result, the fusions that were made, then how the others would have done."""
    console.print(Text(printable(headline(p)), style="bold"))
    console.print(Text(kernels_line(p), style="bold green" if p.kernels_after < p.kernels_before else "bold"))
    console.print(Text(CLOSED))
    console.print()
    console.print(Text("what TPU did with fusions", style="bold cyan"))
    rows = plain_table(("", "left"), ("", "left"))
    for change in p.changes[: limit or None]:
        what = "\n".join([phrases.what_happened(change), *phrases.inside(change)])
        rows.add_row(Text(str(change.kind)), Text("\n".join(printable(x) for x in what.split("\n"))))
    indented(console, rows)
    print_more(console, len(p.changes) - (limit or len(p.changes)), "fusion")
    console.print()
    console.print(Text("how CPU and GPU would have done", style="bold cyan"))
    indented(console, OTHERS, 2, "dim")
    for line in agreement_lines(p):
        indented(console, line)
    for title, edges in differences(p):
        indented(console, printable(title), 2, "yellow")
        for e in edges[: min(3, limit) if limit else None]:
            pair = name_text(e.producer, e.consumer).append(f"  {bytes_text(e.bytes_between)}")
            indented(console, pair, 6)
        if limit and len(edges) > min(3, limit):
            indented(console, f"and {len(edges) - min(3, limit)} more", 6, "dim")
