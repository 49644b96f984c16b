"""The parts of `explain` for the terminal that tell of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from hlofuse.explainer.cost_words import roofline, tie_text, us_text, why_saves
from hlofuse.explainer.model import FusedGroup, FusedStep, Rewrite, RuleText
from hlofuse.explainer.tables import plain_table
from hlofuse.explainer.words import sources
from hlofuse.present.escape import printable
from hlofuse.present.units import bytes_text, plural

if TYPE_CHECKING:
    from rich.console import Console

_STEPS = 6  # of one kernel; the first kernel shows more
_NAME = 44  # columns of a wide terminal for producer and consumer


def print_timed_kernel(g: FusedGroup, console: Console, limit: int) -> None:
    """A kernel: what it saved, what bounds it now, and the steps that made it, dearest first."""
    name = Text(printable(g.fusion.name), style="bold")
    copies = 1 + len(g.alike)
    if g.alike:
        name.append(f" ×{copies}")
    launches = plural(len(g.steps) * copies, "launch", "launches")
    time = us_text(g.us_saved * copies) if g.us_saved is not None else launches
    saved = f"  saves {time}, {bytes_text(g.bytes_saved * copies)}"
    name.append(saved, style="not bold")
    origin = sources(g)
    if origin:
        name.append(f"  {printable(origin)}", style="not bold dim")
    console.print(Padding(name, (0, 0, 0, 2)))
    if g.kernel is not None:
        console.print(Padding(Text(roofline(g.kernel), style="dim"), (0, 0, 0, 4)))
    _print_steps(g, console, 0 if not limit else _STEPS)


def _print_steps(g: FusedGroup, console: Console, limit: int) -> None:
    told = sorted((s for s in g.steps if s.cost is not None), key=_dearest)
    free = [s for s in g.steps if s.cost is None]
    table = plain_table(("step", "right"), ("", "left"), ("saves", "right"), ("", "left"))
    table.show_header = False
    table.columns[1].max_width = max(24, min(_NAME, console.width // 3))
    shown = told[:limit] if limit else told
    for s in shown:
        assert s.cost is not None
        why = Text(why_saves(s.cost, s.producer.opcode))
        if s.tied_with:
            why.append(f"\n{tie_text(s.tied_with)}", style="yellow")
        table.add_row(Text(str(s.step), style="dim"), _pair(s), Text(us_text(s.cost.us_saved)), why)
    if shown:
        console.print(Padding(table, (0, 0, 0, 4)))
    rest = []
    if len(told) > len(shown):
        saved = sum(s.cost.us_saved for s in told[len(shown) :] if s.cost is not None)
        rest.append(f"{plural(len(told) - len(shown), 'more step', 'more steps')} saved {us_text(saved)}")
    if free:
        rest.append(_free(free))
    if rest:
        lead = "and " if shown else ""
        console.print(Padding(Text(lead + ", ".join(rest), style="dim"), (0, 0, 0, 4)))


def _free(steps: Sequence[FusedStep]) -> str:
    if all(s.kind != "producer-consumer" for s in steps):
        return f"took in {', '.join(printable(s.producer.name) for s in steps[:4])}" + (
            f" and {len(steps) - 4} more" if len(steps) > 4 else ""
        )
    if all(s.producer.opcode in ("bitcast", "") for s in steps):
        return f"{plural(len(steps), 'bitcast')} went in for free"
    return f"{plural(len(steps), 'other operation')} went in as well"


def _dearest(s: FusedStep) -> tuple[float, int]:
    return (-s.cost.us_saved if s.cost is not None else 0.0), s.step


def _pair(s: FusedStep) -> Text:
    text = Text(printable(s.producer.name))
    text.append(" → ", style="dim")
    text.append(printable(s.consumer))
    return text


def print_housekeeping(rewrites: Sequence[Rewrite], rules: dict[str, RuleText], console: Console) -> None:
    """A line for each rule: what was replaced is of interest to few."""
    by_rule: dict[str, list[str]] = {}
    for r in rewrites:
        by_rule.setdefault(r.rule or "", []).extend(r.removed)
    for code, names in by_rule.items():
        known = rules.get(code)
        text = Text(f"{code}  ", style="yellow")
        text.append(printable(known.title) if known is not None else "", style="default")
        listed = ", ".join(printable(n) for n in names[:3])
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        text.append(f": {listed}{more}", style="dim")
        console.print(Padding(text, (0, 0, 0, 2)))
