"""Kernels in `explain` for the terminal: those that take longest, those of a pass, those asked for."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.page import name_text
from hlofuse.format.terminal import indented, plain_table, print_more
from hlofuse.format.units import bytes_text, listing, plural, us_text
from hlofuse.reports.common.costs import roofline
from hlofuse.reports.explain import phrases
from hlofuse.reports.explain.model import Explanation, FusedGroup, FusedStep, Selection

_STEPS = 6  # of one kernel; the first kernel shows more
_FREE = 8  # operations named that no estimate was made for
_NAME = 44  # columns of a wide terminal for producer and consumer


def print_selected(e: Explanation, selection: Selection, console: Console, limit: int) -> None:
    """The kernels that were asked for, each with its figures and what it holds of what was asked for."""
    console.print()
    console.print(Text(phrases.selection_line(selection, e), style="bold cyan"))
    for k in selection.kernels[: limit or None]:
        first, *others = phrases.selected_kernel_lines(k, e, selection)
        name = name_text(k.kernel.place.shown, style="bold")
        name.append(f"  {first}", style="not bold")
        indented(console, name)
        for line in others:
            indented(console, line, 4, "dim")
    print_more(console, len(selection.kernels) - (limit or len(selection.kernels)), "kernel")


def print_timed_kernel(g: FusedGroup, console: Console, limit: int) -> None:
    """A kernel: what it saved, what bounds it now, and the steps that made it, dearest first."""
    name = name_text(g.fusion.shown, style="bold")
    copies = 1 + len(g.equivalents)
    if g.equivalents:
        name.append(f" ×{copies}")
    reported = []
    if g.us_saved is not None:
        reported.append(phrases.saves_text(g.us_saved * copies))
    if g.bytes_saved < 0:
        reported.append(f"{bytes_text(-g.bytes_saved * copies)} more traffic")
    elif g.bytes_saved:
        verb = "" if reported and (g.us_saved or 0.0) >= 0 else "saves "
        reported.append(verb + bytes_text(g.bytes_saved * copies))
    if reported:
        name.append("  " + ", ".join(reported), style="not bold")
    where = phrases.sources(g)
    if where:
        name.append(f"  {printable(where)}", style="not bold dim")
    indented(console, name)
    if g.kernel is not None:
        indented(console, roofline(g.kernel), 4, "dim")
    _print_steps(g, console, 0 if not limit else _STEPS)


def _print_steps(g: FusedGroup, console: Console, limit: int) -> None:
    reported = sorted((s for s in g.steps if s.us_saved is not None), key=_hot_kernels)
    free = [s for s in g.steps if s.us_saved is None]
    table = plain_table(("", "right"), ("", "left"), ("", "right"), ("", "left"))
    table.columns[1].max_width = max(24, min(_NAME, console.width // 3))
    shown = reported[:limit] if limit else reported
    for s in shown:
        why = Text(phrases.step_text(s))
        if s.tied_with:
            why.append(f"\n{phrases.tie_text(s.tied_with)}", style="yellow")
        table.add_row(
            Text(str(s.step), style="dim"),
            name_text(s.producer.name, s.consumer),
            Text(us_text(s.us_saved or 0.0)),
            why,
        )
    if shown:
        indented(console, table, 4)
    rest = []
    if len(reported) > len(shown):
        saved = sum(s.us_saved or 0.0 for s in reported[len(shown) :])
        rest.append(f"{plural(len(reported) - len(shown), 'more step', 'more steps')} saved {us_text(saved)}")
    if free:
        rest.append(_free(free))
    if rest:
        lead = "and " if shown else ""
        indented(console, lead + ", ".join(rest), 4, "dim")


def _free(steps: Sequence[FusedStep]) -> str:
    if all(s.producer.opcode in ("bitcast", "") for s in steps):
        return f"{plural(len(steps), 'bitcast')} went in for free"
    return f"took in {listing([printable(s.producer.name) for s in steps], _FREE)}"


def _hot_kernels(s: FusedStep) -> tuple[float, int]:
    return -(s.us_saved or 0.0), s.step
