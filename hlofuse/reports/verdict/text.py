"""A verdict for the terminal: one screen of 24 lines, whatever the module; all of it on request."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from rich.console import Console

from hlofuse.format import broken, listing, plural, printable, shorten, undivided
from hlofuse.format.terminal import fit_columns, indented, print_lines, wrapped
from hlofuse.reports.common.functions import function_table
from hlofuse.reports.common.head import Head, fitted
from hlofuse.reports.common.profile import profile_lines
from hlofuse.reports.comparison.model import Comparison
from hlofuse.reports.comparison.text import difference_lines
from . import phrases
from .collectives import collective_lines
from .model import Verdict, tile_lines

Styled: TypeAlias = Iterator[tuple[str, str]]  # Lines, each with its style
_LINES = 24  # of a terminal as it opens
_SUGGESTIONS = 3
_KERNELS = 5
_TOP = 14  # lines above the functions, with more than one kind of collective
_LEAST = 7  # lines of advice without suggestions, and of two kernels
_LITTLE = 0.1  # the part of the time up to which a gain does not outweigh what was not tried
_PAIR = 4  # lines of two kernels with theirs
_CODE = 2  # lines of code of the first suggestion
_FUNCTIONS = 5
_NOTES = 2
_WHOLE = 10_000  # columns
_PAGE = 200  # the page breaks its lines
_NAME = 2  # the column of names; figures are before it
_MORE = "More: --details; explain INPUT NAME, a kernel, line or function; memory INPUT"


def print_screen(
    v: Verdict,
    console: Console,
    head: Head | None,
    notes: Sequence[str] = (),
    difference: Comparison | None = None,
    *,
    details: bool,
    limit: int = _KERNELS,
    tried: bool = True,
) -> None:
    """The verdict in 24 lines: what it rests on, the totals, the bounds, suggestions, slowest kernels.
    `notes` say how the module came to be, and what it does not agree with; `details` says how to go on. With
    `limit` 0 it has every suggestion and every kernel. Without `tried` no change was tried: the bounds, which
    rest on trials, and the suggestions are left out."""
    width = console.width
    top = [*_head(head, notes, difference, width)]
    if not tried:
        top += _share_lines(v, width)
    else:
        is_long = limit and len(top) + len([*figure_lines(v, width, limit)]) > _TOP
        top += figure_lines(v, width, 1 if is_long else limit)
    functions = v.functions.rows[: _FUNCTIONS if limit else None]
    room = _LINES - len(top) - len(functions) - bool(functions) - bool(details)
    first = len([*suggestion_lines(v, 1, width, code=False)]) + (v.together is None)
    if max((s.trial.us_saved or 0.0 for s in v.suggestions), default=0.0) < _LITTLE * (v.totals.us or 0.0):
        first += len([*_untried(v, width)])  # then it is the larger part of the advice
    spare = min(len(functions) - 2, first + _PAIR + 1 - room)
    if limit and spare > 0:
        functions, room = functions[:-spare], room + spare
    if limit and functions and room < first + _PAIR:
        functions, room = (), room + len(functions) + 1
    code = _CODE if room >= max(_LEAST + 2, first + _PAIR) + _CODE or not limit else 0
    most = max(1, min(limit, _SUGGESTIONS, (room - _LEAST - code) // 2)) if limit else 0
    while most > 1 and len([*suggestion_lines(v, most, width, code=code > 0)]) > room - _PAIR:
        most -= 1  # whole entries, and those of all together and of fewer digits, which may save more
    rest = list[tuple[str, str]]()
    if tried:
        rest += advice_lines(v, width, most, code=code > 0)
    if limit and v.hot_kernels:
        most = max(first, room - _PAIR)
        while first < most < len(rest) and rest[most][0].startswith(" "):  # the rest of an entry
            most -= 1
        rest = rest[:most]
    most = len(v.hot_kernels)
    if limit:
        most = max(min(limit, _KERNELS, room - len(rest) - 2), 0)
    rest += _kernels(v, most, width)
    _print(top, console)
    if functions:
        indented(console, function_table(v.functions, width - 2, len(functions)))
    rest = rest[: room if limit else None]
    _print([*rest, (_MORE, "green")] if details else rest, console)


def _print(lines: Sequence[tuple[str, str]], console: Console) -> None:
    for line, style in lines:
        console.print(phrases.cut(line, console.width), style=style, no_wrap=True, overflow="crop")


def verdict_lines(v: Verdict) -> Styled:
    """The totals, the bounds and the suggestions: each line with its style."""
    yield from figure_lines(v, _PAGE)
    yield from advice_lines(v, _PAGE, _SUGGESTIONS)


def figure_lines(v: Verdict, width: int, limit: int = _KERNELS) -> Styled:
    """The totals and the bounds; with `limit` 0 every collective."""
    yield from _share_lines(v, width)
    if v.measured is not None:
        yield from _whole(profile_lines(v.measured), width)
    yield from _whole(phrases.bound_lines(v), width)
    if v.tiles is not None:
        yield from _whole(tile_lines(v.tiles, v.totals), width)
    exposed = v.totals.exposed_collectives_us, v.totals.exposed_is_floor
    yield from ((line, "") for line in collective_lines(v.collectives, *exposed, limit))
    yield from _whole(v.compile_time[:1], width, "bold yellow")


def _share_lines(v: Verdict, width: int) -> Styled:
    yield from _whole([phrases.totals_line(v.totals)], width, "bold")
    for lines in (phrases.counting_lines(v), phrases.shares_lines(v, width), phrases.times_lines(v)):
        yield from _whole(lines, width)


def _whole(lines: Iterable[str], width: int, style: str = "") -> Styled:
    yield from ((part, style) for line in map(printable, lines) for part in wrapped(line, width))


def advice_lines(v: Verdict, width: int, limit: int, *, code: bool = True) -> Styled:
    """A blank line, then at most so many suggestions (0: all), and recipes that were not tried."""
    yield "", ""
    yield from suggestion_lines(v, min(limit, _SUGGESTIONS) or None, width, code=code)
    yield from _untried(v, width)


def _untried(v: Verdict, width: int) -> Styled:
    yield from _whole(islice(phrases.untried_lines(v, brief=True), 1), width, "dim")


def print_suggestions(v: Verdict, console: Console, most: int | None = None) -> None:
    """Print the suggestions in full: what is longer than a line goes on below it."""
    for line, style in suggestion_lines(v, most, _WHOLE):
        print_lines(console, broken(line, console.width), 0, style)


def suggestion_lines(v: Verdict, most: int | None, width: int, *, code: bool = True) -> Styled:
    """The suggestions, at most so many, with code below the first; each line with its style."""
    shown = v.suggestions[:most]
    title = phrases.suggestions_title(v, len(shown)) + undivided(v.totals.devices)
    yield from _whole([title], width, "bold cyan" if shown else "")
    for number, s in enumerate(shown, 1):
        mark = f"{number}. " if s.kind != "report" else ""
        yield from _whole([f"{mark}{phrases.suggestion_text(s)}"], width, "bold")
        yield from _whole(broken(f"   {phrases.trial_line(s, v, width - 3)}", width), width)
        if number == 1 and code and s.kind != "report":
            yield from ((f"   {line}", "cyan") for line in phrases.code_lines(s, width - 3))
    yield from _whole(phrases.rounding_lines(v), width)
    if v.together is not None and shown:
        numbers, trial = v.together
        names = listing([*map(str, numbers)], 5) + " of what-if" * (max(numbers) > len(shown))
        line = f"Together ({names}): {phrases.change_line(trial, v.totals, (), '')}"
        yield from _whole(broken(line, width), width, "bold")


def _head(head: Head | None, given: Sequence[str], difference: Comparison | None, width: int) -> Styled:
    notes = [note.partition(". ")[0] for note in given]
    if head is not None:
        yield from ((line, "dim") for line in fitted(head.line(), width))
        yield from _whole(head.result_lines, width, "dim")
        notes += [f"Note: {text}" for text in head.identity.notes]
    if difference is not None:
        yield from _whole(difference_lines(difference)[:2], width, "bold yellow")
    for number, text in enumerate(notes[:_NOTES], 1):
        more = len(notes) - _NOTES
        rest = f" (and {plural(more, 'note')} more)" if number == _NOTES and more > 0 else ""
        yield from _whole([f"{text.rstrip('.')}{rest}."], width, "bold yellow")


def _kernels(v: Verdict, most: int, width: int) -> Styled:
    takes_time = (k for k in v.hot_kernels if v.totals.us is None or k.us or k.is_floor or k.measured_us)
    shown = list(islice(takes_time, most))  # a TPU's asynchronous copies may cost nothing
    if not shown:
        return
    yield "", ""
    count = sum(k.count for k in shown) if len(shown) < len(v.hot_kernels) else v.totals.kernels
    yield phrases.kernels_title(v, count, len(shown)), "bold cyan"
    cells = [phrases.kernel_cells(k, v) for k in shown]
    columns = [("", "right"), ("", "right"), ("", "name"), ("", "name"), ("", "right")]
    fitting, widths, _ = fit_columns(columns, cells, width - 2, drop=(4, 1, 3))
    for row in cells:
        parts = [
            f"{row[n]:>{widths[n]}}" if n < _NAME else f"{shorten(row[n], widths[n]):<{widths[n]}}"
            for n in fitting
        ]
        yield f"  {'  '.join(parts)}".rstrip(), ""
