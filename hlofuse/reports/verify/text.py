"""`verify` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import indented
from hlofuse.format.units import plural
from hlofuse.reports.verify import phrases
from hlofuse.reports.verify.model import Report, Verdict


def print_report(report: Report, console: Console, *, limit: int = 10, every: bool = False) -> None:
    """The summary, then modules that differ; `every` lists the others, too."""
    compared = len(report.compared)
    agree = report.exact
    style = "bold green" if report.agrees else "bold red"
    console.print(
        Text(f"{agree} of {plural(compared, 'module')} exact on target {report.target}", style=style)
    )
    if line := phrases.release_line(report):
        console.print(Text(line))
    if compared:
        table = Table.grid(padding=(0, 2, 0, 0))
        for what, count in phrases.summary_rows(report)[1:]:
            table.add_row(Text(what), Text(count))
        indented(console, table)
    if undumped := phrases.undumped_line(report):
        console.print(Text(undumped, style="yellow"))
    for v in report.verdicts if every else ():
        console.print(
            Text(f"  {printable(v.name):<40} {phrases.verdict_word(v):<14} {plural(v.kernels, 'kernel')}")
        )
    bad = [v for v in report.verdicts if phrases.verdict_word(v) != "exact"]
    for v in bad[: limit or None]:
        console.print()
        _print_bad(v, console)
    other = [v for v in report.compared if v not in bad and phrases.step_lines(v)]
    for v in other[: limit or None]:
        console.print(Text(f"\n{printable(v.name)}  the same kernels by other steps", style="bold"))
        for line in phrases.step_lines(v):
            indented(console, line)
    if limit and len(other) > limit:
        console.print(Text(f"\nand {len(other) - limit} more by other steps (--limit)"))
    if limit and len(bad) > limit:
        console.print(Text(f"\nand {len(bad) - limit} more that differ (--limit)"))
    if report.skipped:
        console.print()
        console.print(Text(f"{plural(len(report.skipped), 'module')} left out:", style="dim"))
        for reason in report.skipped[: limit or None]:
            console.print(Text(f"  {printable(reason)}", style="dim"))


def _print_bad(v: Verdict, console: Console) -> None:
    console.print(Text(f"{printable(v.name)}  {phrases.verdict_word(v)}", style="bold"))
    if v.error is not None:
        for line in v.error.split("\n"):
            indented(console, printable(line))
        return
    if v.note:
        indented(console, printable(v.note))
    if v.partition:
        console.print(Text("  the kernels agree up to the order of a multi-output fusion's results"))
    for line in (*phrases.final_lines(v), *phrases.step_lines(v)):
        indented(console, line)
    d = v.difference
    if d is None:
        return
    side = d.xla or d.ours
    if side is not None:
        console.print(Text(f"  first difference, in {printable(side.computation)}:"))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    actual, xla = phrases.sides(d.ours, d.xla)
    table.add_row(Text("XLA", style="bold"), Text(xla))
    table.add_row(Text("ours", style="bold"), Text(actual))
    indented(console, table, 4)
    if d.decision:
        indented(console, f"our last decision about it: {printable(d.decision)}", 4, "dim")
