"""The summary of a fusion from a walk through its computation."""

from collections.abc import Callable

from hlofuse.cost.gpu.atoms import LARGE, Atom
from hlofuse.cost.gpu.estimate import chain_end
from hlofuse.cost.gpu.heroes import root_of_output
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.summary import Summary, complete
from hlofuse.cost.gpu.ticks import fp32
from hlofuse.cost.gpu.utilization import fusion_use
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape

_Facts = Callable[[Shape], ShapeFacts]


def summary_of_fusion(
    fusion: Instruction, order: list[Instruction], atoms: dict[Instruction, Atom], facts: _Facts
) -> Summary:
    """`order` is a post-order of the computation."""
    order = order[::-1]
    summary = Summary()
    summary.atom, summary.is_fusion, summary.is_tuple = None, True, fusion.shape.is_tuple
    summary.first_slots, summary.inside = (), None
    summary.operands = [facts(p.shape) for p in fusion.fused_computation.parameters]
    _set_costs(summary, fusion, order, atoms, facts)
    _set_sums(summary, atoms)
    _set_roots(summary, fusion, order, atoms, facts)
    complete(summary)
    return summary


def _set_costs(
    summary: Summary,
    fusion: Instruction,
    order: list[Instruction],
    atoms: dict[Instruction, Atom],
    facts: _Facts,
) -> None:
    root, parameters = fusion.fused_root, fusion.fused_computation.parameters
    updated = frozenset([o for o in _written_outputs(root) if o.opcode == "dynamic-update-slice"])
    use = fusion_use(order, atoms, root, parameters, updated)
    summary.flops = int(use.flops)
    summary.ir_size, summary.splits = use.ir_size, use.splits
    summary.operand_bytes = use.parameter_bytes
    summary.utilization = use.parameter_utilization
    summary.parameter_ir_size = use.parameter_ir_size
    summary.parameter_uses = use.parameter_uses
    summary.root_utilization = use.root_utilization
    summary.root_emitted, summary.granule = use.root_emitted, use.granule
    summary.whole = use.whole
    summary.written = int(_written(fusion, root, facts))
    if fusion.fusion_kind == "kCustom":
        _library_call(summary, order, atoms)


def _set_sums(summary: Summary, atoms: dict[Instruction, Atom]) -> None:
    """What is true of some, or adds up over all, of the instructions."""
    inside = [(i, a) for i, a in atoms.items() if not a.is_transparent]
    summary.elementwise = all(a.elementwise or i.opcode == "parameter" for i, a in atoms.items())
    summary.features = 0
    for _, atom in inside:
        summary.features |= atom.features
    summary.minor_of_transpose = min([a.minor_of_transpose for _, a in inside], default=LARGE)
    summary.shared_memory = sum([a.shared_memory for _, a in inside])
    summary.unnested_reductions = sum([a.unnested_reductions for _, a in inside])
    summary.significant_reduce = any(a.significant_reduce for _, a in inside)
    across = [chain_end(i.operands[0]) for i, a in inside if a.transposes_minor]
    summary.bad_transpose = any(end.opcode not in ("broadcast", "iota") for end in across)
    summary.crossed = frozenset([e.parameter_number for e in across if e.opcode == "parameter"])


def _set_roots(
    summary: Summary,
    fusion: Instruction,
    order: list[Instruction],
    atoms: dict[Instruction, Atom],
    facts: _Facts,
) -> None:
    outputs = _outputs(fusion.fused_root)
    clean: dict[Instruction, bool] = {}
    for inner in order:
        clean[inner] = all(
            (u.opcode == "tuple" or atoms[u].intermediate) and clean.get(u, True) for u in inner.users
        )
    summary.clean = [clean.get(p, True) for p in fusion.fused_computation.parameters]
    count = len(summary.clean)
    summary.roots = [root_of_output(o, atoms, clean, lambda i: facts(i.shape), count) for o in outputs]
    summary.is_reduction = any(root.is_reduction for root in summary.roots)
    summary.skipped = frozenset(
        [o.parameter_number for o in outputs if o.opcode == "parameter" and len(o.users) <= 1]
    )


def _outputs(root: Instruction) -> list[Instruction]:
    if root.opcode != "tuple":
        return [root]
    return [leaf for operand in root.operands for leaf in _outputs(operand)]


def _written_outputs(root: Instruction) -> list[Instruction]:
    """The root, or the parts of a root tuple."""
    return root.operands if root.opcode == "tuple" else [root]


def _written(fusion: Instruction, root: Instruction, facts: _Facts) -> float:
    """Bytes written, of a dynamic-update-slice the update only (`FusionProcessOutputBytesAccessed`)."""

    def one(output: Instruction) -> float:
        updates = output.opcode == "dynamic-update-slice"
        return fp32(facts(output.operands[1].shape if updates else output.shape).size)

    if not fusion.shape.is_tuple:
        return one(root)
    total = 0.0
    for output in _written_outputs(root):
        sizes = [one(output)]
        if output.shape.is_tuple:
            sizes = [float(facts(leaf).size) for _, leaf in output.shape.leaves()]
        for size in sizes:
            total = fp32(total + size)
    return total


def _library_call(summary: Summary, order: list[Instruction], atoms: dict[Instruction, Atom]) -> None:
    """A custom fusion around a gather or scatter has the cost of that alone (`HandleFusion`)."""
    for inner in sorted(order, key=lambda i: i.id):
        if inner.opcode in ("gather", "scatter"):
            atom = atoms[inner]
            summary.flops, summary.written = int(atom.flops), int(atom.out_bytes)
            read, share = list(summary.operand_bytes), list(summary.utilization)
            for k in range(min(len(read), len(atom.operand_bytes))):
                read[k], share[k] = int(atom.operand_bytes[k]), atom.operand_utilization[k]
            summary.operand_bytes, summary.utilization = read, share
            return
