"""The result of a search, in text and as JSON: raw and lowered figures, and the gain of each move."""

from collections.abc import Callable
from typing import Any

from rich.console import Console

from hlofuse.format import bytes_text, printable, us_text
from hlofuse.format.terminal import print_rows
from hlofuse.pipelines.flags import joined
from .space import ACTIONS, FIELDS, SAME, Objective, Score
from .strategies import Found

_Written = Callable[[float], str]


def _number(value: float) -> str:
    return f"{value:,.0f}"


_Figure = tuple[str, str, str, _Written]
_FIGURES: tuple[_Figure, ...] = (
    ("operations before XLA's passes", "ops", "ops", _number),
    ("operations at the fusion input", "lowered", "lowered_ops", _number),
    ("kernels", "kernels", "kernels", _number),
    ("launches", "launches", "launches", _number),
    ("bytes moved", "moved", "bytes", bytes_text),
    ("estimated time", "est. time", "us", us_text),
    ("measured time, scaled where kernels change", "scaled", "scaled_us", us_text),
    ("peak temporary memory", "peak", "peak_temporary_bytes", bytes_text),
)


def change(before: float, after: float) -> str:
    """`−12.3%`, `× 42` for more than tenfold, or `same`, up to a twentieth of a percent."""
    if abs(after - before) <= SAME * abs(before):
        return "same"
    if after > 10 * before:
        return f"× {after / before:,.0f}" if before else "from nothing"
    return f"{'−' if after < before else '+'}{abs(after - before) / before:.1%}"


def _cell(figure: _Figure, s: Score) -> str:
    _, _, name, written = figure
    found = getattr(s, name)
    if found is None:
        return "–"
    if name == "us" and s.floor_us:
        return f"≥ {written(found)}"
    return written(found)


def print_found(found: Found, objective: Objective, how: str, console: Console) -> None:
    """The headline, all figures side by side, the moves in order, and the flags to set."""
    scores = found.default, found.score
    field = FIELDS.get(objective, objective)
    figure = next(f for f in _FIGURES if f[2] == field)
    title = figure[0]
    title = title[0].upper() + title[1:]
    before = _cell(figure, found.default)
    if found.moves:
        after = _cell(figure, found.score)
        gain = change(found.default.by(objective), found.score.by(objective))
        console.print(f"{title}: {before} → {after} ({gain})", style="bold")
    else:
        console.print(f"{title}: {before}; nothing better was found", style="bold")
    console.print(how, style="dim")
    console.print()
    figures = [f for f in _FIGURES if None not in (getattr(s, f[2]) for s in scores)]
    rows = [
        (f[0], *(_cell(f, s) for s in scores), change(*(getattr(s, f[2]) for s in scores))) for f in figures
    ]
    columns = (("", "left"), ("XLA's order", "right"), ("found", "right"), ("change", "right"))
    print_rows(console, columns, rows)
    if found.steps:
        console.print()
        shown = [f for f in figures if f[1] in ("ops", "lowered", "kernels", "moved", "est. time", "scaled")]
        heads = (("", "right"), ("pass or flag", "name"), *((f[1], "right") for f in shown))
        steps = [
            (str(n), printable(s.move), *(_cell(f, s.score) for f in shown))
            for n, s in enumerate(found.steps, 1)
        ]
        print_rows(console, heads, steps)
    flags = joined(m for m in found.moves if m not in ACTIONS)
    if flags:
        console.print()
        console.print("To apply it, set these flags:")
        text = f'  XLA_FLAGS="{printable(" ".join(flags))}"'
        console.print(text, style="green", soft_wrap=True)  # a command is not broken


def found_json(found: Found, objective: Objective, **request: Any) -> dict[str, Any]:
    """`objective`, the request, `default`, `found` and `moves`, each with the figures up to it."""
    return {
        "schema": "hlofuse.optimize/3",
        "objective": objective,
        **request,
        "default": found.default.to_json(),
        "found": found.score.to_json(),
        "moves": [{"move": s.move, **s.score.to_json()} for s in found.steps],
        "flags": list(joined(m for m in found.moves if m not in ACTIONS)),
        "evaluations": found.evaluations,
        "seconds": round(found.seconds, 1),
    }
