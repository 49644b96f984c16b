"""For a terminal and a log."""

from rich.console import Console
from rich.table import Table

from hlofuse.format.escape import printable
from hlofuse.format.terminal import print_lines
from hlofuse.reports.common.phrases import changed_lines, loops_line
from hlofuse.reports.common.profile import joined_line
from hlofuse.reports.verdict.phrases import answer_lines
from .model import Check, Finding, Level
from .phrases import figures, listed, origin, pair, verdict, worth

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.NOTE: "dim"}


def print_check(check: Check, console: Console, limit: int = 0) -> None:
    """The verdict, then each module with what broke, where and by which rule; of many the first `limit`."""
    console.print(verdict(check), style="bold red" if check.failed else "bold green")
    print_lines(console, changed_lines(check.what_if), 0)
    print_lines(console, map(printable, check.notes), 0, "yellow")
    seen: set[str] = set()
    for m in check.modules[: limit or None]:
        base = m.baseline
        line = f"{printable(m.profile.name)}  {figures(m.profile.figures)}"
        if base is not None and base.figures != m.profile.figures:
            line += f"  (baseline {figures(base.figures)})"
        _hanging(console, f"{'FAIL' if m.failed else 'ok':<6}", line, "red" if m.failed else None)
        if m.profile.loops:
            _hanging(console, " " * 6, loops_line(m.profile.loops), "dim")
        if m.profile.measured is not None:
            _hanging(console, " " * 6, joined_line(m.profile.measured))
        if base is not None and base.release != m.profile.release:
            line = f"baseline of {_release(base.release)}, now {_release(m.profile.release)}"
            _hanging(console, " " * 6, line)
        for f in m.findings:
            _finding(f, console, seen)
        if m.verdict is not None:
            for line in answer_lines(m.verdict):
                _hanging(console, " " * 6, line)
    for f in check.others:
        _hanging(console, " " * 6, f"{printable(f.module)}: {f.message}", _STYLES[f.level])


def _hanging(console: Console, lead: str, text: str, style: str | None = None) -> None:
    """`text` after `lead`, its further lines below its first."""
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(lead, text)
    console.print(grid, style=style)


def _release(name: str) -> str:
    return f"XLA in {printable(name)}" if name else "a fused module"


def _finding(f: Finding, console: Console, seen: set[str]) -> None:
    """`seen`: pairs of kernels that were shown further up, and rules that were explained."""
    place = printable(origin(f.where))
    head = f"{f.message}  [{f.code.value}]"
    _hanging(console, f"  {f.level.value}  ", f"{head}  {place}" if place else head, _STYLES[f.level])
    for title, kernels in (("was", f.before), ("now", f.now)):
        for n, line in enumerate(listed(kernels)):
            _hanging(console, f"      {title if n == 0 else '':<5}", printable(line))
    for h in f.refused_edges:
        source = printable(origin(h.where))
        line = f"{printable(pair(h))}  {worth(h)}  {source}".rstrip()
        if (shown := f"{f.module}: {line}") in seen:
            continue
        seen.add(shown)
        _hanging(console, f"      {h.rule}  ", line)
        if h.rule not in seen:
            seen.add(h.rule)
            for text, style in ((h.title, None), (h.advice, "dim")):
                if text:
                    _hanging(console, " " * (len(h.rule) + 8), printable(text), style)
