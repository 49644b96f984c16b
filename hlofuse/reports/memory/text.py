"""`memory` for the terminal."""

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import Rows, print_more
from hlofuse.format.units import bytes_text, plural
from hlofuse.reports.memory.model import AliveArray, MemoryUse


def print_memory(m: MemoryUse, console: Console, *, limit: int = 20) -> None:
    """Print the bytes of each kind, then the arrays alive at the peak, the largest first."""
    console.print(Text(summary(m), style="bold"))
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
    """`16.8 MB: arguments 8.39 MB, results 8.39 MB, temporaries 4.10 kB`."""
    results = f"results {bytes_text(m.results)}"
    results += f" ({bytes_text(m.aliased)} in donated arguments)" if m.aliased else ""
    parts = [f"arguments {bytes_text(m.arguments)}", results, f"temporaries {bytes_text(m.temporary)}"]
    parts += [f"constants {bytes_text(m.constants)}"] if m.constants else []
    return f"{bytes_text(m.total)}: {', '.join(parts)}"


def _name(array: AliveArray) -> str:
    return printable(array.name + "".join(f"#{k}" for k in array.index))


def _reader(array: AliveArray) -> str:
    if array.last_reader is None:
        return ""
    line = f" at {printable(array.last_reader_source)}" if array.last_reader_source else ""
    return printable(array.last_reader) + line
