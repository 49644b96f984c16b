"""What XLA:TPU fused, for the terminal, as markdown and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from hlofuse.diff.report import phrases
from hlofuse.format.escape import markdown, markdown_code, printable
from hlofuse.format.markdown import table
from hlofuse.format.units import bytes_text, plural
from hlofuse.reports.explain.tables import plain_table
from hlofuse.reports.stages.tpu import Edge, TpuPair

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "hlofuse.explain-tpu/1"
_NAMES = {"cpu": "CPU", "gpu": "GPU"}
_CLOSED = (
    "XLA:TPU's fusion passes are closed: what they did is read off the dumps; why is not known, and no reason"
    " is made up."
)
_OTHERS = (
    "For comparison the passes of CPU and GPU were replayed on the same module. They do not see the tiles of"
    " its layouts, and the library fusions (matrix products, softmax) that come ahead of them in their own"
    " compilations are not there."
)


def print_tpu(p: TpuPair, console: Console, *, limit: int = 10) -> None:
    """The result, the fusions that were made, then how the others would have done."""
    console.print(Text(printable(_headline(p)), style="bold"))
    console.print(Text(_kernels(p), style="bold green" if p.kernels_after < p.kernels_before else "bold"))
    console.print(Text(_CLOSED))
    console.print()
    console.print(Text("what TPU did with fusions", style="bold cyan"))
    rows = plain_table(("", "left"), ("", "left"))
    rows.show_header = False
    for change in p.changes[: limit or None]:
        what = "\n".join([phrases.what_happened(change), *phrases.inside(change)])
        rows.add_row(Text(str(change.kind)), Text("\n".join(printable(x) for x in what.split("\n"))))
    console.print(Padding(rows, (0, 0, 0, 2)))
    if limit and len(p.changes) > limit:
        console.print(Text(f"  and {plural(len(p.changes) - limit, 'more fusion')} (--limit)", style="dim"))
    console.print()
    console.print(Text("how CPU and GPU would have done", style="bold cyan"))
    console.print(Padding(Text(_OTHERS, style="dim"), (0, 0, 0, 2)))
    for line in _agreement(p):
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    for title, edges in _differences(p):
        console.print(Padding(Text(printable(title), style="yellow"), (0, 0, 0, 2)))
        for e in edges[: min(3, limit) if limit else None]:
            pair = f"{e.producer} → {e.consumer}  {bytes_text(e.bytes_between)}"
            console.print(Padding(Text(printable(pair)), (0, 0, 0, 6)))
        if limit and len(edges) > min(3, limit):
            console.print(Padding(Text(f"and {len(edges) - min(3, limit)} more", style="dim"), (0, 0, 0, 6)))


def tpu_markdown(p: TpuPair, *, limit: int = 10) -> str:
    """The same as a markdown document."""
    out = [f"## {markdown(_headline(p))}\n", f"{_kernels(p)}\n", f"{_CLOSED}\n", "### What TPU did\n"]
    rows = [
        [str(c.kind), markdown_code(phrases.what_happened(c)), markdown("; ".join(phrases.inside(c)))]
        for c in p.changes[: limit or None]
    ]
    out += [
        table(["", "fusion", "what is in it"], rows),
        "### How CPU and GPU would have done\n",
        f"{_OTHERS}\n",
    ]
    out += [f"{markdown(line)}\n" for line in _agreement(p)]
    pairs = [
        [markdown(title), markdown_code(f"{e.producer} → {e.consumer}"), bytes_text(e.bytes_between)]
        for title, edges in _differences(p)
        for e in edges[: limit or None]
    ]
    if pairs:
        out.append(table(["difference", "pair", "bytes"], pairs, right=(2,)))
    return "\n".join(out)


def tpu_json(p: TpuPair) -> dict[str, Any]:
    """Everything; `docs/stages.md` says what the fields mean."""
    return {
        "schema": SCHEMA,
        "module": p.module,
        "before": p.before,
        "after": p.after,
        "kernels": {"before": p.kernels_before, "after": p.kernels_after, **p.kernels_elsewhere},
        "gpu_device": p.device,
        "fusions": [
            {
                "kind": str(c.kind),
                "before": [i.name for i in c.before],
                "after": [i.name for i in c.after],
                "members": [i.name for i in c.members],
                "joined": [i.name for i in c.joined],
            }
            for c in p.changes
        ],
        "pairs": [
            {
                "producer": e.producer,
                "consumer": e.consumer,
                "bytes_between": e.bytes_between,
                "fused": {"tpu": e.on_tpu, **e.elsewhere},
                "rules": e.rules,
            }
            for e in p.edges
        ],
        "pairs_changed_by_other_passes": p.changed,
        "rules": {code: rule.title for code, rule in p.rules.items()},
    }


def _headline(p: TpuPair) -> str:
    return f"{p.module} on TPU: {p.before} → {p.after}"


def _kernels(p: TpuPair) -> str:
    others = ", ".join(
        f"{n:,} on {_NAMES[t]}" + (f" ({p.device})" if t == "gpu" else "")
        for t, n in p.kernels_elsewhere.items()
    )
    return f"{p.kernels_before:,} kernels → {p.kernels_after:,}    (would be {others})"


def _agreement(p: TpuPair) -> list[str]:
    lines = []
    for target in p.kernels_elsewhere:
        same = sum(e.on_tpu == e.elsewhere[target] for e in p.edges)
        lines.append(f"{_NAMES[target]} would decide {same:,} of {len(p.edges):,} pairs as TPU did")
    if p.changed:
        lines.append(f"{plural(p.changed, 'pair')} left out: other passes changed an end of them in between")
    return lines


def _differences(p: TpuPair) -> list[tuple[str, list[Edge]]]:
    """Pairs decided otherwise, by what is known of why; the frequent first."""
    groups: dict[str, list[Edge]] = {}
    for e in p.edges:
        for target, fused in e.elsewhere.items():
            if fused == e.on_tpu:
                continue
            name = _NAMES[target]
            if fused:
                title = f"fused on {name}, kept apart on TPU, why is not known"
            else:
                code = e.rules.get(target)
                known = p.rules.get(code or "")
                why = f"{code}, {known.title}" if known is not None else "no rule settled it by itself"
                title = f"fused on TPU, kept apart on {name}: {why}"
            groups.setdefault(title, []).append(e)
    counts = Counter({title: len(edges) for title, edges in groups.items()})
    return [
        (f"{plural(n, 'pair')} {title}", sorted(groups[title], key=lambda e: -e.bytes_between))
        for title, n in counts.most_common()
    ]
