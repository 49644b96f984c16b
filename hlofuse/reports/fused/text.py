"""A module after fusion, for the terminal, and as JSON in the form of every `explain` (docs/json.md)."""

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import to_builtins
from rich.text import Text

from hlofuse.account import Account, KernelTime
from hlofuse.compilation import Counted
from hlofuse.format import bytes_text, fields, plural, printable, times
from hlofuse.format.terminal import Page, Rows, indented, name_text, print_command, print_more
from hlofuse.ir import Instruction, Json, grouped
from hlofuse.reports.common.facts import final_kernel, place_of
from hlofuse.reports.common.phrases import advice_line, figures_text
from hlofuse.reports.explain.explain import grouped_kernels
from hlofuse.reports.explain.model import Explanation, SelectedKernel, Selection, explanation_json
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
    console: Page,
    *,
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
    for k in console.first(f.kernels):
        rows.add_row(name_text(k.name), bytes_text(k.bytes), printable(contents(k)))
    rows.print(console)
    console.print_rest(f.kernels)
    console.print()
    if not f.boundaries:
        console.print("No kernel reads the output of another.")
        return
    console.print("why these kernels are not fused", style="bold cyan")
    groups = by_rule(f)
    for code, refused in console.first(groups):
        rule = f.rules.get(code)
        head = Text(f"{code}  {printable(rule.title)}" if rule else f"unknown: {printable(code)}")
        head.stylize("yellow" if rule else "dim")
        head.append(
            f"   {plural(len(refused), 'boundary', 'boundaries')}, {bytes_text(bytes_between(refused))}",
            style="bold",
        )
        indented(console, head)
        most = min(3, console.limit) or len(refused)
        for b in refused[:most]:
            pair = name_text(b.producer, b.consumer).append(f"  {bytes_text(b.bytes_between)}")
            if b.figures:
                pair.append(f"  {figures_text(b.figures)}", style="dim")
            indented(console, pair, 6)
        print_more(console, len(refused) - most, indent=6)
        if rule and rule.advice:
            indented(console, advice_line(rule), 6)
    console.print_rest(groups)


def fused_json(
    f: Fused,
    final: Account,
    as_it_is: Account,
    counted: Counted,
    time_of: Callable[[Instruction], KernelTime | None],
) -> Json:
    """The document of `explain`: what runs (`final`), and in `boundaries` what keeps it apart."""
    contents = {k.name: fields(k, "opcode opcodes fusion_kind=kind") for k in f.kernels}
    rows = [(r, r.instruction) for r in final.rows if f.selected is None or r.instruction.name in contents]
    kernels = tuple(final_kernel(r, place_of(x, final.module), x.name) for r, x in rows)
    hot = grouped_kernels(((r, k.place) for k, (r, _) in zip(kernels, rows, strict=True)), time_of)
    chosen = (SelectedKernel(k, time_of(x), (), ()) for k, (_, x) in zip(kernels, rows, strict=True))
    explanation = Explanation(
        f.module,
        final.module.filename,
        f.target,
        f.device,
        f.evidence,
        f.release,
        (),
        as_it_is.totals,
        final.totals,
        (),
        (),
        f.rules,
        hot_kernels=hot,
        kernels=kernels,
        loops=final.loops,
        selected=None if f.selected is None else Selection(f.selected, tuple(chosen)),
        counted=counted,
    )
    document = explanation_json(explanation)
    document["kernels"] = [{**k, **contents.get(k["name"], {})} for k in document["kernels"]]
    document["obstacles"] = [
        {
            **fields(f.rules[code], "rule=code title advice"),
            "edges": len(own),
            "bytes_between": bytes_between(own),
            "us_at_stake": None,
            "pairs": [[b.producer, b.consumer] for b in own],
        }
        for code, own in by_rule(f)
        if code in f.rules
    ]
    document |= fields(f, "evidence how right_file")
    return {**document, **fields(f, "boundaries", to_builtins)}
