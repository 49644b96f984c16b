"""The statistics of a module: instructions by opcode, kernels, fusions, costs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hlofuse.account import Account, Launched, Totals
from hlofuse.account.account import totals_of
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.kernels import kernel_source, launched_computations
from hlofuse.format.paths import layer_of, source_text
from hlofuse.inputs.stage import stage_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.grouping import grouped
from hlofuse.ir.opcodes import with_trait
from hlofuse.pipelines import TARGETS
from hlofuse.reports.common.model import both_names


@dataclass(frozen=True, slots=True)
class KernelStatistics:
    name: str
    computation: str
    holds: int
    """Operations inside, parameters and constants not counted; 1 for what is no fusion."""
    row: Launched
    """Its runs, as far as the dump has trip counts, and the cost of one launch."""
    source: str | None
    """The line of the user's program, where the dump has it."""
    layer: str
    """The model's layer; empty where the names show none."""
    final: str | None
    """XLA's final name, which a profiler shows; None where it is not known."""

    @property
    def shown(self) -> str:
        """The final name, then the name at the end of fusion where it is another."""
        return both_names(self.final or self.name, self.name)


@dataclass(frozen=True, slots=True)
class ComputationStatistics:
    """One computation that runs: the entry, a loop's body, a branch."""

    name: str
    role: str
    """`entry`, or how it is called: `while body`, `while condition`, `branch`, `call`…"""
    iterations: int
    """Its runs, as far as the dump has trip counts; 0 for the condition of a loop of known trip count."""
    instructions: int
    kernels: int
    opcodes: dict[str, int]
    """Opcode to count, most frequent first."""
    cost: Cost
    """The cost of its own kernels, times their runs."""


@dataclass(frozen=True, slots=True)
class ModuleStatistics:
    name: str
    filename: str | None
    stage: str
    backend: str | None
    instructions: int
    """Instructions of all computations, including those of fusions."""
    opcodes: dict[str, int]
    totals: Totals
    fusions: dict[str, int]
    """Fusions among the kernels by kind."""
    computations: tuple[ComputationStatistics, ...] = field(repr=False)
    """Computations that run, the entry first."""
    fusion_bodies: int
    applied_computations: int
    """Functions applied by reduce, sort, scatter and so on, and computations without a caller."""
    heaviest: tuple[KernelStatistics, ...] = field(repr=False)
    """By measured time, bytes accessed, then by FLOP, of all iterations."""


def statistics(
    module: Module,
    *,
    heaviest: int | None = 10,
    target: str = "cpu",
    names: Mapping[str, str] | None = None,
) -> ModuleStatistics:
    """The figures of `module`, with that many of its largest kernels, None for all.

    `names` are those at fusion, by final names.
    """
    account = Account(module, backend=TARGETS[target].backend)
    executed = launched_computations(module)
    bodies = sum(c.fusion is not None for c in module.computations)
    own = grouped((row.instruction.computation, row) for row in account.rows)

    def weight(row: Launched) -> tuple[float, float, float]:
        return -(row.measured_us or 0.0), -row.cost.bytes_accessed * row.runs, -row.cost.flops * row.runs

    ranked = sorted(account.rows, key=weight)
    stage = stage_of(module, target)
    return ModuleStatistics(
        module.name,
        module.filename,
        stage.name,
        stage.backend,
        sum(len(c) for c in module.computations),
        _by_count(i.opcode for i in module.instructions()),
        account.totals,
        _by_count(r.instruction.fusion_kind or "" for r in account.rows if r.instruction.opcode == "fusion"),
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
    if instruction.opcode != "fusion":
        return 1
    free = with_trait("free")
    return sum(i.opcode not in free for i in instruction.fused_computation)


def _kernel(row: Launched, module: Module, names: Mapping[str, str] | None) -> KernelStatistics:
    k = row.instruction
    source = kernel_source(k, module)
    computation_name = k.computation.name if k.computation is not None else ""
    name, final = (names.get(k.name, k.name), k.name) if names is not None else (k.name, None)
    line, inside = source_text(source) if source else None, operations_inside(k)
    return KernelStatistics(name, computation_name, inside, row, line, layer_of(k.op_name), final)


def _by_count(names: Iterable[str]) -> dict[str, int]:
    counted = Counter(names)
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


_ROLES = {"body": "while body", "condition": "while condition", "to_apply": "call", "calls": "async"}


def _role(computation: Computation) -> str:
    if computation.is_entry:
        return "entry"
    for caller in computation.callers:
        for attribute, callee in caller.called:
            if callee is computation:
                return "branch" if caller.opcode == "conditional" else _ROLES.get(attribute, attribute)
    return "not called"
