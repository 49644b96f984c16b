"""The statistics of a module, for the terminal and as JSON (docs/json.md): opcodes, kernels, fusions."""

from collections import Counter
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from hlofuse.account import Account, Launched, Totals
from hlofuse.account.account import totals_of
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.kernels import kernel_source, launched_computations
from hlofuse.format import bytes_text, fields, plural, printable, quantity, us_text
from hlofuse.format.paths import layer_of, source_text
from hlofuse.format.terminal import indented, name_text, print_more, print_rows
from hlofuse.inputs.stage import stage_of
from hlofuse.ir import Computation, Instruction, Json, Module, Record, Strings, grouped, with_trait
from hlofuse.pipelines import TARGETS
from hlofuse.reports.common.model import cost_json, measured_json, totals_json
from .common.model import both_names
from .common.phrases import measured_text, times_text


class KernelStatistics(Record):
    name: str
    computation: str
    holds: int  # Operations inside, parameters and constants not counted; 1 for what is no fusion
    row: Launched  # Its runs, as far as the dump has trip counts, and the cost of one launch
    source: str | None  # The line of the user's program, where the dump has it
    layer: str  # The model's layer; empty where the names show none
    final: str | None  # XLA's final name, which a profiler shows; None where it is not known

    @property
    def shown(self) -> str:
        """The final name, then the name at the end of fusion where it is another."""
        return both_names(self.final or self.name, self.name)


class ComputationStatistics(Record):
    """One computation that runs: the entry, a loop's body, a branch."""

    name: str
    role: str  # `entry`, or how it is called: `while body`, `while condition`, `branch`, `call`…
    iterations: int  # Its runs, as far as the dump has trip counts; 0 for the condition of a loop with one
    instructions: int
    kernels: int
    opcodes: dict[str, int]  # Opcode to count, most frequent first
    cost: Cost  # The cost of its own kernels, times their runs


class ModuleStatistics(Record):
    name: str
    filename: str | None
    stage: str
    backend: str | None
    instructions: int  # Instructions of all computations, including those of fusions
    opcodes: dict[str, int]
    totals: Totals
    fusions: dict[str, int]  # Fusions among the kernels by kind
    computations: tuple[ComputationStatistics, ...]  # Computations that run, the entry first
    fusion_bodies: int
    applied_computations: int
    """Functions applied by reduce, sort, scatter and so on, and computations without a caller."""
    heaviest: tuple[KernelStatistics, ...]
    """By measured time, bytes accessed, then by FLOP, of all iterations."""


def statistics(
    module: Module,
    *,
    heaviest: int | None = 10,
    target: str = "cpu",
    names: Mapping[str, str] | None = None,
) -> ModuleStatistics:
    """The figures of `module`, with so many of its largest kernels (None: all); `names` at fusion."""
    stage = stage_of(module, target)
    account = Account(module, backend=TARGETS[target].backend)
    if stage.backend == "tpu":
        from hlofuse.account.tpu import TpuAccount  # slow to import

        account = TpuAccount(module, None)
    executed = launched_computations(module)
    bodies = sum(c.fusion is not None for c in module.computations)
    own = grouped((row.instruction.computation, row) for row in account.rows)

    def weight(row: Launched) -> tuple[float, float, float]:
        return -(row.measured_us or 0.0), -row.cost.bytes_accessed * row.runs, -row.cost.flops * row.runs

    ranked = sorted(account.rows, key=weight)
    return ModuleStatistics(
        module.name,
        module.filename,
        stage.name,
        stage.backend,
        module.instruction_count,
        _by_count(i.opcode for i in module.instructions()),
        account.totals,
        _by_count(r.instruction.fusion_kind or "" for r in account.rows if r.instruction.is_fusion),
        tuple(
            ComputationStatistics(
                c.name,
                _role(c),
                account.runs(c),
                len(c),
                len(own.get(c, ())),
                _by_count(i.opcode for i in c),
                totals_of(own.get(c, ()), timed=False).cost,
            )
            for c in executed
        ),
        bodies,
        len(module.computations) - bodies - len(executed),
        tuple(_kernel(r, module, names) for r in ranked[:heaviest]),
    )


def operations_inside(instruction: Instruction) -> int:
    """Operations a kernel holds, parameters, constants and tuples not counted."""
    if not instruction.is_fusion:
        return 1
    free = with_trait("free")
    return sum(i.opcode not in free for i in instruction.fused_computation)


def _kernel(row: Launched, module: Module, names: Mapping[str, str] | None) -> KernelStatistics:
    k = row.instruction
    name, final = k.name, None
    if names is not None:
        name, final = names.get(k.name, k.name), k.name
    line, inside = source_text(kernel_source(k, module)) or None, operations_inside(k)
    return KernelStatistics(name, k.computation_name, inside, row, line, layer_of(k.op_name), final)


def _by_count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))


_ROLES = {
    "body": "while body",
    "condition": "while condition",
    "to_apply": "call",
    "calls": "async",
}


def _role(computation: Computation) -> str:
    if computation.is_entry:
        return "entry"
    for caller in computation.callers:
        for attribute, callee in caller.called:
            if callee is computation:
                return "branch" if caller.opcode == "conditional" else _ROLES.get(attribute, attribute)
    return "not called"


STAGES = {
    "fusion-input": "not fused",
    "before-optimizations": "before optimizations",
    "after-fusion": "fused",
    "scheduled": "fused and scheduled",
}
ITERATIONS = "Bytes and FLOP include all iterations of loops; those of a kernel are for one launch"


def headline(m: ModuleStatistics) -> Strings:
    """Kernels, launches where loops or branches change their number, bytes, FLOP and transcendentals."""
    t = m.totals
    return (
        plural(t.kernels, "kernel"),
        *([plural(t.launches, "launch", "launches")] if t.launches != t.kernels else []),
        *([f"{us_text(t.measured_us)} measured"] if t.measured_us is not None else []),
        f"{t.moved_text} moved",
        f"{quantity(t.cost.flops)} FLOP",
        f"{quantity(t.cost.transcendentals)} transcendentals",
    )


def kernel_figures(k: KernelStatistics) -> tuple[str, str]:
    """Bytes and FLOP of one launch."""
    if k.row.cost.unknown:
        return "unknown", "unknown"
    return bytes_text(k.row.cost.bytes_accessed), quantity(k.row.cost.flops + k.row.cost.transcendentals)


def _kind_and_place(k: KernelStatistics) -> str:
    where = ": ".join(filter(None, (k.layer, k.source)))
    return " ".join(filter(None, (k.row.instruction.fusion_kind, where)))


def print_statistics(modules: list[ModuleStatistics], console: Console) -> None:
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
    console.print("   ".join(headline(m)), style="bold")
    if unknown := m.totals.cost.unknown:
        console.print(f"{plural(unknown, 'custom call')} not counted: XLA does not know their cost")

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
        console.print(ITERATIONS, style="dim")
    others = (m.fusion_bodies, "fused computation"), (m.applied_computations, "to_apply computation")
    inside = [plural(*counted) for counted in others if counted[0]]
    if inside:
        console.print("and " + ", ".join(inside), style="dim")

    console.print()
    for noun, by_name in (("instruction", m.opcodes), ("fusion", m.fusions)):
        if by_name:
            shown = ", ".join(f"{printable(name)} {n:,}" for name, n in by_name.items())
            indented(console, f"{plural(sum(by_name.values()), noun)}: {shown}", 0)

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
                str(k.holds) if k.row.instruction.is_fusion else "",
                *kernel_figures(k),
                Text(printable(_kind_and_place(k)), style="dim"),
            ]
            for k in m.heaviest
        ]
        print_rows(console, columns, rows, drop=(1 + measured, 3 + measured))
        print_more(console, m.totals.kernels - len(m.heaviest), indent=0)


def statistics_json(modules: list[ModuleStatistics]) -> Json:
    return {"schema": "hlofuse.stats/3", "modules": [_module(m) for m in modules]}


def _module(m: ModuleStatistics) -> Json:
    return {
        **fields(m, "name file=filename stage platform=backend instructions"),
        "totals": totals_json(m.totals),
        **fields(m, "opcodes fusions"),
        "computations": [
            {
                **fields(c, "name role turns=iterations instructions kernels opcodes"),
                "cost": cost_json(c.cost),
            }
            for c in m.computations
        ],
        **fields(m, "fusion_bodies applied_computations"),
        "heaviest": [
            {
                "name": k.final or k.name,
                **fields(k, "input_name=name opcode=row.instruction.opcode kind=row.instruction.fusion_kind"),
                **fields(k, "computation holds"),
                "cost": cost_json(k.row.cost),
                **measured_json(k.row.measured),
                **fields(k, "turns=row.runs source layer"),
            }
            for k in m.heaviest
        ],
    }
