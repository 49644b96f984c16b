"""What a report says of a pair of dumps of XLA:TPU, in words."""

from __future__ import annotations

from collections import Counter

from hlofuse.format.units import plural
from hlofuse.reports.tpu.model import TpuEdge, TpuPair

_NAMES = {"cpu": "CPU", "gpu": "GPU"}
CLOSED = (
    "XLA:TPU's fusion passes are closed: what they did is read off the dumps; why is not known, and no reason"
    " is made up."
)

OTHERS = (
    "For comparison the passes of CPU and GPU were replayed on the same module. They do not see the tiles of"
    " its layouts, and the library fusions (matrix products, softmax) that come ahead of them in their own"
    " compilations are not there."
)


def headline(p: TpuPair) -> str:
    """The module and the two dumps."""
    return f"{p.module} on TPU: {p.before} → {p.after}"


def kernels_line(p: TpuPair) -> str:
    """Kernels before and after, and what the passes of other targets would leave."""
    others = ", ".join(
        f"{n:,} on {_NAMES[t]}" + (f" ({p.device})" if t == "gpu" else "")
        for t, n in p.kernels_elsewhere.items()
    )
    return f"{p.kernels_before:,} kernels → {p.kernels_after:,}    (would be {others})"


def agreement_lines(p: TpuPair) -> list[str]:
    """How many pairs the other targets would decide as TPU did."""
    lines = []
    for target in p.kernels_elsewhere:
        same = sum(e.on_tpu == e.elsewhere[target] for e in p.edges)
        lines.append(f"{_NAMES[target]} would decide {same:,} of {len(p.edges):,} pairs as TPU did")
    if p.changed:
        lines.append(f"{plural(p.changed, 'pair')} left out: other passes changed an end of them in between")
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
                title = f"fused on {name}, kept apart on TPU, why is not known"
            else:
                code = e.rules.get(target)
                rule = p.rules.get(code or "")
                why = f"{code}, {rule.title}" if rule is not None else "no rule settled it by itself"
                title = f"fused on TPU, kept apart on {name}: {why}"
            groups.setdefault(title, []).append(e)
    counts = Counter({title: len(edges) for title, edges in groups.items()})
    return [
        (f"{plural(n, 'pair')} {title}", sorted(groups[title], key=lambda e: -e.bytes_between))
        for title, n in counts.most_common()
    ]
