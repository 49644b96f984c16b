"""`memory` for the terminal."""

from collections.abc import Iterator, Sequence

from hlofuse.format import bytes_text, listing, memory_text, plural, printable, undivided, us_text
from hlofuse.format.terminal import Page, Rows, print_lines
from hlofuse.ir import grouped
from hlofuse.reports.verdict.phrases import delta, where_text
from hlofuse.reports.whatif.model import Trial
from .changes import NOTABLE, MemoryChange
from .model import AliveArray, MemoryUse


def print_memory(m: MemoryUse, console: Page) -> None:
    """Print the bytes of each kind, then the arrays alive at the peak, the largest first."""
    print_lines(console, [summary(m)], 0, "bold")
    if len(m.by_argument) > 1:
        sizes = [f"{printable(name)} {bytes_text(size)}" for name, size in m.by_argument.items()]
        print_lines(console, [f"Largest arguments: {', '.join(sizes)}"], 0)
    if m.alive and m.peak > NOTABLE * m.temporary:
        print_lines(console, [_largest(m)], 0)
    if m.is_estimated:
        text = "Estimated: XLA's final module is not in the input, and the order of execution is a replay's."
        console.print(text, style="dim")
    for source, kind, own, recorded in (
        ("buffer assignment", "temporaries", m.temporary, m.recorded_temporary),
        ("memory usage report", "total", m.total + m.host, m.recorded_total),
    ):
        if recorded is not None:
            has = f"the same {kind}" if recorded == own else f"{kind} {bytes_text(recorded)}"
            console.print(f"XLA's own {source} has {has}", style="dim" if recorded == own else "yellow")
    count, us = m.rematerialized
    if count:
        time = f", {us_text(us)} in all" if us is not None else ""
        text = f"XLA computes {plural(count, 'kernel')} again to save memory (.remat in the name){time}"
        console.print(text)
    print_lines(console, _change_lines(m), 0)
    shown = console.first(m.alive)
    if not shown:
        return
    memory = " of HBM" if m.vmem else ""
    console.print(f"\n{bytes_text(m.peak)}{memory} alive at the peak: {plural(len(m.alive), 'array')}")
    unused = m.temporary - m.peak
    if unused > NOTABLE * m.temporary:
        what = "gaps between places and tuples, as XLA counts them"
        console.print(f"The other {bytes_text(unused)} of the temporaries: {what}")
    table = Rows(
        ("bytes", "right"),
        ("array", "name"),
        ("shape", "name"),
        ("line", "name"),
        ("last reader", "left"),
        drop=(4, 2),
    )
    for array in shown:
        line = printable(array.source or "")
        line = f"…{line[-27:]}" if len(line) > 28 and console.width < 100 else line
        table.add_row(bytes_text(array.bytes), _name(array), printable(array.shape), line, _reader(array))
    table.print(console)
    console.print_rest(m.alive)
    for why, arrays in grouped((a.reason, a) for a in shown if a.reason).items():
        names = listing([_name(a) for a in arrays], 2)
        size = f" ({bytes_text(sum(a.bytes for a in arrays))})" if len(arrays) > 1 else ""
        console.print(f"{names}{size}: {printable(why)}")


def summary(m: MemoryUse) -> str:
    """`16.8 MB of 84.9 GB (79.1 GiB): arguments 8.39 MB, results 8.39 MB, temporaries 4.10 kB`."""
    results = f"results {bytes_text(m.results)}"
    results += f" ({bytes_text(m.aliased)} in donated arguments)" if m.aliased else ""
    parts = [f"arguments {bytes_text(m.arguments)}", results, f"temporaries {bytes_text(m.temporary)}"]
    parts += [f"constants {bytes_text(m.constants)}"] if m.constants else []
    memory = apart = ""
    if m.vmem:
        memory = " of HBM"
        apart = f"; besides at least {bytes_text(m.vmem)} of VMEM"
    if m.host:
        apart += f"; besides {bytes_text(m.host)} in host memory"
    total = bytes_text(m.total) + undivided(m.devices)
    if m.available is not None:
        relation = ", each has" if m.devices > 1 else " of" if m.fits else " does not fit in"
        total += f"{relation} {memory_text(m.available)}"
    return f"{total}{memory}: {', '.join(parts)}{apart}"


def _change_lines(m: MemoryUse) -> Iterator[str]:
    fitting = [c for c in m.changes if _makes_fit(c.trial, m)]
    if m.changes:
        none = "; none alone makes it fit" if m.fits is False and not fitting else ""
        yield from ("", f"Changes that need less memory, replayed on this module{undivided(m.devices)}{none}")
    for number, c in enumerate(m.changes, 1):
        where = f" ({where_text(c.sources)})" if c.sources else ""
        yield f"{number}. {c.text}{where}"
        yield f"   {_gain(c.trial, m)}{', then it fits' if c in fitting else ''}"

    untried = [u for u in m.untried if not any(u.text.startswith(c.text) for c in m.changes)]
    if untried:
        yield from ("", "Worth trying (not simulated), with the size of the arrays concerned")
    for u in untried:
        where = f" at {where_text(u.sources)}" if u.sources else ""
        yield f"{bytes_text(u.bytes)}{where}: {printable(u.text)}"


def _makes_fit(t: Trial, m: MemoryUse) -> bool:
    after = t.totals.memory_bytes if t.totals is not None else None
    return m.fits is False and max(after or 0, m.total - (t.memory_saved or 0)) <= (m.available or 0)


def fitting_first(changes: Sequence[MemoryChange], m: MemoryUse) -> tuple[MemoryChange, ...]:
    """The changes after which the module fits, the fastest first, then the others as they are."""
    fitting = [c for c in changes if _makes_fit(c.trial, m)]
    fitting.sort(key=lambda c: -(c.trial.us_saved or 0.0))
    return (*fitting, *(c for c in changes if c not in fitting))


def _largest(m: MemoryUse) -> str:
    """`98% of the peak: 671 MB at ten.py:9, 5 arrays, the largest f32[64,1024,512]`."""
    found = grouped((f"at {a.source}" if a.source else a.name, a) for a in m.alive)
    sizes = {where: sum(a.bytes for a in own) for where, own in found.items()}
    where = max(sizes, key=sizes.__getitem__)
    arrays, size = found[where], sizes[where]
    shape = arrays[0].shape
    count = f"{plural(len(arrays), 'array')}, the largest " if len(arrays) > 1 else ""
    rest = printable(f"{where}, {count}{shape}")
    return f"{size / m.peak:.0%} of the peak: {bytes_text(size)} {rest}"


def _gain(t: Trial, m: MemoryUse) -> str:
    """`384 MB → 128 MB temporary, time +100.5 µs`."""
    assert t.totals is not None
    saved, in_all = t.temporary_saved or 0, t.memory_saved or 0
    kind, own, after = "temporary", m.temporary, t.totals.peak_temporary_bytes or 0
    if in_all > 1.01 * saved:
        kind, own, after, saved = "in all", m.total, t.totals.memory_bytes or 0, in_all
    before, us = after + saved, t.totals.us
    time = "" if t.us_saved == 0 else ", time not known"
    if us is not None and t.us_saved:
        whole = 0.0 if t.totals.open_ended else us + t.us_saved
        time = f", time {delta(whole, -t.us_saved, us_text)}"
    # Without XLA's schedule a replay may need less or more than XLA's own module.
    whose = "replayed "
    if abs(before - own) <= own // 100:
        after = after * own // max(before, 1)
        before, whose = own, ""
    return f"{whose}{bytes_text(before)} → {bytes_text(after)} {kind}{time}"


def _name(array: AliveArray) -> str:
    return printable(array.name + "".join(f"#{k}" for k in array.index))


def _reader(array: AliveArray) -> str:
    if array.last_reader is None:
        return ""
    line = f" at {printable(array.last_reader_source)}" if array.last_reader_source else ""
    return printable(array.last_reader) + line
