"""For a terminal and a log."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from hlofuse.checker.model import Check, Finding, Level
from hlofuse.checker.report.words import figures, listed, origin, pair, verdict, worth
from hlofuse.present.escape import printable
from hlofuse.present.loops import loops_line

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.NOTE: "dim"}


def print_check(check: Check, console: Console) -> None:
    """The verdict, then each module with what broke, where and by which rule."""
    console.print(verdict(check), style="bold red" if check.failed else "bold green")
    if check.what_if:
        console.print(f"what if: {', '.join(map(printable, check.what_if))}")
    for remark in check.remarks:
        console.print(printable(remark), style="yellow")
    told: set[str] = set()
    for m in check.modules:
        base = m.baseline
        line = f"{'FAIL' if m.failed else 'ok':<5} {printable(m.profile.name)}  {figures(m.profile.figures)}"
        if base is not None and base.figures != m.profile.figures:
            line += f"  (baseline {figures(base.figures)})"
        console.print(line, style="red" if m.failed else None, soft_wrap=True)
        if m.profile.loops:
            console.print(f"      {loops_line(m.profile.loops)}", style="dim", soft_wrap=True)
        if base is not None and base.release != m.profile.release:
            console.print(f"      baseline of {_release(base.release)}, now {_release(m.profile.release)}")
        for f in m.findings:
            _finding(f, console, told)
    for f in check.others:
        console.print(f"      {printable(f.module)}: {f.message}", style=_STYLES[f.level])


def _release(name: str) -> str:
    return f"XLA in {printable(name)}" if name else "a module that XLA has fused"


def _finding(f: Finding, console: Console, told: set[str]) -> None:
    """`told`: rules that have been explained further up."""
    place = printable(origin(f.where))
    head = f"  {f.level.value}  {f.message}  [{f.code.value}]"
    console.print(f"{head}  {place}" if place else head, style=_STYLES[f.level], soft_wrap=True)
    for title, kernels in (("was", f.before), ("now", f.now)):
        for n, line in enumerate(listed(kernels)):
            console.print(f"      {title if n == 0 else '':<5}{printable(line)}", soft_wrap=True)
    for h in f.held:
        source = printable(origin(h.where))
        console.print(f"      {h.rule}  {printable(pair(h))}  {worth(h)}  {source}".rstrip(), soft_wrap=True)
        if h.rule not in told:
            told.add(h.rule)
            for words, style in ((h.title, None), (h.advice, "dim")):
                for line in textwrap.wrap(printable(words), max(console.width - 13, 30)):
                    console.print(f"             {line}", style=style)
