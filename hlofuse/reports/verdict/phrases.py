"""Sentences of a verdict."""

from collections.abc import Callable, Iterator, Sequence
from math import isnan, nan
from textwrap import wrap

from hlofuse.account import Totals
from hlofuse.cost.cpu.device import CpuDevice, cpu_names
from hlofuse.format import (
    broken,
    bytes_text,
    enumeration,
    listing,
    memory_text,
    plural,
    printable,
    shorten,
    times,
    undivided,
    us_text,
)
from hlofuse.ir import grouped
from hlofuse.reports.common.edits import edit_of
from hlofuse.reports.common.model import TRIED_UP_TO
from hlofuse.reports.common.phrases import times_text
from hlofuse.reports.explain.model import HotKernel
from hlofuse.reports.whatif.model import Trial
from .model import MEASURED, Share, Suggestion, Verdict

_SOON = ": some trials were left out to save time (what-if has all)"
_NOTHING_LEFT = 0.02  # the part of the time that is not worth looking for
FORWARD = " · replayed in the forward pass only; the gradient may take more time: hlofuse fix compiles both"
SCALED = "scaled to measured time"
COMPILED, VALUES = "compiled by XLA", "values equal"  # proofs in `Trial.how`
_LINES = 3  # of the program named of one suggestion


def cut(line: str, width: int) -> str:
    """The line; where it has no room, whole parts at its end are left out."""
    line = printable(line)
    if len(line) <= width:
        return line
    end = max(line.rfind(mark, 0, width - 2 + len(mark)) for mark in (" · ", ", ", "; ", " ("))
    return line[: end if end > width // 3 else line.rfind(" ", 0, width - 1)].rstrip() + " …"


def totals_line(t: Totals) -> str:
    """`2 kernels, 7.06 µs est., 16.8 MB moved`; launches where loops make them more."""
    launches = f", {plural(t.launches, 'launch', 'launches')}" if t.launches != t.kernels else ""
    time = f", {us_text(t.measured_us)} measured" if t.measured_us is not None else ""
    time += f", {us_text(t.us, t.is_floor)} est." if t.us is not None else ""
    peak = f", {bytes_text(t.peak_temporary_bytes)} temporary" if t.peak_temporary_bytes else ""
    vmem = f"≥ {bytes_text(t.vmem_temporary_bytes)} VMEM"
    if t.vmem_temporary_bytes:
        peak = f"{peak} + {vmem}" if peak else f", {vmem} temporary"
    moved = f"{t.moved_text} moved"
    if t.hbm_bytes is not None:
        vmem = f" + {bytes_text(t.vmem_bytes)} VMEM" if t.vmem_bytes else ""
        moved = f"{bytes_text(t.hbm_bytes)} HBM{vmem} moved"
    return f"{plural(t.kernels, 'kernel')}{launches}{time}, {moved}{peak}{undivided(t.devices)}"


def times_lines(v: Verdict) -> Iterator[str]:
    """The CPU that the times are estimated for, and the kernels whose time is not known."""
    if v.cpu is not None:
        yield f"Times: estimates for {cpu_title(v.cpu, v.totals)}"
    if v.totals.call_us > 0.5 * (v.totals.us or 0.0) and not v.totals.per_iteration:
        yield "Several steps (a loop) or inputs (a batch) in one program share its call"
    unknown = [
        (k.open_end, printable(k.place.label))
        for k in v.hot_kernels
        if (not k.has_time or k.open_end) and k.measured_us is None
    ]
    if unknown:
        found = grouped(unknown).items()
        parts = [listing(names, 3) + (f" ({reason})" if reason else "") for reason, names in found]
        yield f"Not fully estimated, measure: {'; '.join(parts)}"


def cpu_title(cpu: CpuDevice, t: Totals) -> str:
    """`xeon_2_threads (2 threads), total within 1.7×`; of a part of it where the rest is not known."""
    what = "estimated part" if t.without_time or t.per_iteration else "total"
    similar = f", the most similar to {cpu.similar_to}" if cpu.similar_to else ""
    name = f"{printable(cpu.name)} ({plural(cpu.threads, 'thread')}){similar}"
    hint = "; hlofuse calibrate measures yours" if cpu.name in cpu_names() else ""
    return f"{name}, {what} within {cpu.error('total'):.1f}×{hint}"


def counting_lines(v: Verdict) -> Iterator[str]:
    """The kernels that count for one iteration, and those of which one branch counts."""
    t = v.totals
    if 0 < t.memory_size < (needed := t.memory_bytes or 0):
        misfit = f"{undivided(t.devices)}, each has" if t.devices > 1 else " do not fit in"
        yield f"{bytes_text(needed)}{misfit} {memory_text(t.memory_size)} (arrays, advice: hlofuse memory)"
    if t.per_iteration:
        most = f" of at most {t.most_iterations:,}" if t.most_iterations is not None else ""
        each = f", {us_text(t.iteration_us)}" if t.iteration_us else ""
        kernels = plural(t.per_iteration, "kernel")
        yield f"Loops of unknown length: {kernels} counted for one iteration{most}{each}"
        if v.awaited_elements > 1:
            cure = "; for vmap, jax.lax.map(f, xs, batch_size=n) ends each part by itself" if v.cpu else ""
            yield f"One runs until the last of {v.awaited_elements:,} elements is done{cure}"
    if v.host_reads_conditions:
        fewer = "a static length (static_argnums) avoids it"
        cure = (
            f"; {fewer}" if v.counts_to_an_argument else "; several steps in each (fori_loop) wait less often"
        )
        yield f"Each iteration waits for a copy of its condition to the host{cure}"
    if v.discarded is not None:
        us, place = v.discarded
        what = f"{us_text(us)}{_part(us, t.us or 0.0)} computes what a condition may discard"
        yield f"{what} ({printable(place.where or place.shown)}); jax.lax.cond computes it only if needed"
    if t.in_branches:
        kernels = plural(t.in_branches, "kernel")
        yield f"Conditionals: {kernels} in branches; only the costliest branch counts"


def shares_lines(v: Verdict, width: int) -> list[str]:
    """`Time: fused kernels 5.06 µs (72%) · launches 2.00 µs (28%)`; bytes where no time is estimated."""
    if not v.shares:
        return ["No kernels."]
    if v.totals.measured_us:
        parts = [
            f"{s.kind} {us_text(s.measured_us)}{_part(s.measured_us, v.measured_whole)}"
            for s in v.shares
            if s.measured_us is not None
        ]
        rest = v.measured_whole - sum(s.measured_us or 0.0 for s in v.shares)
        if part := _part(rest, v.measured_whole):
            parts.append(f"between kernels {us_text(rest)}{part}")
    elif v.totals.us is None:
        moved = v.totals.cost.bytes_accessed
        found = [s for s in v.shares if s.bytes_accessed or not moved]
        parts = [f"{s.kind} {bytes_text(s.bytes_accessed)}{_part(s.bytes_accessed, moved)}" for s in found]
    else:
        found = sorted(v.shares, key=lambda s: not s.is_open)
        parts = [_share(s, v.totals) for s in found if s.is_open or round(s.us or 0.0, 2) or not v.totals.us]
    measured, timed = bool(v.totals.measured_us), v.totals.us is not None
    kind = "Measured" if measured else "Time" if timed else "Bytes"
    return broken(f"{kind}: {' · '.join(parts)}", width)


def _share(s: Share, totals: Totals) -> str:
    us, total, together = s.us or 0.0, totals.us or 0.0, ""
    if s.is_open:
        return f"{s.kind} not known"
    if s.in_command_buffers:
        some = "all" if s.in_command_buffers == s.count else f"{s.in_command_buffers:,} of {s.count:,}"
        together = f", {some} in command buffers"
    if s.host_wait_us >= 0.005 * total:
        waits = f"{us_text(s.host_wait_us)} of it host waits (as measured on an H200)"
        together = f", {waits}{together}"
    kind = "call of the program" if s.kind == "call" else s.kind
    return f"{kind} {us_text(us, s.is_floor)}{_part(us, 0.0 if totals.open_ended else total)}{together}"


def _part(value: float, whole: float) -> str:
    """` (14%)`; empty for less than half a percent."""
    return f" ({100 * value / whole:.0f}%)" if whole and value >= 0.005 * whole else ""


def bound_lines(v: Verdict) -> Iterator[str]:
    """Lines on the headroom of fusion and the floors; bytes where there are no times.
    None before a program is divided over devices: the parts have other kernels."""
    if v.totals.devices > 1:
        return
    if (p := v.program) is not None:
        if p.us is not None:
            yield f"Floor with these {enumeration(p.keeps)}: {us_text(p.us)}"
        once = us_text(p.moved_us) if p.moved_us is not None else bytes_text(p.moved_bytes)
        yield f"Inputs and results moved once: {once}"
    if v.floor.us is not None or v.totals.us is None:
        yield _headroom(v)


def _headroom(v: Verdict) -> str:
    """The most that any other fusion may save, and whether a change of the program saves more."""
    total, floor, how = v.totals.us, v.floor.us, ""
    text: Callable[[float], str] = us_text
    if total is None or floor is None:
        total, floor, text = v.totals.cost.bytes_accessed, v.floor.bytes_accessed, bytes_text
    most = max(total - floor, 0)
    if (left := v.scaled_us_left) is not None:
        total, most, how = v.totals.measured_us or 0.0, left, f", {SCALED}"
    low = _saving(v, v.found.trial) if v.found is not None else 0.0
    is_open = v.totals.open_ended > 0 and text is us_text and left is None  # the total is not known
    share, is_found = _part(most, 0.0 if is_open else total), low > 0.001 * total
    at_most = f"{text(most)}{share}"
    more, code = "", v.best_of.removeprefix("without ")
    if is_found and low > most:
        more = "; the changes below save more"
    elif v.best is not None and code != v.best_of:
        saved = min(_saving(v, v.best), most)  # what a rule takes that no change of the user's avoids
        more = f"; {text(saved)} of it is XLA's ({code})" if saved > max(low, _NOTHING_LEFT * total) else ""
    if text is bytes_text:
        if not most:
            return f"Fusion has nothing left to save{more}"
        return f"Fusion can save at most {text(most)} of {text(total)} moved{share}{more}"
    if most <= _NOTHING_LEFT * total:
        if not v.covers_all or v.suggestions or v.untried:
            return f"XLA fused all it can ({text(most)} left). To go faster, change the program"
        if round(most, 2) == 0:
            return "Fusion has nothing left to save"
        return f"Fusion is near its optimum: at most {at_most} left to save{how}"
    is_settled = is_found or not v.is_replayed or not v.replays
    if is_settled or not v.is_ranked:
        more = more if is_settled else "; rules not replayed one by one (what-if does)"
        return f"Headroom in fusion: {text(most)} at most{share}{how}{more}"
    return f"No better fusion found ({v.replays:,} tried). At most {at_most} is left{how}{more}."


def _saving(v: Verdict, t: Trial) -> float:
    """Bytes where no time is estimated, else microseconds, measured ones where there is a profile."""
    if v.totals.us is None or v.floor.us is None:
        return t.bytes_saved
    return (t.us_saved if v.scaled_us_left is None else t.scaled_us_saved) or 0.0


def answer_lines(v: Verdict) -> Iterator[str]:
    """The bounds and the suggestions, for a report that has the totals already."""
    yield from bound_lines(v)
    for s in v.suggestions[:3]:
        yield f"{suggestion_text(s)}: {trial_line(s, v)}"


def suggestion_text(s: Suggestion) -> str:
    """The action as text; for a flag, the words to set."""
    variable = "LIBTPU_INIT_ARGS" if s.flag.startswith("--xla_tpu_") else "XLA_FLAGS"
    return f"{variable}={s.flag}" if s.flag else s.text


def suggestions_title(v: Verdict, shown: int) -> str:
    """The heading above the suggestions, or that there is none."""
    if v.not_proved:
        what = "Not simulated" if v.tiles is not None else "Not compiled, only replayed"
        return f"{what}: {v.not_proved.splitlines()[0]}"
    suggested = any(s.kind != "report" for s in v.suggestions[:1])
    if v.compiled and not suggested:
        return f"No suggestions: XLA compiled {plural(v.compiled, 'change')}, none is known to save anything"
    if v.tiles is not None and not v.compiled:
        return "No change was simulated: XLA:TPU is closed. --prove compiles changes with libtpu"
    if not v.is_replayed and not v.compiled:
        return "No change was tried on this fused module; give the module before fusion"
    if not suggested and v.skipped:
        return f"No suggestions{_SOON}"
    if not suggested and not v.is_ranked:
        rest = "; with the repeated part in lax.scan more are" if v.compile_time else ""
        rules = f"few changes are tried (what-if tries rules){rest}"
        return f"No suggestions: above {TRIED_UP_TO:,} operations {rules}"
    if not suggested:
        if saved := max((s.trial.temporary_saved or 0 for s in v.slower), default=0):
            return f"No suggestion saves time; one frees {bytes_text(saved)} in more time: memory INPUT"
        rest = "" if v.has_unoptimized else "; most need the module before optimizations"
        return f"No suggestions: no recipe or flag that was tried saves anything{rest}"
    more = f" ({shown} of {len(v.suggestions)}; what-if shows all)" if shown < len(v.suggestions) else ""
    tried = "replayed on this module" if v.is_ranked or v.skipped else "replayed around each place"
    if any(s.trial.how == MEASURED for s in v.suggestions):
        tried = f"{tried} where not measured"
    if v.compiled:
        tried = f"{plural(v.compiled, 'change')} {COMPILED}"
        more = more.replace("what-if", "--limit 0")
    return f"Suggestions, {tried}{_SOON if v.skipped else more}"


def rounding_lines(v: Verdict) -> Iterator[str]:
    """The changes that lose digits, and what they gain."""
    names = [f"{s.recipe} {next(_gains(s.trial, v.totals))}" for s in v.rounding]
    if names:
        yield f"With fewer digits (values change): {listing(names, 3)}"


def untried_lines(v: Verdict, *, brief: bool = False) -> Iterator[str]:
    """The recipes and flags that may apply, most touched first: each with its lines, or `brief` by name."""
    if v.untried:
        shares = ((s.recipe or s.flag, _touched(s, v)) for s in v.untried)
        names = [f"{name} ({share})" if share else name for name, share in shares]
        how = "time unknown" if any(s.trial.totals for s in v.untried) else "not simulated"
        yield f"Worth trying ({how}):{f' {listing(names, 2)}' if brief else ''}"
    for s in () if brief else v.untried:
        parts = suggestion_text(s), where_text(s.sources, s.places), name_text(s)
        yield "  " + " · ".join(filter(None, (*parts, _touched(s, v))))


def _touched(s: Suggestion, v: Verdict) -> str:
    """`touches 27% of time`, on a TPU the time, and bytes saved, if a tenth; empty where next to nothing."""
    fewer = s.trial.bytes_saved / (v.totals.cost.bytes_accessed or 1) if s.flag and s.trial.totals else 0.0
    if fewer >= 0.1 and not s.touches_unknown:
        return f"moves {100 * fewer:.0f}% fewer bytes"
    us = us_text(s.touched * v.totals.us) if v.tiles is not None and v.totals.us else ""
    of = "the estimated time" if v.totals.is_floor else "time"
    what = of if v.totals.us is not None else "bytes"
    if s.touches_unknown:
        return f"touches {f'{us} and ' if us and s.touched else ''}kernels without a time"
    if s.touched < 0.005:
        return f"touches under 1% of {what}" if us and s.touched else ""
    return f"touches {us}{', ' if us else ''}{100 * s.touched:.0f}% of {what}"


def where_text(sources: Sequence[str], places: int = 0, room: int | None = None) -> str:
    """The lines to edit and in how many places; in `room` columns one line, of a file without its folders."""
    files = [printable(line.partition(" ")[0]) for line in sources]
    text = ""
    for shown in (files[:_LINES], files[:1], [f.rpartition("/")[2] for f in files[:1]]):
        more = f" ({plural(places, 'place')})" if places > len(shown) else ""
        text = ", ".join(shown) + more if shown else ""
        if room is None or len(text) <= room:
            return text
    return shorten(text.partition(" ")[0], max(room or 0, 24))


def trial_line(s: Suggestion, v: Verdict, width: int | None = None) -> str:
    """`−1.01 µs (14%) · epi.py:12 · hlofuse recipe scale-the-summands · 2 → 1 kernels`, as `change_line`."""
    proof = s.trial.how if s.trial.how.startswith(COMPILED) else ""
    line = change_line(s.trial, v.totals, s.sources, proof or name_text(s), s.places, width)
    return line + FORWARD * s.is_forward_alone


def code_lines(s: Suggestion, width: int) -> list[str]:
    """The line to change, the user's own where it can be read, and the form to write; none without one."""
    edit = edit_of(s.recipe, s.text, s.sources)
    if edit is None:
        return []
    names = (edit["source"], "write") if edit["source"] else ("before", "after")
    wide = max(map(len, names)) + 2
    own = f"{printable(names[0]):<{wide}}{shorten(printable(edit['before']), width - wide)}"
    new = f"{names[1]:<{wide}}{printable(edit['after'])}"
    return [own, *wrap(new, width, subsequent_indent=" " * (wide + 4), break_long_words=False)]


def name_text(s: Suggestion) -> str:
    """`hlofuse recipe scale-the-summands`, or the rule of a flag or a report; empty for neither."""
    return f"hlofuse recipe {s.recipe}" if s.recipe else f"hlofuse rule {s.rule}" if s.rule else ""


def change_line(
    t: Trial,
    totals: Totals,
    sources: Sequence[str],
    name: str,
    places: int = 0,
    width: int | None = None,
) -> str:
    """Gain, place, name, then counts of a change; of places as many as `width` columns have room for."""
    gain, *counts = [*_gains(t, totals), ""]
    room = None if width is None else width - len(f"{gain} ·  · {name}")
    where = where_text(sources, places, room)
    return " · ".join(filter(None, (gain, where, name, ", ".join(filter(None, counts)))))


def _gains(t: Trial, totals: Totals) -> Iterator[str]:
    """`−1.01 µs (14%)`, `2 → 1 kernels`; with a profile `−3.20 µs (11%) scaled`, or what is `est.` alone."""
    saved, whole = t.us_saved, None if totals.open_ended else totals.us
    end = " est." if totals.measured_us else ""
    if t.scaled_us_saved is not None:
        saved, whole, end = (
            t.scaled_us_saved,
            totals.measured_us,
            " measured" if t.how == MEASURED else " scaled",
        )
    if saved is None and t.has_fewer_library_calls:
        yield "gain unknown: replaces library calls by XLA's own loops; measure"
    elif t.is_to_be_measured and t.saves_memory(totals):
        yield f"−{bytes_text(t.temporary_saved or 0)} temporary, more code: measure the time"
    elif t.is_to_be_measured:
        yield "gain unknown: the code grows; measure"
    elif saved is None and totals.us is not None:
        fewer = t.totals is not None and t.totals.unknown < totals.unknown
        more = ((t.totals.us if t.totals is not None else None) or 0.0) - totals.us
        pays = f"pays if what it replaces takes {us_text(more)} above its bound"
        yield f"time unknown: {pays if fewer and more > 0 else 'library calls change'}"
    elif saved is not None and not end and t.iteration_us_saved > 0:
        each, once = t.iteration_us_saved, t.iteration_us_saved - saved
        start = f", +{us_text(once)} once" if once >= 0.005 else ""
        yield f"−{us_text(each)}{_part(each, totals.iteration_us)} in each iteration{start}"
    elif saved is not None:
        share = _part(abs(saved), whole) if whole else ""
        yield f"{'−' if saved >= 0 else '+'}{us_text(abs(saved))}{share}{end}"
        if t.roughly_timed and t.how != MEASURED:
            yield f"estimated: {t.roughly_timed} by 1 measurement, error unknown"
    if t.totals is None:
        return
    if t.saves_memory(totals) and not t.is_to_be_measured:
        fits = " (then it fits)" if t.relief(totals) == 1 and not t.totals.lacking_bytes else ""
        yield f"−{bytes_text(t.temporary_saved or 0)} temporary{fits}"
    elif t.takes_memory(totals):
        fits = " (then it does not fit)" if t.totals.lacking_bytes else ""
        yield f"+{bytes_text(-(t.temporary_saved or 0))} temporary{fits}"
    if t.kernels_saved:
        yield f"{totals.kernels:,} → {totals.kernels - t.kernels_saved:,} kernels"
    if t.launches_saved not in (0, t.kernels_saved):
        yield f"{totals.launches:,} → {totals.launches - t.launches_saved:,} launches"
    if t.us_saved is None and t.bytes_saved:
        yield f"{'−' if t.bytes_saved > 0 else '+'}{bytes_text(abs(t.bytes_saved))} moved"


def kernels_title(v: Verdict, shown: int, rows: int) -> str:
    """`shown` kernels stand in `rows` rows."""
    of = f", {shown:,} of {v.totals.kernels:,}" if shown < v.totals.kernels else ""
    of += f" in {plural(rows, 'row')}" if of and rows < shown else ""
    if v.totals.measured_us:
        return f"Slowest kernels, measured{of}"
    if v.totals.us is None:
        times = "; times need --device, such as v5e" if v.tiles is not None else ""
        return f"Kernels that move most bytes{of}{times}"
    return f"Slowest kernels ({v.time_source or 'launch overhead included'}){of}"


def kernel_cells(k: HotKernel, v: Verdict) -> tuple[str, str, str, str, str]:
    """Time or bytes, its part of all, the name, the line, and what bounds it."""
    if v.totals.measured_us:
        figure, part = us_text(k.measured_us or 0.0), (k.measured_us or 0.0) / v.measured_whole
    elif v.totals.us is None:
        figure, part = bytes_text(k.bytes_accessed), k.bytes_accessed / (v.totals.cost.bytes_accessed or 1)
        if not k.bytes_accessed:
            figure, part = "not known", nan
    else:
        part = nan if v.totals.open_ended else k.us / (v.totals.us or 1.0)
        figure = us_text(k.us, k.is_floor)
        if k.is_open or (not k.us and (k.is_floor or not k.has_time)):
            figure, part = "not known", nan
    name = times(k.place.label, k.count)
    name += times_text(k.iterations) + (", one iteration" if k.per_iteration else "")
    name += ", in one branch" if k.in_branch else ""
    return (
        figure,
        "" if isnan(part) else f"{100 * part:.0f}%",
        printable(name),
        printable(k.place.where),
        k.bound_by,
    )


def delta(old: float, change: float, text: Callable[[float], str]) -> str:
    """`−1.01 µs (−14%)`."""
    if round(change, 4) == 0:
        return "±0"
    sign = "−" if change < 0 else "+"
    return sign + text(abs(change)) + _part(abs(change), old).replace("(", f"({sign}")
