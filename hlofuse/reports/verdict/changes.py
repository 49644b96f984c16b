"""`what-if`: every change that was tried, in one table, greatest gain first."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from rich.text import Text

from hlofuse.account import Account, Observed, Totals
from hlofuse.account.replaying import final_account
from hlofuse.compilation import Compilation
from hlofuse.format import broken, bytes_text, plural, printable, signed, us_text
from hlofuse.format.terminal import Page, Rows, indented, print_command, print_lines
from hlofuse.ir import HlofuseError, Module, Record, Strings, replace
from hlofuse.judge.judge import Judge, Refused
from hlofuse.pipelines.flags import DISABLED, joined, merged, not_honoured, parse_flags
from hlofuse.pipelines.targets import Stage
from hlofuse.reports.common.model import Refusal
from hlofuse.reports.comparison.text import warning_line
from hlofuse.reports.whatif.model import Ranking, Trial, trial_of
from hlofuse.reports.whatif.text import CHANGED_DECISIONS, edges_text
from . import phrases
from .candidates import comparable, compiled
from .model import MEASURED, Verdict


class Change(Record):
    label: str  # `scale-the-summands`, a flag, `without PF009`, or `with other.hlo`
    title: str
    trial: Trial
    sources: Strings = ()
    places: int = 0
    edges: str = ""  # Decisions that change, for a rule
    blocks: tuple[Refusal, ...] = ()  # Pairs of kernels that a rule keeps apart


def changes(v: Verdict, ranking: Ranking, also: Sequence[Change] = ()) -> list[Change]:
    """Tried changes with an effect: suggestions, single rules, and changes that were asked for."""
    rows = list(also)
    given = [parse_flags(c.label) for c in also if c.label.startswith("--")]
    for s in v.suggestions:
        if s.kind != "report" and (not s.flag or parse_flags(s.flag) not in given):
            title = s.text + phrases.FORWARD * s.is_forward_alone
            rows.append(Change(s.flag or phrases.name_text(s), title, s.trial, s.sources, s.places))
    for r in ranking.relaxed:
        if r.changes_anything:
            edges = edges_text(r.difference)
            rows.append(Change(f"without {r.rule.code}", r.rule.title, r.trial, (), 0, edges, r.blocks))
    return sorted(rows, key=lambda c: tuple(-x for x in c.trial.gain))


def with_module(before: Account, other: Observed, path: str) -> Change:
    """The row of another variant of the program."""
    after = final_account(other)
    trial = trial_of(before.totals, after.totals, "replayed", (before, after))
    return Change(f"with {path}", f"the program {other.replay.before.name}", trial)


def with_flags(observed: Observed, before: Account, flags: str, unoptimized: Module | None) -> Change:
    """The row of XLA flags, compiled from before optimizations if at hand; HlofuseError without a replay."""
    given = parse_flags(flags)
    if not given or (unknown := not_honoured(given)):
        shown = " ".join(unknown) if given else flags
        raise HlofuseError(f"the replay does not model {shown}; capture --flags has XLA read it")
    module = comparable(observed, observed.replay.input.unoptimized or unoptimized)
    found = compiled(observed, module, merged(observed.replay.config.build.flags, given))
    if found is None:
        raise HlofuseError(f"the module cannot be compiled with {flags}")
    how = "replayed with the flags" + ("" if module is not None else ", from the fusion input")
    after = found[1]
    trial = trial_of(before.totals, after.totals, how, (before, after))
    # Work that has only a lower bound moved to other kernels.
    if before.bounded_work != after.bounded_work and before.times is None:
        trial = replace(trial, us_saved=None, scaled_us_saved=None)
    return Change(flags, how, trial)


def without_passes(
    observed: Observed, names: list[str], module: Module, judge: Judge | None
) -> tuple[Totals, list[Change]]:
    """The totals of `module`, before optimizations, and a row without each pass, what earns most first. `all`
    is every pass that changes it. A row's title is the change of kernels that `judge` sees."""
    config = observed.replay.config
    own = config.build.flags
    base = compiled(observed, module, own)
    if base is None:
        raise HlofuseError("the module before optimizations cannot be compiled")
    totals = base[1].totals
    if "all" in names:
        names = [n for n in names if n != "all"] + [p.name for p in observed.replay.passes if p.changed]
        lowering = Compilation.of(module, Stage.BEFORE, config, observed.replay.input.lowering)
        names += [
            *lowering.span(Stage.INPUT).changing_passes,
            *observed.replay.span(Stage.SCHEDULED).changing_passes,
        ]
    with_all = judge.compile(module, own).kernels if judge is not None else 0
    rows = []
    for name in dict.fromkeys(n.partition("(")[0] for n in names):
        flags, seen = joined((*own, f"--{DISABLED}={name}")), "refused" if judge else ""
        with suppress(Refused):
            seen = signed(judge.compile(module, flags).kernels - with_all) if judge else ""
        if (after := compiled(observed, module, flags)) is not None:
            trial = trial_of(totals, after[1].totals, f"replayed with --{DISABLED}={name}")
            rows.append(Change(name, seen, trial))
    return totals, sorted(rows, key=lambda r: r.trial.gain)


def print_passes(totals: Totals, rows: Sequence[Change], console: Page) -> None:
    """Print how the totals of the module differ without each pass."""
    line = f"The module without each pass; replayed with all: {phrases.totals_line(totals)}"
    console.print(line, style="bold")
    figures = ("kernels", "launches", "moved", *(["est. time"] if totals.us is not None else []))
    with_memory = any(r.trial.temporary_saved for r in rows)
    columns = [*figures, *(["temporary"] if with_memory else [])]
    columns += ["XLA's kernels"] if any(r.title for r in rows) else []
    drop = (len(figures) + 1,) if with_memory else ()
    table = Rows(("pass", "name"), *((c, "right") for c in columns), drop=drop)
    for r in rows:
        table.add_row(printable(r.label), *_figures(r.trial, totals, with_memory), *filter(None, [r.title]))
    table.print(console)


def print_changes(
    v: Verdict,
    ranking: Ranking,
    also: Sequence[Change],
    console: Page,
    *,
    input_arguments: Sequence[str],
) -> None:
    """The bounds, the best change, the table, and what the rules of it keep apart."""
    if ranking.changes:
        console.print(warning_line(ranking.changes), style="bold yellow")
    console.print(phrases.totals_line(v.totals), style="bold")
    if ranking.selected is None:
        print_lines(console, phrases.bound_lines(v), 0)
    else:
        console.print(f"Rules that refused to fuse {printable(ranking.selected)} with other kernels")
    rows = changes(v, ranking, also)
    best = rows[0] if rows and rows[0].trial.helps(v.totals) else None
    console.print()
    if best is not None:
        line = phrases.change_line(best.trial, v.totals, best.sources, printable(best.label), best.places)
        print_lines(console, broken(f"Best: {line}", console.width), 0, "bold green")
    else:
        what = "rule switched off" if ranking.selected else "change"
        tried = f"No {what} saves 0.1% or more ({plural(v.replays, 'replay')})"
        console.print(tried if v.replays else "No change was replayed", style="bold")
    if rows:
        _print_table(rows, v, console)
    if best is not None and best.label.startswith("without "):
        blocks = Rows(("refused pair", "left"), ("bytes", "right"), "left", drop=(2,))
        for b in console.first(best.blocks):
            pair = f"{printable(b.producer.name)} → {printable(b.consumer or '')}"
            source = Text(printable(b.producer.source or ""), style="dim")
            blocks.add_row(pair, bytes_text(b.bytes_between), source)
        blocks.print(console)
        console.print_rest(best.blocks)
        print_command(
            console, 2, "explain", *input_arguments, "--disable", best.label.removeprefix("without ")
        )
    idle = [r.rule.code for r in ranking.relaxed if not r.changes_anything]
    unchanged = [f"Nothing changes without {', '.join(idle)}."] if idle else []
    print_lines(console, (*unchanged, *phrases.rounding_lines(v), *phrases.untried_lines(v)), 2, "dim")
    blocking = [f for f in ranking.fixed if f.blocks]
    if not blocking:
        return
    console.print()
    console.print("Boundaries that no flag or rewrite of fusion can remove", style="bold cyan")
    table = Rows(("rule", "name"), ("edges", "right"), ("bytes", "right"), "left")
    for f in console.first(blocking):
        size = bytes_text(sum(b.bytes_between for b in f.blocks))
        table.add_row(f.rule.code, f"{len(f.blocks):,}", size, printable(f.rule.title))
    table.print(console)


def _print_table(every: Sequence[Change], v: Verdict, console: Page) -> None:
    rows = console.first(every)
    figures = [("kernels", "right"), ("launches", "right"), ("moved", "right")]
    if v.totals.us is not None:
        figures.append(("est. time", "right"))
    scaled = [c.trial.how for c in rows if c.trial.scaled_us_saved is not None]
    totals = v.totals if scaled else replace(v.totals, measured_us=None)
    if scaled:
        figures.append(("measured" if MEASURED in scaled else "measured, scaled", "right"))
    with_memory = any(c.trial.temporary_saved for c in rows)
    figures += [("temporary", "right")] if with_memory else []
    decides = any(c.edges.strip("–") for c in rows)
    drop = (len(figures),) if with_memory else ()
    table = Rows("right", *figures, *([("decisions", "right")] if decides else []), drop=drop)
    for number, c in enumerate(rows, 1):
        cells = [
            str(number),
            *_figures(c.trial, totals, with_memory),
            *([c.edges or "–"] if decides else []),
        ]
        style = "" if c.trial.helps(v.totals) else "dim"
        table.add_row(*(Text(cell, style=style) for cell in cells))
    table.print(console)
    for number, c in enumerate(rows, 1):
        where = f" · {phrases.where_text(c.sources, c.places)}" if c.sources else ""
        print_lines(console, [f"{number:>2} {printable(c.label)}: {printable(c.title)}{where}"])
    console.print_rest(every)
    if decides:
        indented(console, CHANGED_DECISIONS, 2, "dim")


def _figures(t: Trial, totals: Totals, with_memory: bool) -> Iterator[str]:
    yield signed(-t.kernels_saved)
    yield signed(-t.launches_saved)
    yield phrases.delta(totals.cost.bytes_accessed, -t.bytes_saved, bytes_text)
    estimated = totals.us and (0.0 if totals.open_ended else totals.us)
    for total, saved in ((estimated, t.us_saved), (totals.measured_us, t.scaled_us_saved)):
        if total is not None:
            yield phrases.delta(total, -saved, us_text) if saved is not None else "–"
    if with_memory:
        yield "–" if t.temporary_saved is None else phrases.delta(0, -t.temporary_saved, bytes_text)
