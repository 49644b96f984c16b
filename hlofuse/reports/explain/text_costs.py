"""The parts of `explain` for the terminal that tell of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.reports.explain.cost_phrases import roofline, saves_text, step_text, tie_text
from hlofuse.reports.explain.model import Explanation, FusedGroup, FusedStep
from hlofuse.reports.explain.phrases import bound_text, dear_name, dear_origin, share_of, sources
from hlofuse.reports.explain.tables import plain_table

if TYPE_CHECKING:
    from rich.console import Console

_DEAREST = 5  # kernels, or kinds of them
_STEPS = 6  # of one kernel; the first kernel shows more
_FREE = 8  # operations named that no estimate was made for
_NAME = 44  # columns of a wide terminal for producer and consumer


def print_dearest(e: Explanation, console: Console) -> None:
    """Where the time goes in the end; nothing of a module with a kernel or two."""
    shown = e.dearest[:_DEAREST]
    if len(e.dearest) < 3:
        return
    table = plain_table(("", "right"), ("", "right"), ("", "left"), ("", "left"), ("", "left"))
    table.show_header = False
    for k in shown:
        where = Text(dear_origin(k), style="dim")
        table.add_row(
            Text(us_text(k.us)), Text(share_of(k, e)), Text(dear_name(k)), Text(bound_text(k)), where
        )
    console.print()
    console.print(Text("where the time goes in the end, launches included", style="bold cyan"))
    console.print(Padding(table, (0, 0, 0, 2)))


def print_timed_kernel(g: FusedGroup, console: Console, limit: int) -> None:
    """A kernel: what it saved, what bounds it now, and the steps that made it, dearest first."""
    name = Text(printable(g.fusion.name), style="bold")
    copies = 1 + len(g.alike)
    if g.alike:
        name.append(f" ×{copies}")
    told = []
    if g.us_saved is not None:
        told.append(saves_text(g.us_saved * copies))
    if g.bytes_saved < 0:
        told.append(f"{bytes_text(-g.bytes_saved * copies)} more traffic")
    elif g.bytes_saved:
        verb = "" if told and (g.us_saved or 0.0) >= 0 else "saves "
        told.append(verb + bytes_text(g.bytes_saved * copies))
    if told:
        name.append("  " + ", ".join(told), style="not bold")
    where = sources(g)
    if where:
        name.append(f"  {printable(where)}", style="not bold dim")
    console.print(Padding(name, (0, 0, 0, 2)))
    if g.kernel is not None:
        console.print(Padding(Text(roofline(g.kernel), style="dim"), (0, 0, 0, 4)))
    _print_steps(g, console, 0 if not limit else _STEPS)


def _print_steps(g: FusedGroup, console: Console, limit: int) -> None:
    told = sorted((s for s in g.steps if s.us_saved is not None), key=_dearest)
    free = [s for s in g.steps if s.us_saved is None]
    table = plain_table(("step", "right"), ("", "left"), ("saves", "right"), ("", "left"))
    table.show_header = False
    table.columns[1].max_width = max(24, min(_NAME, console.width // 3))
    shown = told[:limit] if limit else told
    for s in shown:
        why = Text(step_text(s))
        if s.tied_with:
            why.append(f"\n{tie_text(s.tied_with)}", style="yellow")
        table.add_row(Text(str(s.step), style="dim"), _pair(s), Text(us_text(s.us_saved or 0.0)), why)
    if shown:
        console.print(Padding(table, (0, 0, 0, 4)))
    rest = []
    if len(told) > len(shown):
        saved = sum(s.us_saved or 0.0 for s in told[len(shown) :])
        rest.append(f"{plural(len(told) - len(shown), 'more step', 'more steps')} saved {us_text(saved)}")
    if free:
        rest.append(_free(free))
    if rest:
        lead = "and " if shown else ""
        console.print(Padding(Text(lead + ", ".join(rest), style="dim"), (0, 0, 0, 4)))


def _free(steps: Sequence[FusedStep]) -> str:
    if all(s.producer.opcode in ("bitcast", "") for s in steps):
        return f"{plural(len(steps), 'bitcast')} went in for free"
    more = f" and {len(steps) - _FREE} more" if len(steps) > _FREE else ""
    return f"took in {', '.join(printable(s.producer.name) for s in steps[:_FREE])}{more}"


def _dearest(s: FusedStep) -> tuple[float, int]:
    return -(s.us_saved or 0.0), s.step


def _pair(s: FusedStep) -> Text:
    text = Text(printable(s.producer.name))
    text.append(" → ", style="dim")
    text.append(printable(s.consumer))
    return text
