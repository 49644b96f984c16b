"""`kernels` for the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hlofuse.format import bytes_text, plural, printable, us_text
from hlofuse.format.terminal import final_name_text, plain_table, print_lines, print_more, print_rows
from hlofuse.reports.common.functions import function_table
from hlofuse.reports.common.phrases import changed_lines, figures_text, measured_text
from .model import Choice, KernelSelection

_NOT_RUN = (
    "not counted: XLA evaluates no condition of a loop whose trip count is known; one branch of a conditional"
    " runs, and the costliest counts"
)
_CLOSED = "The emitter or library of each kernel is not known."
_PER = "one iteration: the dump does not tell the trip count of the loop"
_PASSES = 2  # other than those of fusion, of one kernel


def result_line(s: KernelSelection) -> str:
    """The number of kernels, their stage, and their estimated time."""
    when = "after fusion, replayed" if s.replayed else "as in the dump"
    when = "in XLA's final module" if s.from_xla else when
    line = f"{plural(len(s.kernels), 'kernel')} {when}"
    if s.selected is not None:
        own = f"{len(s.kernels):,} of {plural(s.launched, 'kernel')}"
        line = f"{printable(s.selected)}: {own} {when}"
    times = [k.us * k.runs for k in s.kernels if k.us is not None]
    if times:
        is_floor = any(k.is_floor or k.us is None for k in s.kernels if k.runs)
        line += f"    est. {us_text(sum(times) + s.call_us, is_floor)}"
        if len(times) < len(s.kernels):
            line += f" without {len(s.kernels) - len(times)} of unknown time"
    return line


def cost_heading(shown: Sequence[Choice], *, timed: bool) -> str:
    """The heading of the column that `cost_text` fills; `timed` where there is a time model."""
    if not timed:
        return "bytes"
    return "est. or bytes" if any(k.us is None for k in shown) else "est."


def cost_text(k: Choice) -> str:
    """Its estimated time, else its bytes, and its launches; a dash where neither is known."""
    if not k.runs:
        return "not counted"
    times = f" × {k.launches:,}" if k.launches != 1 else ""
    times += ", one iteration" if k.per_iteration else ""
    if k.us is not None:
        return ("not known" if k.is_open else us_text(k.us, k.is_floor)) + times
    return bytes_text(k.bytes_accessed, k.bytes_floor) + times if k.bytes_accessed is not None else "–"


def because(k: Choice) -> str:
    """The rule and what it rested on."""
    return " ".join(filter(None, (k.code, figures_text(k.figures))))


def note_lines(k: Choice) -> list[str]:
    """Notes on a kernel, one for each rule."""
    found = []
    for note in k.notes:
        figures = figures_text(note.figures)
        found.append(f"{note.rule.code} {note.rule.title}" + (f": {figures}" if figures else ""))
    return found + [f"{m.rule.code} {m.pass_name}: {m.reason}" for m in k.created_by[:_PASSES]]


def print_selection(s: KernelSelection, shown: Sequence[Choice], console: Console) -> None:
    """First who runs how much, then the kernels `shown`, then what the rules quoted say."""
    print_lines(console, changed_lines(s.what_if), 0, "bold")
    console.print(result_line(s), style="bold")
    if not s.kernels:
        return
    console.print()
    timed = any(k.us is not None for k in s.kernels)
    table = plain_table(
        ("implementation", "left"), ("kernels", "right"), ("est." if timed else "bytes", "right")
    )
    for r in s.runners:
        figure = "–" if timed else bytes_text(r.bytes_accessed)
        if r.us is not None:
            figure = us_text(r.us, r.is_floor)
        table.add_row(printable(r.name), f"{r.kernels:,}", figure)
    if s.call_us:
        table.add_row("call of the program and its loops", "", us_text(s.call_us))
    console.print(_CLOSED if s.is_closed else table)
    if s.functions.rows:
        console.print()
        console.print(function_table(s.functions, console.width))
    console.print()
    launched = any(k.blocks is not None for k in shown)
    launch = [("blocks × threads", "right")] if launched else []
    measured = any(k.measured is not None for k in shown)
    columns = [
        ("kernel", "name"),
        *([("measured", "right")] if measured else []),
        (cost_heading(shown, timed=timed), "right"),
        *launch,
        ("line" if s.is_closed else "implementation", "left"),
    ]
    rows, seen = list[list[str | Text]](), dict[str, str]()  # the last reason of each rewrite
    for k in shown:
        why = Text(f"{printable(k.run_by)}  ", style="bold")
        why.append(because(k), style="not bold")
        for line in note_lines(k):
            rewrite, _, reason = line.partition(": ")
            why.append(f"\n{rewrite if seen.get(rewrite) == reason else line}", style="not bold yellow")
            seen[rewrite] = reason
        where = ": ".join(filter(None, (k.layer, k.line)))
        if s.is_closed:
            why = Text(printable(where))
        elif where:
            why.append(f"\n{printable(where)}", style="not bold dim")
        size = [(f"{k.blocks:,} × {k.threads:,}" if k.blocks is not None else "")] if launched else []
        times = [measured_text(k.measured)] if measured else []
        name = final_name_text(k.final, k.name, k.count)
        rows.append([name, *times, cost_text(k), *size, why])
    print_rows(console, columns, rows, drop=(2 + measured,) if launched else ())
    print_more(console, len(s.kernels) - sum(k.count for k in shown), indent=0)
    for applies, note in (
        (not all(k.runs for k in shown), _NOT_RUN),
        (any(k.per_iteration for k in shown), _PER),
    ):
        if applies:
            console.print(f"\n{note}", style="dim")
    codes = {rule.code for k in shown for rule in k.rules}
    codes |= {m.rule.code for k in shown for m in k.created_by if m.rule.code}
    if codes:
        names = " ".join(sorted(codes))
        console.print(f"\nConditions and reasons: hlofuse rule {names}", style="dim")
