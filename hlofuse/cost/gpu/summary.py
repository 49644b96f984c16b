"""What the models know of an instruction or fusion as a whole, by structure.

A `Summary` holds every figure that evaluating an instruction alone, or a pair of a producer and
a consumer, needs; no evaluation walks a fused computation. Instructions of equal structure share
one summary, and so do fusions made in the same way from parts of equal structure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.atoms import LARGE, Atom, AtomTable
from hlofuse.cost.gpu.backend_config import TRITON, FusionConfig, fusion_config
from hlofuse.cost.gpu.heroes import Root, roots_of_atom, roots_of_fusion
from hlofuse.cost.gpu.shapes import NO_BITS, ShapeFacts, ShapeTable
from hlofuse.cost.gpu.ticks import fp32
from hlofuse.cost.gpu.utilization import elements_read, fusion_use, lowest_bit
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape

_Facts = Callable[[Shape], ShapeFacts]


class Summary:
    """One structure. Lists run over operand slots, or parameters of a fusion."""

    __slots__ = (
        "atom",
        "bad_transpose",
        "bits",
        "clean",
        "config",
        "crossed",
        "elementwise",
        "features",
        "first_slots",
        "flops",
        "granule",
        "input_bits",
        "ir_size",
        "is_fusion",
        "is_reduction",
        "is_triton",
        "minor_of_transpose",
        "number",
        "operand_bytes",
        "operands",
        "parameter_ir_size",
        "parameter_uses",
        "reads",
        "root_emitted",
        "root_utilization",
        "roots",
        "shared_memory",
        "significant_reduce",
        "skipped",
        "splits",
        "storage_bits",
        "total_read",
        "unnested_reductions",
        "utilization",
        "written",
    )

    number: int
    """Tells structures apart in keys."""
    atom: Atom | None
    """None for a fusion."""
    is_fusion: bool
    config: FusionConfig | None
    """The backend config, part of the structure because it may name the emitter."""
    is_triton: bool
    """A generic Triton fusion (`IsGenericTritonFusion`)."""
    elementwise: bool
    operands: Sequence[ShapeFacts]
    first_slots: Sequence[int]
    """For each slot the first one with the same operand; empty where all operands differ."""
    flops: int
    written: int
    """Bytes."""
    operand_bytes: Sequence[int]
    """Bytes read of each operand; a repeated operand has those of its first slot."""
    total_read: int
    utilization: Sequence[float]
    ir_size: float
    parameter_ir_size: Sequence[int]
    splits: float
    """Blocks of code begun anew inside (`BasicBlockSplitCount`)."""
    parameter_uses: Sequence[frozenset[int]]
    """The roots of element-wise use of each parameter; 0 is the fusion's own root."""
    root_utilization: Sequence[float]
    root_emitted: Sequence[int]
    granule: float
    """A power of two dividing every summand of `flops` (see `utilization`)."""
    roots: Sequence[Root]
    clean: Sequence[bool]
    """Nothing but operations a hero may lie beyond uses the parameter, directly or not."""
    features: int
    minor_of_transpose: int
    bits: list[int]
    """Of an element of each operand."""
    input_bits: int
    storage_bits: int
    crossed: frozenset[int]
    """Parameters that something inside reads across the grain of memory, directly or nearly so."""
    bad_transpose: bool
    """Something inside reads across the grain of memory. Of a plain instruction its neighbours decide."""
    is_reduction: bool
    """`IsInputFusibleReduction`."""
    shared_memory: int
    unnested_reductions: int
    significant_reduce: bool
    skipped: frozenset[int]
    """Parameters that are outputs and nothing else: not fused into a consumer."""
    reads: dict[tuple[int, bool], tuple[int, list[int]]]
    """Ticks of reading the operands: sum and each, by blocks and coalescing."""

    def common_utilization(self, a: int, b: int) -> float:
        """How often two parameters are read together (`CommonElementwiseUtilization`)."""
        both = self.parameter_uses[a] & self.parameter_uses[b]
        if len(both) == 1:
            return self.root_utilization[next(iter(both))]
        total = 0.0
        for number in both:
            total = fp32(total + self.root_utilization[number])
        return total

    def common_with_root(self, parameter: int) -> float:
        """How often a fusion's parameter is read together with its root, in step with it."""
        return self.root_utilization[0] if 0 in self.parameter_uses[parameter] else 0.0


class SummaryTable:
    """Makes summaries, each structure's once."""

    def __init__(self, shapes: ShapeTable, atoms: AtomTable) -> None:
        self._shapes = shapes
        self._atoms = atoms
        self._known: dict[Hashable, Summary] = {}
        self._numbers: list[Summary] = []

    def of(self, instruction: Instruction) -> Summary:
        """The summary, a fusion's from its computation as it stands."""
        config = fusion_config(instruction)
        if instruction.opcode == "fusion":
            return self._of_fusion(instruction, config)
        atom = self._atoms.atom(instruction)
        operands = instruction.operands
        slots: tuple[int, ...] = ()
        if len(operands) > 1 and len(set(operands)) < len(operands):
            slots = tuple([operands.index(o) for o in operands])
        key = (atom.key, slots, config)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._numbered(_of_atom(atom, slots), config)
        return known

    def of_parts(self, fusion: Instruction, key: Hashable) -> Summary:
        """The summary of a fusion made from the parts `key` names; one made so before has it too."""
        config = fusion_config(fusion)
        whole = (key, config)
        known = self._known.get(whole)
        if known is None:
            # Looking for an equal fusion made in another way costs as much as a walk and finds few.
            order = fusion.fused_computation.post_order()
            atoms = {inner: self._atoms.atom(inner) for inner in order}
            known = self._known[whole] = self._numbered(self._walk(fusion, order, atoms), config)
        return known

    def has_parts(self, fusion: Instruction, key: Hashable) -> bool:
        return (key, fusion_config(fusion)) in self._known

    def add_composed(self, fusion: Instruction, key: Hashable, summary: Summary) -> None:
        """Keep what `composing` worked out for a fusion made from the parts `key` names."""
        config = fusion_config(fusion)
        self._known[key, config] = self._numbered(summary, config)

    def numbered(self, number: int) -> Summary:
        """The summary of that number."""
        return self._numbers[number]

    def _numbered(self, summary: Summary, config: FusionConfig | None) -> Summary:
        summary.config = config
        summary.is_triton = config is not None and config.kind == TRITON and summary.is_fusion
        summary.number = len(self._numbers)
        self._numbers.append(summary)
        summary.reads = {}
        return summary

    def _of_fusion(self, fusion: Instruction, config: FusionConfig | None) -> Summary:
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
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._numbered(self._walk(fusion, order, atoms), config)
        return known

    def _walk(self, fusion: Instruction, order: list[Instruction], atoms: dict[Instruction, Atom]) -> Summary:
        order.reverse()
        summary = Summary()
        summary.atom, summary.is_fusion = None, True
        summary.first_slots = ()
        summary.operands = [self._shapes.facts(p.shape) for p in fusion.fused_computation.parameters]
        self._set_costs(summary, fusion, order, atoms)
        self._set_sums(summary, atoms)
        self._set_roots(summary, fusion, order, atoms)
        set_bits(summary)
        return summary

    def _set_costs(
        self,
        summary: Summary,
        fusion: Instruction,
        order: list[Instruction],
        atoms: dict[Instruction, Atom],
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
        summary.written = int(_written(fusion, root, self._shapes.facts))
        if fusion.fusion_kind == "kCustom":
            _library_call(summary, order, atoms)

    def _set_sums(self, summary: Summary, atoms: dict[Instruction, Atom]) -> None:
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
        across = [_chain_end(i.operands[0]) for i, a in inside if a.transposes_minor]
        summary.bad_transpose = any(end.opcode not in ("broadcast", "iota") for end in across)
        summary.crossed = frozenset([e.parameter_number for e in across if e.opcode == "parameter"])

    def _set_roots(
        self,
        summary: Summary,
        fusion: Instruction,
        order: list[Instruction],
        atoms: dict[Instruction, Atom],
    ) -> None:
        outputs = _outputs(fusion.fused_root)
        clean: dict[Instruction, bool] = {}
        for inner in order:
            clean[inner] = all(
                (u.opcode == "tuple" or atoms[u].intermediate) and clean.get(u, True) for u in inner.users
            )
        summary.clean = [clean.get(p, True) for p in fusion.fused_computation.parameters]
        summary.roots = roots_of_fusion(outputs, atoms, clean, lambda i: self._shapes.facts(i.shape))
        summary.is_reduction = any(root.is_reduction for root in summary.roots)
        summary.skipped = frozenset(
            [o.parameter_number for o in outputs if o.opcode == "parameter" and len(o.users) <= 1]
        )


def is_broadcast(instruction: Instruction) -> bool:
    """A broadcast or iota, or one seen through bitcasts and one-operand element-wise operations."""
    return _chain_end(instruction).opcode in ("broadcast", "iota")


def _chain_end(instruction: Instruction) -> Instruction:
    while instruction.opcode not in ("broadcast", "iota") and len(instruction.operands) == 1:
        if instruction.opcode != "bitcast" and not is_elementwise(instruction):
            break
        instruction = instruction.operands[0]
    return instruction


def _of_atom(atom: Atom, slots: tuple[int, ...]) -> Summary:
    summary = Summary()
    summary.atom, summary.is_fusion = atom, False
    summary.first_slots = slots
    summary.elementwise = atom.elementwise
    summary.operands = atom.operands
    summary.flops, summary.written = int(atom.flops), int(atom.out_bytes)
    read = [int(b) for b in atom.operand_bytes]
    summary.operand_bytes = [read[k] for k in slots] if slots else read
    summary.utilization = atom.operand_utilization
    summary.ir_size, summary.splits = 1.0, float(atom.splits_block)
    summary.parameter_ir_size = [1] * len(read)
    _set_use_of_atom(summary, atom)
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
    set_bits(summary)
    return summary


def _set_use_of_atom(summary: Summary, atom: Atom) -> None:
    """Utilization as if the instruction were a fusion of its own."""
    summary.granule = lowest_bit(atom.flops)
    summary.crossed = frozenset((0,)) if atom.transposes_minor else frozenset()
    count = len(atom.operands)
    if atom.passes_use:
        summary.parameter_uses = [frozenset((0,))] * count
        summary.root_utilization, summary.root_emitted = [1.0], [1]
        return
    first = summary.first_slots or range(count)
    evaluated, emitted = [1.0] + [0.0] * count, [1] + [0] * count
    for slot, number in enumerate(first):
        # The buffer of a dynamic-update-slice that is an output is not read.
        updated = slot == 0 and atom.opcode == "dynamic-update-slice"
        share = 0.0 if updated else atom.operand_utilization[slot]
        evaluated[number + 1] = fp32(evaluated[number + 1] + elements_read(1.0, share, atom.operands[slot]))
        emitted[number + 1] += 1
    summary.parameter_uses = [frozenset((number + 1,)) for number in first]
    summary.root_utilization, summary.root_emitted = evaluated, emitted


def set_bits(summary: Summary) -> None:
    """What follows from the operands and how they are read: the narrowest, the widest, the sum."""
    summary.bits = [o.bits for o in summary.operands]
    summary.input_bits = min(summary.bits, default=NO_BITS)
    summary.total_read = sum(summary.operand_bytes)
    summary.storage_bits = max([o.storage_bits for o in summary.operands], default=8)


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
