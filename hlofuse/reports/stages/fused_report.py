"""A module after fusion, for the terminal, as markdown and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from hlofuse.format.command_line import command_line, print_command
from hlofuse.format.escape import markdown, markdown_code, printable
from hlofuse.format.markdown import table
from hlofuse.format.units import bytes_text, plural
from hlofuse.reports.explain.advice import advice_line, can_be_acted_on
from hlofuse.reports.explain.phrases import figures_text
from hlofuse.reports.explain.tables import plain_table
from hlofuse.reports.stages.model import Boundary, Fused, Kernel

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "hlofuse.explain-fused/1"
_OPCODES = 6
_BETTER = "The dump ahead of fusion lies beside it and tells every decision:"
Group = tuple[str, list[Boundary]]
"""A rule's code, or why nothing is known, and the pairs it is about."""


def print_fused(f: Fused, console: Console, *, limit: int = 10, better: Sequence[str] = ()) -> None:
    """What the module is, its kernels, then the rule at each boundary.

    `better` are the words for `hlofuse explain` of the dump ahead of fusion, where that lies beside.
    """
    for line, style in _head(f):
        console.print(Text(printable(line), style=style))
    if better:
        console.print(Text(_BETTER, style="green"))
        print_command(console, 2, "explain", *better)
    console.print()
    console.print(Text("kernels that are there", style="bold cyan"))
    rows = plain_table(("kernel", "left"), ("moves", "right"), ("what is in it", "left"))
    for k in f.kernels[: limit or None]:
        rows.add_row(Text(printable(k.name)), bytes_text(k.bytes), Text(printable(_contents(k))))
    console.print(Padding(rows, (0, 0, 0, 2)))
    _more(console, len(f.kernels), limit, "kernel")
    console.print()
    if not f.boundaries:
        console.print(Text("No kernel reads what another one wrote."))
        return
    console.print(Text("why these are still two kernels", style="bold cyan"))
    for code, held in _groups(f)[: limit or None]:
        _print_group(f, code, held, console, limit)
    _more(console, len(_groups(f)), limit, "reason")


def _print_group(f: Fused, code: str, held: list[Boundary], console: Console, limit: int) -> None:
    known = f.rules.get(code)
    head = Text(f"{code}  {printable(known.title)}" if known else f"not known: {printable(code)}")
    head.stylize("yellow" if known else "dim")
    head.append(f"   {plural(len(held), 'boundary', 'boundaries')}, {bytes_text(_bytes(held))}", style="bold")
    console.print(Padding(head, (0, 0, 0, 2)))
    for b in held[: min(3, limit) or None]:
        line = Text(f"{printable(b.producer)} → {printable(b.consumer)}  {bytes_text(b.bytes_between)}")
        if b.figures:
            line.append(f"  {figures_text(b.figures)}", style="dim")
        console.print(Padding(line, (0, 0, 0, 6)))
    if limit and len(held) > min(3, limit):
        console.print(Padding(Text(f"and {len(held) - min(3, limit)} more", style="dim"), (0, 0, 0, 6)))
    if known and can_be_acted_on(known):
        console.print(Padding(Text(advice_line(known)), (0, 0, 0, 6)))


def _head(f: Fused) -> list[tuple[str, str]]:
    on = f"{f.target} ({f.device})" if f.device else f.target
    kernels = plural(len(f.kernels), "kernel")
    between = plural(len(f.boundaries), "boundary", "boundaries")
    lines = [
        (f"{f.module} on {on}, after fusion ({f.evidence})", "bold"),
        (f"{kernels}, {between} between them; rules as in {f.release}", "bold"),
        (f.how, ""),
    ]
    if f.unknown:
        lines.append((f"Of {len(f.unknown):,} the reason is not known, and none is made up.", "yellow"))
    if f.right_file is None:
        lines.append(("Every decision in order is told by the dump ahead of fusion (docs/cli.md).", "dim"))
    return lines


def _groups(f: Fused) -> list[Group]:
    """By rule, most bytes first; what is not known comes last."""
    found: dict[str, list[Boundary]] = {}
    for b in f.boundaries:
        found.setdefault(b.rule or b.reason, []).append(b)
    return sorted(found.items(), key=lambda g: (g[1][0].rule is None, -_bytes(g[1]), g[0]))


def _bytes(held: Sequence[Boundary]) -> int:
    return sum(b.bytes_between for b in held)


def _contents(k: Kernel) -> str:
    if not k.opcodes:
        return k.opcode
    counts = Counter(k.opcodes).most_common()
    parts = [f"{op} ×{n}" if n > 1 else op for op, n in counts[:_OPCODES]]
    return f"{k.kind}: {', '.join(parts)}{', …' if len(counts) > _OPCODES else ''}"


def _more(console: Console, count: int, limit: int, what: str) -> None:
    if limit and count > limit:
        text = f"and {plural(count - limit, f'more {what}')} (--limit)"
        console.print(Padding(Text(text, style="dim"), (0, 0, 0, 2)))


def fused_markdown(f: Fused, *, limit: int = 10, better: Sequence[str] = ()) -> str:
    """The same as a markdown document."""
    (title, _), *rest = _head(f)
    out = [f"## {markdown(title)}\n", *(f"{markdown(line)}\n" for line, _ in rest)]
    if better:
        out.append(f"{_BETTER} {markdown_code(command_line('explain', *better))}\n")
    rows = [[markdown_code(k.name), bytes_text(k.bytes), markdown(_contents(k))] for k in f.kernels]
    out += ["### Kernels\n", table(["kernel", "moves", "what is in it"], rows[: limit or None], right=(1,))]
    pairs = [
        [
            markdown_code(b.producer),
            markdown_code(b.consumer),
            bytes_text(b.bytes_between),
            b.rule or "",
            markdown(f.rules[b.rule].title if b.rule in f.rules else b.reason),
        ]
        for _, held in _groups(f)
        for b in held
    ]
    if pairs:
        heads = ["producer", "consumer", "bytes", "rule", "what stands in the way"]
        out += ["### Why these are still two kernels\n", table(heads, pairs[: limit or None], right=(2,))]
    return "\n".join(out)


def fused_json(f: Fused) -> dict[str, Any]:
    """Everything; `docs/stages.md` says what the fields mean."""
    return {"schema": SCHEMA, **asdict(f)}
