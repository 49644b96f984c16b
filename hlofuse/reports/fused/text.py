"""A module after fusion, for the terminal."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hlofuse.format import bytes_text, plural, printable, times
from hlofuse.format.terminal import Rows, indented, name_text, print_command, print_rest
from hlofuse.ir.grouping import grouped
from hlofuse.reports.common.phrases import advice_line, figures_text
from .model import Boundary, Fused, FusedKernel

_OPCODES = 6
BETTER = "The module before fusion is next to it and shows every decision:"
Group = tuple[str, list[Boundary]]  # A rule's code, or why nothing is known, and the pairs it is about


def head_lines(f: Fused) -> list[tuple[str, str]]:
    """The first lines, each with its style: the figures, how the rules were applied, where more is known."""
    kernels = plural(len(f.kernels), "kernel")
    between = plural(len(f.boundaries), "boundary", "boundaries")
    if f.selected is not None:
        kernels = f"{f.selected}: {kernels}"
    rules = f"; rules as in {f.release}" if f.target != "tpu" else ""
    lines = [(f"{kernels}, {between} between them{rules}", "bold"), (f.how, "")]
    if f.right_file is None and rules:
        lines.append(("A dump of the module before fusion shows every decision in order.", "dim"))
    return lines


def by_rule(f: Fused) -> list[Group]:
    """By rule, most bytes first; what is not known comes last."""
    found = grouped((b.rule or b.reason, b) for b in f.boundaries)
    return sorted(found.items(), key=lambda g: (g[1][0].rule is None, -bytes_between(g[1]), g[0]))


def bytes_between(refused: Sequence[Boundary]) -> int:
    return sum(b.bytes_between for b in refused)


def contents(k: FusedKernel) -> str:
    """`kLoop: add ×3, multiply`; the opcode of what is no fusion."""
    if not k.opcodes:
        return k.opcode
    counts = Counter(k.opcodes).most_common()
    parts = [times(*pair) for pair in counts[:_OPCODES]]
    return f"{k.kind}: {', '.join(parts)}{', …' if len(counts) > _OPCODES else ''}"


def print_fused(
    f: Fused,
    console: Console,
    *,
    limit: int,
    better: Sequence[str],
) -> None:
    """Print the kernels, then the rule at each boundary. `better`: words to explain the input of fusion."""
    for line, style in head_lines(f):
        console.print(printable(line), style=style)
    if better:
        console.print(BETTER, style="green")
        print_command(console, 2, "explain", *better)
    console.print()
    console.print("kernels", style="bold cyan")
    rows = Rows(("kernel", "name"), ("bytes", "right"), ("contents", "left"))
    for k in f.kernels[: limit or None]:
        rows.add_row(name_text(k.name), bytes_text(k.bytes), printable(contents(k)))
    rows.print(console)
    print_rest(console, f.kernels, limit)
    console.print()
    if not f.boundaries:
        console.print("No kernel reads the output of another.")
        return
    console.print("why these kernels are not fused", style="bold cyan")
    groups = by_rule(f)
    for code, refused in groups[: limit or None]:
        rule = f.rules.get(code)
        head = Text(f"{code}  {printable(rule.title)}" if rule else f"unknown: {printable(code)}")
        head.stylize("yellow" if rule else "dim")
        head.append(
            f"   {plural(len(refused), 'boundary', 'boundaries')}, {bytes_text(bytes_between(refused))}",
            style="bold",
        )
        indented(console, head)
        for b in refused[: min(3, limit) or None]:
            pair = name_text(b.producer, b.consumer).append(f"  {bytes_text(b.bytes_between)}")
            if b.figures:
                pair.append(f"  {figures_text(b.figures)}", style="dim")
            indented(console, pair, 6)
        print_rest(console, refused, min(3, limit), indent=6)
        if rule and rule.advice:
            indented(console, advice_line(rule), 6)
    print_rest(console, groups, limit)
