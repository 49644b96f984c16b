"""A module after fusion as data: its kernels and what passes between them."""

from collections.abc import Container, Iterator

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.kernels import computed_in, is_kernel, kernels
from hlofuse.ir import Instruction, Module, Record, replace
from hlofuse.reports.common.lineage import is_view
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Figures


class FusedKernel(Record):
    name: str
    opcode: str
    kind: str | None
    opcodes: tuple[str, ...]  # Its operations; empty for other kernels than fusions
    bytes: int


class Boundary(Record):
    """Two kernels, the second of which reads what the first wrote."""

    producer: str
    consumer: str
    bytes_between: int
    rule: str | None = None  # The rule that stands in the way; None where that is not known
    reason: str = ""  # XLA's words, or why it is not known
    figures: Figures | None = None
    runs: int = 1  # Launches of the consumer in one run of the program


class Fused(Record):
    module: str
    target: str
    device: str | None
    release: str
    evidence: str  # Evidence that it is fused already
    how: str  # The way in which the rules were evaluated, and its reliability
    kernels: tuple[FusedKernel, ...]
    boundaries: tuple[Boundary, ...]  # Greatest first
    rules: dict[str, Rule]  # The named rules by code
    right_file: str | None = None  # The dump before fusion, if it is in the same directory
    selected: str | None = None  # The name that these are the kernels of; None where all are here

    def only(self, name: str, names: Container[str]) -> "Fused":
        boundaries = tuple(b for b in self.boundaries if b.producer in names or b.consumer in names)
        codes = {b.rule for b in boundaries}
        return replace(
            self,
            kernels=tuple(k for k in self.kernels if k.name in names),
            boundaries=boundaries,
            rules={code: rule for code, rule in self.rules.items() if code in codes},
            selected=name.strip(),
        )


def kernels_of(module: Module) -> tuple[FusedKernel, ...]:
    """All kernels, the one that moves most first."""
    costs = KernelCosts()
    found = [
        FusedKernel(
            i.name, i.opcode, i.fusion_kind, tuple(_opcodes_inside(i)), costs.instruction(i).bytes_accessed
        )
        for i in kernels(module)
    ]
    return tuple(sorted(found, key=lambda k: -k.bytes))


def _opcodes_inside(kernel: Instruction) -> Iterator[str]:
    if kernel.opcode == "fusion" and kernel.called:
        for i in computed_in(kernel):
            if i.opcode not in ("constant", "tuple"):
                yield i.opcode


def edges(module: Module) -> list[tuple[Instruction, Instruction, Instruction, int]]:
    """(producer, value, consumer, bytes): `value` is the producer or a view of it, as it is read. The
    producer may run in another computation: one that a call runs, or the caller."""
    launched = set(kernels(module))
    found = []
    for consumer in launched:
        for value in dict.fromkeys(consumer.operands):
            for producer in _producers(value):
                if producer in launched:
                    found.append((producer, value, consumer, value.shape.leaves_size))
    return sorted(found, key=lambda e: (-e[3], e[0].name, e[2].name))


def _producers(value: Instruction) -> Iterator[Instruction]:
    """The instructions that compute a value, through views and calls; of a parameter the operands'."""
    stack: list[tuple[Instruction, tuple[int, ...]]] = [(value, ())]
    seen = set()
    while stack:
        entry = stack.pop()
        if entry in seen:
            continue
        seen.add(entry)
        x, index = entry
        computation = x.computation
        callers = computation.callers if computation is not None else {}
        if x.opcode == "get-tuple-element":
            stack.append((x.operand, (x.tuple_index, *index)))
        elif x.opcode == "tuple" and index:
            stack.append((x.operands[index[0]], index[1:]))
        elif is_view(x) and x.operands:
            stack.append((x.operand, index))
        elif x.opcode == "call" and x.called and not is_kernel(x):
            stack.append((x.called[0][1].root, index))
        elif x.opcode == "parameter" and callers and all(c.opcode == "call" for c in callers):
            stack += [(c.operands[x.parameter_number], index) for c in callers]
        else:
            yield x
