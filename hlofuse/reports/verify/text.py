"""`verify` for the terminal."""

from collections import Counter

from rich.text import Text

from hlofuse.format import more, plural, printable, times
from hlofuse.format.terminal import Page, indented, plain_grid, print_lines
from hlofuse.ir import Strings, grouped
from .model import KernelSide, Report, Verdict

_NAMES = 5


def summary_rows(report: Report) -> list[tuple[str, str]]:
    """The compared items, and the number of agreements."""
    compared = report.compared
    exact = f"exact on target {report.target}", f"{report.exact} of {len(compared)}"
    if finals := [v.final for v in compared if v.final is not None]:
        named, total, count = sum(f.named for f in finals), sum(f.kernels for f in finals), len(finals)
        return [
            exact,
            ("the same kernel names", f"{sum(f.same_names for f in finals)} of {count}"),
            ("the same copies", f"{sum(f.same_copies for f in finals)} of {count}"),
            ("names of kernels", f"{named:,} of {total:,}"),
        ]
    rows = [exact]
    passes = grouped((p.name, p.exact) for v in compared for p in v.passes)
    rows += [(f"after {printable(name)}", f"{sum(ok)} of {len(ok)}") for name, ok in passes.items()]
    rows += _record_rows(report)
    named, total = sum(v.fusion_names for v in compared), sum(v.fusions for v in compared)
    rows.append(("names of new fusions", f"{named:,} of {total:,}"))
    return rows


def headline(report: Report) -> str:
    """`Kernels agree: 1 of 1`: the modules with XLA's kernels, up to the order of results."""
    same, compared = [v for v in report.compared if v.same_kernels], len(report.compared)
    if not compared:
        return "No module was compared"
    reordered = sum(v.reordered for v in same)
    where = "one kernel" if reordered == 1 else plural(reordered, "kernel")
    note = f" (order of results inside {where} differs)" if reordered else ""
    return f"Kernels agree: {len(same)} of {compared if compared == 1 else plural(compared, 'module')}{note}"


def release_line(report: Report) -> str:
    """The best agreeing one of the possible releases; empty where one was enough."""
    if not report.tried:
        return ""
    best, *others = report.tried
    line = (
        f"{'agrees' if best.exact == best.compared else 'agrees best'} as XLA {_span(best.releases)}"
        f" ({best.exact} of {best.compared})"
    )
    more = [f"as {_span(t.releases)}: {t.exact} of {t.compared}" for t in others if t.complete]
    return "; ".join([line, *more])


def _span(releases: Strings) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def final_lines(v: Verdict) -> list[str]:
    """The differences between final modules, in a line each."""
    f = v.final
    if f is None:
        return []
    lines = []
    if f.renamed:
        names = ", ".join(map(printable, f.renamed[:_NAMES]))
        more = " …" if len(f.renamed) > _NAMES else ""
        lines.append(f"{f.named:,} of {f.kernels:,} kernel names are XLA's; missing: {names}{more}")
    if not f.same_copies:
        lines.append(f"{plural(f.copies, 'copy', 'copies')} in XLA's module, {f.copies_actual:,} replayed")
    return lines


def undumped_line(report: Report) -> str:
    """The passes without a dump of their results; empty for none."""
    counts = Counter(name for v in report.compared for name in v.not_dumped)
    if not counts:
        return ""
    listed = ", ".join(f"{printable(name)} ({plural(n, 'module')})" for name, n in counts.items())
    return f"Not compared (no dump after them): {listed}. --xla_dump_hlo_pass_re=.* writes every dump."


def _record_rows(report: Report) -> list[tuple[str, str]]:
    found = [v.record for v in report.compared if v.record is not None]
    if not found:
        return []
    steps = "fusions in XLA's order" + (", XLA's ties" if found[0].followed else "")
    rows = [(steps, f"{sum(r.in_order for r in found)} of {len(found)}")]
    if not found[0].followed:
        rows.append(("the same fusions in any order", f"{sum(r.any_order for r in found)} of {len(found)}"))
    rows.append(_share("priorities within 0.1%", [(r.priorities, r.priorities_total) for r in found]))
    rows.append(_share("refusal messages", [(r.refusals, r.refusals_total) for r in found]))
    return rows


def _share(what: str, counts: list[tuple[int, int]]) -> tuple[str, str]:
    good, total = (sum(c) for c in zip(*counts, strict=True))
    return what, f"{good:,} of {total:,}"


def step_lines(v: Verdict) -> list[str]:
    """The first entry of XLA's record that differs from the replay, both sides with their figures."""
    d = v.record.difference if v.record is not None else None
    if d is None:
        return []
    return [
        f"first difference: {d.kind} of {printable(d.producer)}, after {d.step:,} fusions",
        f"  XLA       {printable(d.xla or 'nothing')}",
        f"  replayed  {printable(d.ours or 'nothing')}",
    ]


def verdict_word(v: Verdict) -> str:
    """One word or two for a module."""
    if v.error is not None:
        return "not compared"
    if v.exact and all(p.exact for p in v.passes):
        return "exact"
    where = v.difference.pass_name if v.difference is not None else None
    return f"differs after {printable(where)}" if where else "differs"


def sides(actual: KernelSide | None, xla: KernelSide | None) -> tuple[str, str]:
    """Both sides, the replay first; with their operands where they read the same without."""
    a, b = side_text(actual), side_text(xla)
    if a != b or actual is None or xla is None:
        return a, b
    return f"{a}, from {_operands(actual)}", f"{b}, from {_operands(xla)}"


def _operands(side: KernelSide) -> str:
    shown = ", ".join(map(printable, side.operands[:6]))
    return shown + (" …" if len(side.operands) > 6 else "")


def side_text(side: KernelSide | None) -> str:
    """A kernel of one side on one line."""
    if side is None:
        return "no such kernel"
    kind = f" {side.kind}" if side.kind else ""
    text = f"{printable(side.name)} = {printable(side.shape)} {printable(side.opcode)}{kind}"
    if side.contents:
        counts = Counter(side.contents)
        opcodes = ", ".join(times(printable(op), n) for op, n in counts.items())
        text += f" of {opcodes}"
    return text


def print_report(report: Report, console: Page, *, every: bool) -> None:
    """The summary, then modules that differ; `every` lists the others, too."""
    console.print(headline(report), style="bold green" if report.agrees else "bold red")
    if line := release_line(report):
        console.print(line)
    if report.compared:
        table = plain_grid()
        for what, count in summary_rows(report):
            table.add_row(what, count)
        indented(console, table)
    if undumped := undumped_line(report):
        console.print(undumped, style="yellow")
    for v in report.verdicts if every else ():
        console.print(f"  {printable(v.name):<40} {verdict_word(v):<14} {plural(v.kernels, 'kernel')}")
    bad = [v for v in report.verdicts if verdict_word(v) != "exact"]
    for v in console.first(bad):
        console.print()
        _print_bad(v, console)
    other = [v for v in report.compared if v not in bad and step_lines(v)]
    for v in console.first(other):
        console.print(f"\n{printable(v.name)}  same kernels, different steps", style="bold")
        print_lines(console, step_lines(v))
    for rows in (other, bad):
        if rest := len(rows) - len(console.first(rows)):
            console.print(f"\n{more(rest)}")
    if report.skipped:
        console.print()
        console.print(f"{plural(len(report.skipped), 'module')} skipped:", style="dim")
        for reason in console.first(report.skipped):
            console.print(f"  {printable(reason)}", style="dim")


def _print_bad(v: Verdict, console: Page) -> None:
    console.print(f"{printable(v.name)}  {verdict_word(v)}", style="bold")
    if v.error is not None:
        print_lines(console, map(printable, v.error.split("\n")))
        return
    if v.note:
        indented(console, printable(v.note))
    if v.partition:
        console.print("  kernels agree up to the order of a multi-output fusion's results")
    print_lines(console, (*final_lines(v), *step_lines(v)))
    d = v.difference
    if d is None:
        return
    side = d.xla or d.ours
    if side is not None:
        console.print(f"  first difference, in {printable(side.computation)}:")
    table = plain_grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    actual, xla = sides(d.ours, d.xla)
    table.add_row(Text("XLA", style="bold"), xla)
    table.add_row(Text("replayed", style="bold"), actual)
    indented(console, table, 4)
    if d.decision:
        indented(console, f"last replayed decision about it: {printable(d.decision)}", 4, "dim")
