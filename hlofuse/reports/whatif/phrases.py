"""Sentences and figures that the text and the markdown reports of what-if runs share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlofuse.account import Totals
from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, plural, quantity, us_text
from hlofuse.reports.common.model import Refusal
from hlofuse.reports.common.phrases import advice_line, floors_and_copies
from hlofuse.reports.difference.model import Difference
from hlofuse.reports.difference.phrases import figures_line, percent, share, work
from hlofuse.reports.whatif.model import Point, Ranking, RelaxedRule, Sweep, SweepAxis


def module_title(what: Ranking | Sweep) -> str:
    """`jit_f on gpu (h100_sxm)`."""
    devices = (what.device,) if isinstance(what, Ranking) else what.devices
    named = [printable(d) for d in devices if d]
    devices_text = f" ({', '.join(named)})" if named else ""
    return f"{printable(what.module)} on {what.target}{devices_text}"


def totals_line(t: Totals) -> str:
    """`31 kernels    0.34 GB moved    est. 118 µs`."""
    parts = [plural(t.kernels, "kernel"), f"{bytes_text(t.cost.bytes_accessed)} moved"]
    if t.us is not None:
        parts.append(f"est. {us_text(t.us)}")
    return "    ".join(parts)


def untimed_note(t: Totals) -> str:
    """For how many kernels the times hold a lower bound, or that there are no times; empty for neither."""
    if t.us is None:
        return (
            "no time is estimated for this target: fewer kernels and bytes may yet be slower, where a value"
            " is computed anew for each read"
        )
    return "; ".join(floors_and_copies(t))


# ------------------------------------------------------------ ranking


def title(r: Ranking) -> str:
    """`jit_f on gpu (h100_sxm), as XLA in jaxlib 0.11.1: which one rule costs most?`."""
    xla = "" if r.changes else f", as XLA in {r.release}"
    around = f" around {printable(r.selected)}" if r.selected is not None else ""
    return f"{module_title(r)}{xla}: which one rule{around} costs most?"


def lead(r: Ranking) -> list[str]:
    """The answer: which one rule costs most, what it blocks, what would be saved."""
    best = r.relaxed[0] if r.relaxed and r.relaxed[0].saves else None
    if best is not None:
        unit = "" if r.after.us is not None else ", in kernels and bytes,"
        return [
            f"The one rule that costs you most{unit} is {best.rule.code}: {printable(best.rule.title)}.",
            f"{_blocks(best)}; without it: {figures_line(best.difference).replace('    ', ', ')}.",
        ]
    if r.relaxed:
        each = "The one rule that refused something here and can be relaxed costs nothing"
        if len(r.relaxed) > 1:
            each = f"No single rule costs anything here, of the {len(r.relaxed)} that can be relaxed"
        return [f"{each}: without it not even a thousandth is saved."]
    if r.fixed:
        return ["No rule that could be relaxed refused anything here."]
    return ["No rule refused anything here."]


def advice(r: RelaxedRule) -> list[str]:
    """Why XLA asks a rule, and what a program could do about it."""
    why = f"Why XLA asks: {r.rule.why}" if r.rule.why else ""
    return [printable(line) for line in (why, advice_line(r.rule)) if line]


def to_act_on(r: Ranking) -> RelaxedRule | None:
    """Where nothing can be done about the rule that costs most: the first about which something can."""
    if not r.relaxed or r.relaxed[0].rule.advice:
        return None
    return next((x for x in r.relaxed if x.saves and x.rule.advice), None)


def lead_to_act_on(x: RelaxedRule) -> str:
    """What that one costs."""
    without = figures_line(x.difference).replace("    ", ", ")
    return (
        f"Of the rules about which you can do something, {x.rule.code} costs you most:"
        f" {printable(x.rule.title)}. {_blocks(x)}; without it: {without}."
    )


def _blocks(r: RelaxedRule) -> str:
    if r.blocks:
        refused_text = f"It keeps {plural(len(r.blocks), 'edge')} between kernels apart"
        return f"{refused_text} ({bytes_text(sum(b.bytes_between for b in r.blocks))})"
    return f"It says no {'once' if r.refusals == 1 else f'{r.refusals:,} times'} on the way"


def ranking_columns(r: Ranking) -> list[int]:
    """Which of `RANKING_COLUMNS` to show: time where it is estimated, else what there is to compute."""
    hidden = "operations" if r.after.us is not None else "est. time"
    return [k for k, c in enumerate(RANKING_COLUMNS) if c != hidden]


def idle_line(r: Ranking) -> str:
    """The rules that change nothing when they go; empty for none."""
    idle = [x.rule.code for x in r.relaxed if not x.changes_anything]
    return f"Nothing changes without {', '.join(idle)}." if idle else ""


def ranking_row(r: RelaxedRule) -> tuple[str, ...]:
    """What goes under `RANKING_COLUMNS`; the time is empty without a model of it."""
    d = r.difference
    return (
        r.rule.code,
        _signed(d.replayed.kernels - d.xla.kernels),
        _delta(d.xla.cost.bytes_accessed, d.replayed.cost.bytes_accessed, bytes_text),
        _time_delta(d),
        _delta(work(d.xla), work(d.replayed), quantity),
        f"{len(r.blocks):,}" if r.blocks else "–",
        edges_text(d),
        printable(r.rule.title),
    )


RANKING_COLUMNS = (
    "without",
    "kernels",
    "moved",
    "est. time",
    "operations",
    "edges it blocks",
    "edges turned",
    "rule",
)


CHANGED_DECISIONS = "Edges turned: + fused here and apart in XLA's, − the other way round."
_MARK = " *"


def marks_line(differences: Iterable[Difference]) -> str:
    """What a mark at a time means; empty where there is none."""
    if not any(map(_marked, differences)):
        return ""
    return "*: this time holds lower bounds for more or fewer kernels than the one it is compared with."


def _marked(d: Difference) -> str:
    return _MARK if d.replayed.us is not None and d.xla.floors != d.replayed.floors else ""


def edges_text(d: Difference) -> str:
    """`+5 −1`: edges fused that XLA leaves apart, and the other way round."""
    parts = [f"+{len(d.fused):,}"] if d.fused else []
    parts += [f"−{len(d.parted):,}"] if d.parted else []
    return " ".join(parts) or "–"


def edge_text(b: Refusal) -> str:
    """`divide → broadcast_multiply_fusion`."""
    return f"{printable(b.producer.name)} → {printable(b.consumer or '')}"


# ------------------------------------------------------------ sweeps


def sweep_rows(s: Sweep) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """One row for each point, and one for XLA's own where no point is that; true for XLA's."""
    for device, xla, values in zip(s.devices, s.xla, s.xla_values, strict=True):
        points = [p for p in s.points if p.device == device]
        if not any(p.is_xla for p in points):
            head = [printable(device or "")] if len(s.devices) > 1 else []
            yield True, (*head, *map(printable, values), *_totals(xla, None), "XLA")
        for p in points:
            yield p.is_xla, _sweep_row(s, p)


def _sweep_row(s: Sweep, p: Point) -> tuple[str, ...]:
    head = [printable(p.device or "")] if len(s.devices) > 1 else []
    against = "XLA" if p.is_xla else edges_text(p.difference)
    kernels, moved, time = _totals(p.totals, p.difference.xla)
    return (*head, *map(printable, p.values), kernels, moved, time + _marked(p.difference), against)


def _totals(t: Totals, xla: Totals | None) -> tuple[str, ...]:
    moved, time = bytes_text(t.cost.bytes_accessed), us_text(t.us) if t.us is not None else ""
    if xla is not None:
        moved += share(xla.cost.bytes_accessed, t.cost.bytes_accessed)
        if xla.us is not None and t.us is not None:
            time += share(xla.us, t.us)
    return (f"{t.kernels:,}", moved, time)


def sweep_columns(s: Sweep) -> tuple[str, ...]:
    """The headings that go with `sweep_rows`."""
    head = ["device"] if len(s.devices) > 1 else []
    return (*head, *(printable(a.name) for a in s.axes), "kernels", "moved", "est. time", "edges turned")


def sweep_headline(s: Sweep) -> str:
    """What is swept, and that it is not XLA."""
    names = " × ".join(printable(a.name) for a in s.axes)
    fixed = f", besides: {', '.join(map(printable, s.changes))}" if s.changes else ""
    return f"{module_title(s)}: a sweep of {names}{fixed}"


def axis_line(a: SweepAxis, xla: list[str]) -> str:
    """What a knob is, and XLA's value."""
    unit = f" {a.unit}" if a.unit else ""
    values = ", ".join(dict.fromkeys(x for x in xla if x))
    xla_text = f"; XLA: {values}{unit}" if values else ""
    return f"{printable(a.name)}: {printable(a.summary.rstrip('.'))}{xla_text}"


# ------------------------------------------------------------ figures


def _signed(n: int) -> str:
    return "±0" if not n else f"{'−' if n < 0 else '+'}{abs(n):,}"


def _delta(old: float, new: float, text: object) -> str:
    assert callable(text)
    if old == new:
        return "±0"
    return f"{'−' if new < old else '+'}{text(abs(new - old))} ({percent(old, new)})"


def _time_delta(d: Difference) -> str:
    if d.xla.us is None or d.replayed.us is None:
        return ""
    return _delta(d.xla.us, d.replayed.us, us_text) + _marked(d)
