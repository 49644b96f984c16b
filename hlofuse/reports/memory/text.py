"""`memory` for the terminal."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import Rows, print_more
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.reports.memory.model import AliveArray, MemoryUse
from hlofuse.reports.verdict.phrases import delta, where_text

_SHARE = 0.75
"""The part of a GPU's memory that JAX takes by default."""


def print_memory(m: MemoryUse, console: Console, *, limit: int = 20) -> None:
    """Print the bytes of each kind, then the arrays alive at the peak, the largest first."""
    console.print(Text(summary(m), style="bold"))
    for note in notes(m):
        console.print(Text(note, style="dim"))
    for line in _change_lines(m):
        console.print(Text(line))
    shown = m.alive[: limit or None]
    if not shown:
        return
    console.print(Text(f"\n{bytes_text(m.peak)} alive at the peak: {plural(len(m.alive), 'array')}"))
    table = Rows(
        ("bytes", "right"),
        ("array", "name"),
        ("shape", "name"),
        ("line", "name"),
        ("last reader", "left"),
        drop=(3, 2),
    )
    for array in shown:
        line = printable(array.source or "")
        table.add_row(bytes_text(array.bytes), _name(array), printable(array.shape), line, _reader(array))
    table.print(console)
    print_more(console, len(m.alive) - len(shown))


def summary(m: MemoryUse) -> str:
    """`16.8 MB of 79.1 GiB: arguments 8.39 MB, results 8.39 MB, temporaries 4.10 kB`."""
    results = f"results {bytes_text(m.results)}"
    results += f" ({bytes_text(m.aliased)} in donated arguments)" if m.aliased else ""
    parts = [f"arguments {bytes_text(m.arguments)}", results, f"temporaries {bytes_text(m.temporary)}"]
    parts += [f"constants {bytes_text(m.constants)}"] if m.constants else []
    parts += [f"and at least {bytes_text(m.vmem)} of VMEM"] if m.vmem else []
    total = bytes_text(m.total)
    if m.available is not None:
        total += f"{' of' if m.fits else ' does not fit in'} {gibibytes(m.available)}"
    return f"{total}: {', '.join(parts)}"


def notes(m: MemoryUse) -> Iterator[str]:
    """Sentences on what the figures are, and on the share of a GPU that JAX takes."""
    if m.is_estimated:
        yield "Estimated: XLA's final module is not in the input, and the order of execution is a replay's."
    if m.device and m.available is not None and m.fits and m.total > _SHARE * m.available:
        yield "JAX takes 75% of a GPU unless XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise: set it to .95."


def gibibytes(size: int) -> str:
    """`79.1 GiB`, as memory of hardware is counted; smaller sizes in decimal units."""
    return f"{size / 2**30:.3g} GiB" if size >= 2**30 else bytes_text(size)


def _change_lines(m: MemoryUse) -> Iterator[str]:
    if m.changes:
        yield "\nChanges that need less temporary memory, replayed on this module"
    for number, c in enumerate(m.changes, 1):
        where = f" ({printable(where_text(c.sources))})" if c.sources else ""
        yield f"{number}. {c.text}{where}"
        before = c.temporary_bytes + c.saved_bytes
        time = ""
        if c.time_us is not None and c.time_saved_us:
            time = f", time {delta(c.time_us + c.time_saved_us, -c.time_saved_us, us_text)}"
        # Without XLA's schedule a replay may need less or more than XLA's own module.
        whose = "" if abs(before - m.temporary) <= m.temporary // 100 else "replayed "
        yield f"   {whose}{bytes_text(before)} → {bytes_text(c.temporary_bytes)} temporary{time}"


def _name(array: AliveArray) -> str:
    return printable(array.name + "".join(f"#{k}" for k in array.index))


def _reader(array: AliveArray) -> str:
    if array.last_reader is None:
        return ""
    line = f" at {printable(array.last_reader_source)}" if array.last_reader_source else ""
    return printable(array.last_reader) + line
