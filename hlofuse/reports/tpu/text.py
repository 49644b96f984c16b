"""What XLA:TPU fused, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import plain_table, print_more
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
    rows.show_header = False
    for change in p.changes[: limit or None]:
        what = "\n".join([phrases.what_happened(change), *phrases.inside(change)])
        rows.add_row(Text(str(change.kind)), Text("\n".join(printable(x) for x in what.split("\n"))))
    console.print(Padding(rows, (0, 0, 0, 2)))
    print_more(console, len(p.changes) - (limit or len(p.changes)), "fusion")
    console.print()
    console.print(Text("how CPU and GPU would have done", style="bold cyan"))
    console.print(Padding(Text(OTHERS, style="dim"), (0, 0, 0, 2)))
    for line in agreement_lines(p):
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    for title, edges in differences(p):
        console.print(Padding(Text(printable(title), style="yellow"), (0, 0, 0, 2)))
        for e in edges[: min(3, limit) if limit else None]:
            pair = f"{e.producer} → {e.consumer}  {bytes_text(e.bytes_between)}"
            console.print(Padding(Text(printable(pair)), (0, 0, 0, 6)))
        if limit and len(edges) > min(3, limit):
            console.print(Padding(Text(f"and {len(edges) - min(3, limit)} more", style="dim"), (0, 0, 0, 6)))
