"""`explain` for the terminal."""

from collections.abc import Sequence

from rich.text import Text

from hlofuse.format import bytes_text, listing, plural, printable, ranges, us_text
from hlofuse.format.terminal import (
    Page,
    Rows,
    indented,
    name_text,
    plain_grid,
    print_command,
    print_lines,
)
from hlofuse.ir import grouped
from hlofuse.ir.errors import any_of
from hlofuse.reports.common import phrases as common
from hlofuse.reports.common.costs import roofline
from hlofuse.reports.common.model import Refusal, both_names
from . import phrases
from .explain import group_fused, group_refusals
from .model import BlockingRule, Explanation, FusedGroup

_WIDE = 120  # columns from which the source line has a column of its own
_NAMES = 6  # operations named of one fusion
_REWRITES = 3  # named of one rule


def print_explanation(e: Explanation, console: Page, *, input_arguments: Sequence[str]) -> None:
    """The result in two lines, then pass by pass, then the rules that refuse most. `input_arguments` name the
    input in commands to go on with."""
    print_lines(console, common.changed_lines(e.what_if), 0, "bold")
    console.print(
        phrases.result_line(e), style="bold green" if e.after.kernels < e.before.kernels else "bold"
    )
    if (selection := e.selected) is not None:
        console.print()
        console.print(phrases.selection_line(selection, e), style="bold cyan")
        for k in console.first(selection.kernels):
            first, *others = phrases.selected_kernel_lines(k, e, selection)
            name = name_text(k.kernel.place.shown, style="bold")
            name.append(f"  {first}", style="not bold")
            indented(console, name)
            print_lines(console, others, 4, "dim")
        console.print_rest(selection.kernels)
    else:
        print_lines(console, phrases.notes(e), 0, "dim")
    for story in phrases.stories(e):
        console.print()
        heading = Text(printable(story.name), style="bold cyan")
        heading.append("  " + phrases.pass_summary(story), style="not bold default")
        console.print(heading)
        if story.fused:
            groups = group_fused(story.fused)
            shown = console.first(groups)
            timed = any(g.kernel is not None for g in shown)
            for g in shown:
                print_timed_kernel(g, console) if timed else _fused_block(g, console)
            console.print_rest(groups)
            codes = dict.fromkeys(s.event.rule or "" for g in shown for s in g.steps)
            for rule in (e.rules[c] for c in codes if c in e.rules and e.rules[c].title):
                indented(console, Text(f"{rule.code}  ", style="dim").append(printable(rule.title)))
            if any(s.event.kind == "sibling" and s.us_saved is not None for g in shown for s in g.steps):
                indented(console, f"({phrases.SIBLINGS_UNTIMED}; times from XLA's model)", 2, "dim")
        for code, group in grouped((r.event.rule or "", r) for r in story.rewrites).items():
            title = printable(e.rules[code].title) if code in e.rules else ""
            text = Text(f"{code}  ", style="yellow")
            text.append(f"{title}: ", style="default")
            most = _REWRITES if console.limit else len(group)
            text.append(listing([phrases.rewrite_text(r) for r in group], most), style="dim")
            indented(console, text)
        refused = [r for r in story.refused if r.between_kernels]
        if refused:
            _print_refused(group_refusals(refused), console)
    idle = [printable(s.name) for s in e.passes if not phrases.has_content(s)]
    if idle and e.selected is None:
        console.print()
        console.print(f"changed nothing: {', '.join(dict.fromkeys(idle))}", style="dim")
    _print_blocking_rules(e, console, input_arguments)


def _fused_block(g: FusedGroup, console: Page) -> None:
    """Two or three lines that fit a narrow terminal whatever the names are like."""
    line = plain_grid(expand=True)
    line.add_column(ratio=1, overflow="fold")
    line.add_column(justify="right", no_wrap=True)
    name, copies = name_text(g.fusion.shown), 1 + len(g.equivalents)
    if g.equivalents:
        name.append(f" ×{copies}", style="bold")
    line.add_row(name, f"saves {bytes_text(g.bytes_saved * copies)}")
    indented(console, line)
    steps = ranges([s.event.step for s in g.steps])
    if steps.count(",") > 1:  # many short runs say no more than where they begin and end
        steps = f"{g.steps[0].event.step}–{g.steps[-1].event.step}"
    producers = listing([printable(s.producer.name) for s in g.steps], _NAMES)
    indented(console, f"{'step' if len(g.steps) == 1 else 'steps'} {steps}: {producers}", 6)
    codes = dict.fromkeys(s.event.rule or "" for s in g.steps)
    indented(console, "  ".join([*codes, printable(phrases.sources(g))]).rstrip(), 6, "dim")


def _print_refused(groups: Sequence[list[Refusal]], console: Page) -> None:
    wide = console.width >= _WIDE
    timed = any(r.us_at_stake is not None for refused in groups for r in refused)
    columns = [("refused", "left"), ("bytes", "right"), ("rule", "left")]
    if timed:
        columns.insert(1, ("if fused", "right"))
    table = Rows(*columns, *([("XLA's message", "left"), ("source", "left")] if wide else []))
    for refused in console.first(groups):
        r = refused[0]
        pair = name_text(r.producer.label, r.consumer_final or r.consumer or "")
        if len(refused) > 1:
            pair.append(f" ×{len(refused)}", style="bold")
        if r.refused_user is not None:
            pair.append(f" (refused for {printable(r.refused_user)})", style="dim")
        row = [pair, Text(bytes_text(sum(x.bytes_between for x in refused))), Text(r.rule or "")]
        if timed:
            row.insert(1, Text(phrases.at_stake_text(refused)))
        if wide:
            row += [Text(printable(r.reason or "")), Text(printable(common.origin(r.producer)), style="dim")]
        table.add_row(*row)
    console.print()
    table.print(console)
    console.print_rest(groups)


def _print_blocking_rules(e: Explanation, console: Page, input_arguments: Sequence[str]) -> None:
    console.print()
    if not e.blocking_rules:
        which = "two kernels" if e.selected is None else "these kernels from others"
        console.print(f"No rule of these passes separates {which}.")
        return
    title = "biggest remaining opportunities"
    if e.selected is not None:
        title = "rules that refused to fuse these with other kernels"
    console.print(title, style="bold cyan")
    for o in console.first(e.blocking_rules):
        _print_blocking_rule(o, console, input_arguments)
    console.print_rest(e.blocking_rules)


def _print_blocking_rule(o: BlockingRule, console: Page, input_arguments: Sequence[str]) -> None:
    figures = f"{plural(o.edges, 'edge')}, {bytes_text(o.bytes_between)}{phrases.if_allowed(o)}"
    line = plain_grid(expand=True)
    line.add_column(no_wrap=True)
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(
        Text(o.rule.code or "?", style="bold yellow"),
        printable(o.rule.title or o.refusals[0].reason or ""),
        figures,
    )
    indented(console, line)
    first = o.refusals[0]
    consumer = first.consumer or ""
    pair = name_text(first.producer.shown, both_names(first.consumer_final or consumer, consumer))
    if origin_text := common.origin(first.producer):
        pair.append(f"  {printable(origin_text)}", style="dim")
    indented(console, pair, 10)
    if first.figures:
        indented(console, common.figures_text(first.figures), 10, "dim")
    explained = common.created_by_lines(first.created_by)
    if o.rule.advice and not explained:
        explained = [common.advice_line(o.rule)]
    print_lines(console, explained, 10)
    print_command(console, 10, "why", *input_arguments, first.producer.name, first.consumer)
    codes = [o.rule.code, *(m.rule.code for m in first.created_by)]
    print_command(console, 10, "rule", *dict.fromkeys(codes))


_STEPS = 6  # of one kernel; the first kernel shows more
_FREE = 8  # operations named that no estimate was made for


def print_timed_kernel(g: FusedGroup, console: Page) -> None:
    """A kernel: what it saved, what bounds it now, and the steps that created it, largest saving first."""
    name = name_text(g.fusion.shown, style="bold")
    copies = 1 + len(g.equivalents)
    if g.equivalents:
        name.append(f" ×{copies}")
    parts = []
    if g.us_saved is not None:
        parts.append(phrases.saves_text(g.us_saved * copies))
    if g.bytes_saved < 0:
        parts.append(f"{bytes_text(-g.bytes_saved * copies)} more traffic")
    elif g.bytes_saved:
        verb = "" if parts and (g.us_saved or 0.0) >= 0 else "saves "
        parts.append(verb + bytes_text(g.bytes_saved * copies))
    if parts:
        name.append("  " + ", ".join(parts), style="not bold")
    where = phrases.sources(g)
    if where:
        name.append(f"  {printable(where)}", style="not bold dim")
    indented(console, name)
    if g.kernel is not None:
        indented(console, roofline(g.kernel), 4, "dim")
    _print_steps(g, console, _STEPS if console.limit else 0)


def _print_steps(g: FusedGroup, console: Page, limit: int) -> None:
    estimated = (s for s in g.steps if s.us_saved is not None)
    steps = sorted(estimated, key=lambda s: (-(s.us_saved or 0.0), s.event.step))
    free = [s for s in g.steps if s.us_saved is None]
    table = Rows("right", "left", "right", "left", drop=(0, 3))
    shown = steps[: limit or None]
    for s in shown:
        why = Text(phrases.step_text(s))
        if s.tied_with:
            names, others = [printable(n) for n in s.tied_with[:2]], len(s.tied_with) - 2
            tied = any_of([*names, plural(others, "other")] if others > 0 else names)
            why.append(f"\ntie: XLA may have fused {tied} first", style="yellow")
        table.add_row(
            Text(str(s.event.step), style="dim"),
            name_text(s.producer.name, s.event.consumer or ""),
            us_text(s.us_saved or 0.0),
            why,
        )
    table.print(console, 4)
    rest = []
    if len(steps) > len(shown):
        saved = sum(s.us_saved or 0.0 for s in steps[len(shown) :])
        rest.append(f"{plural(len(steps) - len(shown), 'more step', 'more steps')} saved {us_text(saved)}")
    if free and all(s.producer.opcode in ("bitcast", "") for s in free):
        rest.append(f"{plural(len(free), 'bitcast')} fused at no cost")
    elif free:
        rest.append(f"fused {listing([printable(s.producer.name) for s in free], _FREE)}")
    if rest:
        indented(console, ("and " if shown else "") + ", ".join(rest), 4, "dim")
