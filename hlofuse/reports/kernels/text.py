"""`kernels` for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.page import name_text
from hlofuse.format.terminal import plain_table
from hlofuse.format.units import plural
from hlofuse.reports.common.phrases import headline
from hlofuse.reports.kernels import phrases
from hlofuse.reports.kernels.model import Choice, KernelSelection

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.rules.catalogue import Rule


def print_selection(s: KernelSelection, shown: Sequence[Choice], console: Console) -> None:
    """First who runs how much, then the kernels `shown`, then what the rules quoted say."""
    console.print(Text(headline(s), style="bold"))
    console.print(Text(phrases.result_line(s), style="bold"))
    if not s.kernels:
        return
    console.print()
    timed = any(k.us is not None for k in s.kernels)
    table = plain_table(("run by", "left"), ("kernels", "right"), ("est." if timed else "bytes", "right"))
    for r in s.runners:
        figure = phrases.runner_figure(r) if r.us is not None or not timed else "–"
        table.add_row(Text(printable(r.name)), f"{r.kernels:,}", figure)
    console.print(table)
    console.print()
    _print_kernels(shown, console, timed)
    more = phrases.omitted(s, len(shown))
    if more:
        console.print(Text(more, style="dim"))
    _print_rules(shown, console)


def _print_kernels(shown: Sequence[Choice], console: Console, timed: bool) -> None:
    launched = any(k.blocks is not None for k in shown)
    columns = [("kernel", "left"), (phrases.cost_heading(shown, timed=timed), "right")]
    if launched:
        columns.append(("blocks × threads", "right"))
    table = plain_table(*columns, ("run by", "left"))
    for k in shown:
        why = Text(f"{printable(k.run_by)}  ", style="bold")
        why.append(phrases.because(k), style="not bold")
        for line in phrases.note_lines(k):
            why.append(f"\n{line}", style="not bold yellow")
        if k.source or k.layer:
            where = ": ".join(filter(None, (k.layer, k.source)))
            why.append(f"\n{printable(where)}", style="not bold dim")
        launch = [phrases.launch_text(k)] if launched else []
        table.add_row(_name(k), phrases.cost_text(k), *launch, why)
    console.print(table)


def _name(k: Choice) -> Text:
    """The final name, below it the name at the end of fusion where it is another."""
    text = name_text(k.final or k.name)
    if k.final not in (None, k.name):
        text.append(f"\n{printable(k.name)}", style="dim")
    return text


def _print_rules(shown: Sequence[Choice], console: Console) -> None:
    rules: dict[str, Rule] = {}
    for k in shown:
        for rule in (k.rule, *(note.rule for note in k.notes)):
            rules[rule.code] = rule
    if rules:
        console.print()
        names = " ".join(sorted(rules))
        console.print(
            Text(
                f"What {plural(len(rules), 'rule')} asked and why: hlofuse rule {names}",
                style="dim",
            )
        )
