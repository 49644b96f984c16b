"""`stats` for the terminal."""

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.page import name_text
from hlofuse.format.terminal import indented, print_more, print_rows
from hlofuse.format.units import bytes_text, plural, quantity, us_text
from hlofuse.reports.common.phrases import measured_text, times_text
from hlofuse.reports.stats.model import KernelStatistics, ModuleStatistics

STAGES = {
    "fusion-input": "not fused",
    "before-optimizations": "before optimizations",
    "after-fusion": "fused",
    "scheduled": "fused and scheduled",
}
ITERATIONS = "Bytes and FLOP include all iterations of loops; those of a kernel are for one launch"


def headline(m: ModuleStatistics) -> tuple[str, ...]:
    """Kernels, launches where loops or branches change their number, bytes, FLOP and transcendentals."""
    t = m.totals
    return (
        plural(t.kernels, "kernel"),
        *([plural(t.launches, "launch", "launches")] if t.launches != t.kernels else []),
        *([f"{us_text(t.measured_us)} measured"] if t.measured_us is not None else []),
        f"{bytes_text(m.totals.cost.bytes_accessed)} moved",
        f"{quantity(m.totals.cost.flops)} FLOP",
        f"{quantity(m.totals.cost.transcendentals)} transcendentals",
    )


def uncounted_line(m: ModuleStatistics) -> str:
    """A line about what the figures leave out; empty for nothing."""
    if not m.totals.cost.unknown:
        return ""
    return f"{plural(m.totals.cost.unknown, 'custom call')} not counted: XLA does not know their cost"


def counts(m: ModuleStatistics) -> list[tuple[str, dict[str, int]]]:
    """Instructions by opcode and fusions by kind, each with its heading."""
    found = [(f"{plural(m.instructions, 'instruction')}: ", m.opcodes)]
    if m.fusions:
        found.append((f"{plural(sum(m.fusions.values()), 'fusion')}: ", m.fusions))
    return found


def kernel_figures(k: KernelStatistics) -> tuple[str, str]:
    """Bytes and FLOP of one turn."""
    if k.row.cost.unknown:
        return "unknown", "unknown"
    return bytes_text(k.row.cost.bytes_accessed), quantity(k.row.cost.flops + k.row.cost.transcendentals)


def kind_and_place(kernel: KernelStatistics) -> str:
    """The kind of a fusion, the layer and the line."""
    where = ": ".join(filter(None, (kernel.layer, kernel.source)))
    return " ".join(filter(None, (kernel.row.instruction.fusion_kind, where)))


def print_statistics(modules: list[ModuleStatistics], console: Console) -> None:
    """Each module after the other."""
    for number, module in enumerate(modules):
        if number:
            console.print()
        _print_module(module, console)


def _print_module(m: ModuleStatistics, console: Console) -> None:
    head = Text(printable(m.name), style="bold")
    if m.filename is not None:
        head.append(f"  {printable(m.filename)}", style="dim")
    head.append(f"  ({STAGES[m.stage]})", style="dim")
    console.print(head)
    console.print(Text("   ".join(headline(m)), style="bold"))
    if uncounted := uncounted_line(m):
        console.print(Text(uncounted))

    console.print()
    loops = any(c.iterations > 1 for c in m.computations)
    columns = [
        ("computation", "name"),
        ("", "left"),
        *([("iterations", "right")] if loops else []),
        ("instructions", "right"),
        ("kernels", "right"),
        ("bytes", "right"),
        ("FLOP", "right"),
    ]
    rows: list[list[str | Text]] = [
        [
            name_text(c.name),
            Text(c.role, style="dim"),
            *(["–" if c.role == "while condition" else f"{c.iterations:,}"] if loops else []),
            f"{c.instructions:,}",
            f"{c.kernels:,}",
            bytes_text(c.cost.bytes_accessed),
            quantity(c.cost.flops),
        ]
        for c in m.computations
    ]
    print_rows(console, columns, rows, drop=[*([3, 6] if loops else [2, 5]), 1])
    if loops:
        console.print(Text(ITERATIONS, style="dim"))
    inside = []
    if m.fusion_bodies:
        inside.append(plural(m.fusion_bodies, "fused computation", "fused computations"))
    if m.applied_computations:
        inside.append(f"{plural(m.applied_computations, 'to_apply computation')}")
    if inside:
        console.print(Text("and " + ", ".join(inside), style="dim"))

    console.print()
    for title, by_name in counts(m):
        _print_counts(console, title, by_name)

    if m.heaviest:
        console.print()
        measured = m.totals.measured_us is not None
        columns = [
            ("slowest kernels" if measured else "largest kernels", "name"),
            *([("measured", "right")] if measured else []),
            ("instructions", "right"),
            ("bytes", "right"),
            ("FLOP", "right"),
            ("", "left"),
        ]
        rows = [
            [
                name_text(k.shown).append(times_text(k.row.runs)),
                *([measured_text(k.row.measured)] if measured else []),
                str(k.holds) if k.row.instruction.opcode == "fusion" else "",
                *kernel_figures(k),
                Text(printable(kind_and_place(k)), style="dim"),
            ]
            for k in m.heaviest
        ]
        print_rows(console, columns, rows, drop=(1 + measured, 3 + measured))
        print_more(console, m.totals.kernels - len(m.heaviest), indent=0)


def _print_counts(console: Console, title: str, counts: dict[str, int]) -> None:
    text = Text(title)
    text.append(", ".join(f"{printable(name)} {n:,}" for name, n in counts.items()))
    indented(console, text, 0)
