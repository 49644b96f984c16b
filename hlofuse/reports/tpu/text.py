"""Fusions of XLA:TPU, for the terminal."""

from collections import Counter

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.page import name_text
from hlofuse.format.terminal import indented, plain_table, print_more
from hlofuse.format.units import bytes_text, plural
from hlofuse.reports.diff import phrases
from hlofuse.reports.tpu.model import TpuEdge, TpuPair

_NAMES = {"cpu": "CPU", "gpu": "GPU"}
CLOSED = "XLA:TPU's fusion passes are not public: the dumps show what they did, not why."

OTHERS = (
    "The CPU and GPU fusion passes were replayed on the same module for comparison, without its tiled layouts"
    " and without the library fusions (matmul, softmax) that run before them."
)


def headline(p: TpuPair) -> str:
    return f"{p.module} on TPU: {p.before} → {p.after}"


def kernels_line(p: TpuPair) -> str:
    """Kernels before and after, and what the passes of other targets would leave."""
    others = ", ".join(
        f"{n:,} on {_NAMES[t]}" + (f" ({p.device})" if t == "gpu" else "")
        for t, n in p.kernels_elsewhere.items()
    )
    return f"{p.kernels_before:,} kernels → {p.kernels_after:,}    (replayed: {others})"


def agreement_lines(p: TpuPair) -> list[str]:
    """The number of pairs that the other targets would decide as TPU did."""
    lines = []
    for target in p.kernels_elsewhere:
        same = sum(e.on_tpu == e.elsewhere[target] for e in p.edges)
        lines.append(f"{_NAMES[target]} decides {same:,} of {len(p.edges):,} pairs the same")
    if p.changed:
        lines.append(f"{plural(p.changed, 'pair')} excluded: other passes changed one of the two")
    return lines


def differences(p: TpuPair) -> list[tuple[str, list[TpuEdge]]]:
    """Pairs decided otherwise, by what is known of why; the frequent first."""
    groups: dict[str, list[TpuEdge]] = {}
    for e in p.edges:
        for target, fused in e.elsewhere.items():
            if fused == e.on_tpu:
                continue
            name = _NAMES[target]
            if fused:
                title = f"fused on {name}, not fused on TPU (reason unknown)"
            else:
                code = e.rules.get(target)
                rule = p.rules.get(code or "")
                why = f"{code}, {rule.title}" if rule is not None else "no single rule decides it"
                title = f"fused on TPU, not fused on {name}: {why}"
            groups.setdefault(title, []).append(e)
    counts = Counter({title: len(edges) for title, edges in groups.items()})
    return [
        (f"{plural(n, 'pair')} {title}", sorted(groups[title], key=lambda e: -e.bytes_between))
        for title, n in counts.most_common()
    ]


def print_tpu(p: TpuPair, console: Console, *, limit: int = 10) -> None:
    """The result, the fusions that were created, then how the others would have done."""
    console.print(Text(printable(headline(p)), style="bold"))
    console.print(Text(kernels_line(p), style="bold green" if p.kernels_after < p.kernels_before else "bold"))
    console.print(Text(CLOSED))
    console.print()
    console.print(Text("TPU fusions", style="bold cyan"))
    rows = plain_table(("", "left"), ("", "left"))
    for change in p.changes[: limit or None]:
        what = "\n".join([phrases.what_happened(change), *phrases.inside(change)])
        rows.add_row(Text(str(change.kind)), Text("\n".join(printable(x) for x in what.split("\n"))))
    indented(console, rows)
    print_more(console, len(p.changes) - (limit or len(p.changes)))
    console.print()
    console.print(Text("CPU and GPU on the same module", style="bold cyan"))
    indented(console, OTHERS, 2, "dim")
    for line in agreement_lines(p):
        indented(console, line)
    for title, edges in differences(p):
        indented(console, printable(title), 2, "yellow")
        for e in edges[: min(3, limit) if limit else None]:
            pair = name_text(e.producer, e.consumer).append(f"  {bytes_text(e.bytes_between)}")
            indented(console, pair, 6)
        if limit:
            print_more(console, len(edges) - min(3, limit), indent=6)
