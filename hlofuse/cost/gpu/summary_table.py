"""Summaries, each structure's computed once."""

import math
from collections.abc import Callable, Hashable

from hlofuse.cost.gpu.atoms import UNBOUNDED_ELEMENTS, Atom, AtomTable
from hlofuse.cost.gpu.backend_config import TRITON, FusionConfig, fusion_config
from hlofuse.cost.gpu.estimate import chain_end
from hlofuse.cost.gpu.heroes import root_of_output, roots_of_atom, search_upwards
from hlofuse.cost.gpu.shapes import ShapeFacts, ShapeTable
from hlofuse.cost.gpu.summary import Summary, SummaryPair
from hlofuse.cost.gpu.ticks import fp32, single_half_away
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape


def summary_of_atom(atom: Atom, slots: tuple[int, ...]) -> Summary:
    """`slots`: for each slot the first one with the same operand; empty where all differ."""
    summary = Summary()
    summary.atom, summary.is_fusion = atom, False
    summary.first_slots = slots
    summary.is_tuple = atom.shape.is_tuple
    summary.elementwise = atom.elementwise
    summary.operands = atom.operands
    summary.flops, summary.written = int(atom.flops), int(atom.out_bytes)
    read = [int(b) for b in atom.operand_bytes]
    summary.operand_bytes = [read[k] for k in slots] if slots else read
    summary.utilization = atom.operand_utilization
    summary.ir_size, summary.splits = 1.0, float(atom.splits_block)
    summary.parameter_ir_size = [1] * len(read)
    summary.parameter_uses = summary.root_utilization = ()
    summary.roots = roots_of_atom(atom, len(read))
    summary.clean = [atom.intermediate] * len(read)
    summary.features = atom.features
    summary.minor_of_transpose = atom.minor_of_transpose
    summary.bad_transpose = atom.transposes_minor
    summary.is_reduction = atom.reduction is not None
    summary.shared_memory = atom.shared_memory
    summary.unnested_reductions = atom.unnested_reductions
    summary.significant_reduce = atom.significant_reduce
    summary.skipped = frozenset()
    return summary


_Facts = Callable[[Shape], ShapeFacts]
_Uses = frozenset[int]
_NOT_USED: _Uses = frozenset()


def summary_of_fusion(
    fusion: Instruction, order: list[Instruction], atoms: dict[Instruction, Atom], facts: _Facts
) -> Summary:
    """`order` is a post-order of the computation."""
    order = order[::-1]
    summary = Summary()
    summary.atom, summary.is_fusion, summary.is_tuple = None, True, fusion.shape.is_tuple
    summary.first_slots = ()
    summary.operands = [facts(p.shape) for p in fusion.fused_computation.parameters]
    _set_costs(summary, fusion, order, atoms, facts)
    _set_sums(summary, atoms)
    _set_roots(summary, fusion, order, atoms, facts)
    return summary


def _set_costs(
    summary: Summary,
    fusion: Instruction,
    order: list[Instruction],
    atoms: dict[Instruction, Atom],
    facts: _Facts,
) -> None:
    """Set the evaluations of the fusion's instructions, and the resulting use of its parameters.

    Mirrors `GpuHloCostAnalysis::FusionCalculateUtilizations` and the fusion part of
    `xla/service/hlo_cost_analysis.cc`. An instruction belongs to *roots of element-wise use*: the outputs,
    and every operand of something that is not element-wise. Within the reach of one root everything is
    evaluated as often as the root is.
    """
    root, parameters = fusion.fused_root, fusion.fused_computation.parameters
    updated = frozenset([o for o in _written_outputs(root) if o.opcode == "dynamic-update-slice"])
    uses: dict[Instruction, _Uses] = {root: frozenset((0,))}
    numbers: dict[Instruction, int] = {root: 0}
    evaluated = [1.0]
    emitted = [1]
    sums: dict[_Uses, tuple[float, float]] = {}
    utilization: dict[Instruction, float] = {}
    ir_sizes: dict[Instruction, float] = {}
    flops = ir_size = splits = 0.0
    for instruction in order:
        use = uses.get(instruction, _NOT_USED)
        cached = sums.get(use)
        if cached is None:
            # All users come first, so the figures of these roots are final.
            often, copies = 0.0, 0.0
            for number in use:
                often = fp32(often + evaluated[number])
                copies = fp32(copies + emitted[number])
            cached = sums[use] = (often, copies)
        often, copies = cached
        utilization[instruction], ir_sizes[instruction] = cached
        atom = atoms[instruction]
        if atom.flops:
            flops = fp32(flops + fp32(often * atom.flops))
        ir_size = fp32(ir_size + copies)
        if atom.splits_block:
            splits = fp32(splits + copies)
        if atom.passes_use:
            for operand in instruction.operands:
                present = uses.get(operand)
                if present is None:
                    uses[operand] = use
                elif present is not use:
                    uses[operand] = present | use
            continue
        for slot, operand in enumerate(instruction.operands):
            number = numbers.get(operand, -1)
            if number < 0:
                number = numbers[operand] = len(evaluated)
                evaluated.append(0.0)
                emitted.append(0)
            uses[operand] = uses.get(operand, _NOT_USED) | {number}
            share = 0.0 if slot == 0 and instruction in updated else atom.operand_utilization[slot]
            read = _elements_read(often, share, atom.operands[slot])
            evaluated[number] = fp32(evaluated[number] + read)
            emitted[number] += int(copies)
    summary.flops, summary.ir_size, summary.splits = int(flops), ir_size, splits
    summary.operand_bytes = [_bytes_of(atoms[p].result, utilization.get(p, 0.0)) for p in parameters]
    summary.utilization = [utilization.get(p, 0.0) for p in parameters]
    summary.parameter_ir_size = [int(ir_sizes.get(p, 0.0)) for p in parameters]
    summary.parameter_uses = [uses.get(p, _NOT_USED) for p in parameters]
    summary.root_utilization = evaluated
    summary.written = int(_written_bytes(fusion, root, facts))


def _elements_read(often: float, share: float, operand: ShapeFacts) -> float:
    """Reads of an operand by an instruction evaluated `often` that reads `share` of it.

    Whole elements are read. XLA multiplies in single and divides in double precision, so that 1 does not stay
    1 where single precision cannot count the elements.
    """
    read = fp32(often * share)
    elements = operand.elements
    if elements == 0:
        return 0.0
    if read == 1.0 and operand.elements_fp32 == elements:
        return read
    return fp32(math.ceil(fp32(read * operand.elements_fp32)) / elements)


def _bytes_of(operand: ShapeFacts, share: float) -> int:
    """Bytes read of an array at this utilization."""
    size = operand.size_fp32
    return int(size) if share == 1.0 else single_half_away(size * share)


def _set_sums(summary: Summary, atoms: dict[Instruction, Atom]) -> None:
    inside = [(i, a) for i, a in atoms.items() if not a.is_transparent]
    summary.elementwise = all(a.elementwise or i.opcode == "parameter" for i, a in atoms.items())
    summary.features = 0
    for _, atom in inside:
        summary.features |= atom.features
    summary.minor_of_transpose = min([a.minor_of_transpose for _, a in inside], default=UNBOUNDED_ELEMENTS)
    summary.shared_memory = sum([a.shared_memory for _, a in inside])
    summary.unnested_reductions = sum([a.unnested_reductions for _, a in inside])
    summary.significant_reduce = any(a.significant_reduce for _, a in inside)
    across = [chain_end(i.operands[0]) for i, a in inside if a.transposes_minor]
    summary.bad_transpose = any(end.opcode not in ("broadcast", "iota") for end in across)


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
        clean[inner] = True
        for user in inner.users:
            if not (user.opcode == "tuple" or atoms[user].intermediate) or not clean.get(user, True):
                clean[inner] = False
    summary.clean = [clean.get(p, True) for p in fusion.fused_computation.parameters]
    count = len(summary.clean)
    above = search_upwards(reversed(order), atoms)
    summary.roots = [root_of_output(o, atoms, clean, above[o], facts, count) for o in outputs]
    summary.is_reduction = any(root.is_reduction for root in summary.roots)
    summary.skipped = frozenset(
        [o.parameter_number for o in outputs if o.opcode == "parameter" and len(o.users) <= 1]
    )


def _outputs(root: Instruction) -> list[Instruction]:
    if root.opcode != "tuple":
        return [root]
    return [leaf for operand in root.operands for leaf in _outputs(operand)]


def _written_outputs(root: Instruction) -> list[Instruction]:
    return root.operands if root.opcode == "tuple" else [root]


def _written_bytes(fusion: Instruction, root: Instruction, facts: _Facts) -> float:
    """Bytes written, for a dynamic-update-slice the update only (`FusionProcessOutputBytesAccessed`)."""

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


class SummaryTable:
    """Finds the summary of an instruction, by its structure or its pair."""

    def __init__(self, shapes: ShapeTable, atoms: AtomTable) -> None:
        self._facts = shapes.facts
        self._atoms = atoms
        self._by_key: dict[Hashable, Summary] = {}
        self._count = 0

    def find(self, instruction: Instruction) -> Summary:
        """The summary; a fusion's from its current computation."""
        config = fusion_config(instruction)
        if instruction.opcode == "fusion":
            return self._fusion_summary(instruction, config)
        atom = self._atoms.atom(instruction)
        operands = instruction.operands
        slots: tuple[int, ...] = ()
        if len(operands) > 1 and len(set(operands)) < len(operands):
            slots = tuple([operands.index(o) for o in operands])
        key = (atom.key, slots, config)
        cached = self._by_key.get(key)
        if cached is None:
            cached = self._by_key[key] = self._assign_number(summary_of_atom(atom, slots), config)
        return cached

    def find_fused(self, fusion: Instruction, pair: SummaryPair) -> Summary:
        """The summary of a fusion of such a pair."""
        config = fusion_config(fusion)
        if pair.fused is None:
            pair.fused = {}
        cached = pair.fused.get(config)
        if cached is None:
            # Looking for an equal fusion made in another way costs as much as a walk and finds few.
            order = fusion.fused_computation.post_order()
            atoms = {inner: self._atoms.atom(inner) for inner in order}
            cached = summary_of_fusion(fusion, order, atoms, self._facts)
            pair.fused[config] = self._assign_number(cached, config)
            if config is None and len(cached.roots) == 1 and cached.roots[0].update is None:
                cached.launch = pair.launch  # the same kernel, about to be fused or fused
        return cached

    def _assign_number(self, summary: Summary, config: FusionConfig | None) -> Summary:
        summary.config, summary.is_triton = config, False
        if config is not None:  # it may name the emitter
            summary.is_triton = summary.is_fusion and config.kind == TRITON
        summary.number = self._count
        self._count += 1
        summary.launch = None
        summary.total_read = sum(summary.operand_bytes)
        summary.estimates = [None, None]
        return summary

    def _fusion_summary(self, fusion: Instruction, config: FusionConfig | None) -> Summary:
        body = fusion.fused_computation
        order = body.post_order()
        place = {inner: k for k, inner in enumerate(order)}
        atoms = {inner: self._atoms.atom(inner) for inner in order}
        key: Hashable = (
            fusion.fusion_kind == "kCustom",
            config,
            len(fusion.operands),
            place[body.root],
            tuple(
                [
                    (atoms[i].key, i.parameter_number)
                    if i.opcode == "parameter"
                    else (atoms[i].key, *[place[o] for o in i.operands])
                    for i in order
                ]
            ),
        )
        cached = self._by_key.get(key)
        if cached is None:
            summary = summary_of_fusion(fusion, order, atoms, self._facts)
            cached = self._by_key[key] = self._assign_number(summary, config)
        return cached
