"""For a terminal and a log, and sentences that the formats share, each of which makes them safe itself."""

from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from hlofuse.format import bytes_text, listing, plural, printable, undivided, us_text
from hlofuse.format.terminal import print_lines
from hlofuse.ir import grouped
from hlofuse.reports.common.phrases import changed_lines, loops_line
from hlofuse.reports.common.profile import joined_line
from hlofuse.reports.verdict.phrases import answer_lines
from .model import BaselineKernel, Check, Figures, Finding, Level, RefusedEdge, Where

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.NOTE: "dim"}
MOST_KERNELS = 8  # Kernels of one side that are listed for a finding


def figures(f: Figures) -> str:
    """`4 kernels, 21.0 MB, est. 12.3 µs`; `15.1 µs measured` where there is a profile."""
    parts = [plural(f.kernels, "kernel"), bytes_text(f.bytes, f.unknown)]
    if f.us is not None:
        parts.append(f"est. {us_text(f.us, f.has_floors)}")
    if f.measured_us is not None:
        parts.append(f"{us_text(f.measured_us)} measured")
    if f.memory is not None:
        parts.append(f"{bytes_text(f.memory)} of memory")
    return ", ".join(parts) + undivided(f.devices)


def verdict(check: Check) -> str:
    """The first line: what broke, in how many modules."""
    if check.updated and not check.failed:
        return f"wrote baseline: {plural(len(check.modules), 'module')}"
    if not check.modules and not check.others:
        return "No difference"
    if not check.failed:
        warnings = sum(f.level is Level.WARNING for f in check.findings)
        extra = f", {plural(warnings, 'warning')}" if warnings else ""
        return f"{plural(len(check.modules), 'module')} OK{extra}"
    failed = {f.module for f in check.findings if f.level is Level.ERROR}
    modules = failed.union(m.profile.name for m in check.modules)
    return f"{len(failed):,} of {plural(len(modules), 'module')} failed"


def listed(kernels: Iterable[BaselineKernel]) -> list[str]:
    """`2 × programs.py:89 softmax  kLoop: divide  loop_divide_fusion (fusion.3)`, most of them."""
    similar = grouped(((at(k.where), k.what), k.shown) for k in kernels)
    lines = []
    for (where, what), names in list(similar.items())[:MOST_KERNELS]:
        times = f"{len(names)} × " if len(names) > 1 else ""
        lines.append(times + "  ".join(filter(None, (where, what, listing(list(filter(None, names)), 2)))))
    if len(similar) > MOST_KERNELS:
        lines.append(f"… {len(similar) - MOST_KERNELS:,} more")
    return lines


def pair(refused_edges: RefusedEdge) -> str:
    """`divide.1 → fusion.2`."""
    ends = (refused_edges.producer, refused_edges.consumer)
    return " → ".join(end.shown for end in ends if end is not None)


def worth(refused_edges: RefusedEdge) -> str:
    """The saving of fusing the two, and the bytes written and read back between them."""
    if refused_edges.us_at_stake is not None and refused_edges.us_at_stake > 0:
        return f"could save {us_text(refused_edges.us_at_stake)}"
    return f"{bytes_text(refused_edges.bytes_between)} written and read back"


def one_line(finding: Finding) -> str:
    """A finding with its rules in one line, for annotations."""
    text = f"{finding.module}: {finding.message}"
    if finding.before and finding.now:
        text += f"; was {'; '.join(_whats(finding.before))}; now {'; '.join(_whats(finding.now))}"
    elif finding.before or finding.now:
        text += f": {'; '.join(_whats(finding.before or finding.now))}"
    for h in finding.refused_edges[:2]:
        text += f". {h.rule} refused {pair(h)} ({h.title}; {worth(h)})"
    return text


def _whats(kernels: Iterable[BaselineKernel]) -> list[str]:
    counted = Counter(k.what for k in kernels)
    return [f"{n} × {what}" if n > 1 else what for what, n in list(counted.items())[:MOST_KERNELS]]


def at(where: Where) -> str:
    return str(where) if where.file else ""


def origin(where: Where) -> str:
    """The layer and the place: `LM/layer_0: model.py:12 apply`."""
    return ": ".join(filter(None, (where.layer, at(where))))


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
                _hanging(console, " " * 2, line)
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
