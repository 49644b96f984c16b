"""Summaries and launches by structure, each computed once and shared by repeated replays of a module."""

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from msgspec import Struct

from hlofuse.ir.graph import Computation, Instruction, Instructions
from hlofuse.ir.shape import Shape
from hlofuse.releases import Release
from . import backend_config as config
from .atoms import UNBOUNDED_ELEMENTS, Atom, AtomTable
from .backend_config import TRITON, FusionConfig, fusion_config
from .device import DeviceDescription
from .estimate import chain_end
from .heroes import root_of_output, roots_of_atom
from .kernel_graph import leaves
from .launch import FusionAnalysis, Launch, elementwise_launch, launch_of
from .shapes import ShapeFacts, ShapeTable
from .summary import PairTable, Summary, SummaryPair
from .ticks import EXACT, fp32, single_half_away

if TYPE_CHECKING:
    from hlofuse.cost.tiling.model import TilingModel


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
_WORTH_KEEPING = 16  # the size of a fusion from which on its visit is kept until it grows


class _Visit:
    """Figures of the instructions of a fused computation, each visited after all its users.

    Mirrors `GpuHloCostAnalysis::FusionCalculateUtilizations` and the fusion part of
    `xla/service/hlo_cost_analysis.cc`. An instruction belongs to *roots of element-wise use*: the outputs,
    and every operand of something that is not element-wise. Within the reach of one root everything is
    evaluated as often as the root is.

    A fused producer takes the place of a parameter, below all that was visited. So the visit of a fusion
    that grows goes on from there, as long as its sums are exact in single precision in any order."""

    def __init__(self, body: Computation, atom_of: Callable[[Instruction], Atom]) -> None:
        root = self._root = body.root
        self._body, self._atom_of = body, atom_of
        self.outputs = leaves(root)
        self._updated = frozenset([o for o in root.outputs if o.opcode == "dynamic-update-slice"])
        self.atoms = dict[Instruction, Atom]()
        """Atoms of all that was visited but for parameters, which are visited again."""
        self.uses: dict[Instruction, _Uses] = {root: frozenset((0,))}
        self._numbers = {root: 0}
        self.evaluated = [1.0]
        self._emitted = [1]
        self.of_parameters = dict[Instruction, tuple[float, float]]()
        """Evaluations and emitted copies of each parameter."""
        self.flops = self.ir_size = self.splits = 0.0
        self._parameter_size = 0.0
        self._granule = math.inf  # a power of two that divides every summand of `flops`
        self._is_exact = True
        self.clean = dict[Instruction, bool]()
        self.sought = dict[Instruction, int]()
        """A bit for each output from which the search for heroes comes to an instruction."""
        for number, output in enumerate(self.outputs):
            self.sought[output] = self.sought.get(output, 0) | 1 << number
        self.found = Instructions()  # Transposes and concatenates at which the search ends
        self.across = Instructions()
        self.kinds = dict[Atom, int]()  # The number of instructions of each kind

    def goes_on(self, order: Instructions) -> bool:
        """Visit what is new; False if the visit has to begin at the root."""
        return self._is_exact and self._root is self._body.root and self.add(order, goes_on=True)

    def add(self, order: Instructions, goes_on: bool = False) -> bool:
        """Visit what is new of `order`, users first; False if sums would depend on the order."""
        atoms = self.atoms
        uses = self.uses
        evaluated = self.evaluated
        emitted = self._emitted
        clean = self.clean
        sought = self.sought
        kinds = self.kinds
        sums: dict[_Uses, tuple[float, float]] = {}
        flops, splits, ir_size = self.flops, self.splits, self.ir_size - self._parameter_size
        parameter_size = 0.0
        for instruction in order:
            if instruction in atoms:
                continue
            use = uses.get(instruction, _NOT_USED)
            cached = sums.get(use)
            if cached is None:
                # All users come first, so the figures of these roots are final.
                often, copies = 0.0, 0.0
                for number in use:
                    often = fp32(often + evaluated[number])
                    copies = fp32(copies + emitted[number])
                cached = sums[use] = (often, copies)
                if len(use) > 2:  # of two the order makes no difference
                    self._is_exact = self._is_exact and _are_exact(*[evaluated[number] for number in use])
            often, copies = cached
            ir_size = fp32(ir_size + copies)
            is_clean = True
            for user in instruction.users:
                if not clean[user] or not (user.opcode == "tuple" or atoms[user].intermediate):
                    is_clean = False
                    break
            clean[instruction] = is_clean
            if instruction.is_parameter:
                self.of_parameters[instruction] = cached
                parameter_size += copies
                continue
            if goes_on and not use:
                return False  # it is not in the place of a parameter
            atom = atoms[instruction] = self._atom_of(instruction)
            kinds[atom] = kinds.get(atom, 0) + 1
            if atom.flops:
                work = fp32(often * atom.flops)
                flops = fp32(flops + work)
                self._granule = min(self._granule, _lowest_bit(work))
            if atom.splits_block:
                splits = fp32(splits + copies)
            if atom.transposes_minor:
                self.across.append(instruction)
            if atom.transpose is not None or atom.opcode == "concatenate":
                self.found.append(instruction)
            elif atom.intermediate and instruction in sought:
                for operand in instruction.operands:
                    sought[operand] = sought.get(operand, 0) | sought[instruction]
            if atom.passes_use:
                for operand in instruction.operands:
                    present = uses.get(operand)
                    if present is None:
                        uses[operand] = use
                    elif present is not use:
                        uses[operand] = present | use
            else:
                self._add_uses(instruction, atom, often, int(copies))
        self.flops = flops
        self.splits = splits
        self.ir_size = ir_size
        self._parameter_size = parameter_size
        self._is_exact = self._is_exact and flops < self._granule * EXACT and ir_size < EXACT
        return self._is_exact

    def _add_uses(
        self,
        instruction: Instruction,
        atom: Atom,
        often: float,
        copies: int,
    ) -> None:
        """Make each operand a root of element-wise use that is read by this instruction."""
        uses = self.uses
        evaluated = self.evaluated
        for slot, operand in enumerate(instruction.operands):
            number = self._numbers.get(operand, -1)
            if number < 0:
                number = self._numbers[operand] = len(evaluated)
                evaluated.append(0.0)
                self._emitted.append(0)
            uses[operand] = uses.get(operand, _NOT_USED) | {number}
            share = 0.0 if slot == 0 and instruction in self._updated else atom.operand_utilization[slot]
            read = _elements_read(often, share, atom.operands[slot])
            if evaluated[number]:
                self._is_exact = self._is_exact and _are_exact(read, evaluated[number])
            evaluated[number] = fp32(evaluated[number] + read)
            self._emitted[number] += copies


def _are_exact(*summands: float) -> bool:
    """True if whole numbers have a sum that single precision holds."""
    return sum(summands) < EXACT and all(value.is_integer() for value in summands)


def _lowest_bit(value: float) -> float:
    whole, divisor = value.as_integer_ratio()
    return (whole & -whole) / divisor if whole else math.inf


def summary_of_fusion(fusion: Instruction, visit: _Visit, facts: _Facts) -> Summary:
    parameters = fusion.fused_computation.parameters
    summary = Summary()
    summary.atom, summary.is_fusion, summary.is_tuple = None, True, fusion.is_tuple
    summary.first_slots = ()
    operands = summary.operands = [facts(p.shape) for p in parameters]
    summary.flops, summary.ir_size, summary.splits = int(visit.flops), visit.ir_size, visit.splits
    each = [visit.of_parameters[p] for p in parameters]
    summary.utilization = [often for often, _ in each]
    summary.operand_bytes = [
        _bytes_of(o, often) for o, often in zip(operands, summary.utilization, strict=True)
    ]
    summary.parameter_ir_size = [int(copies) for _, copies in each]
    summary.parameter_uses = [visit.uses.get(p, _NOT_USED) for p in parameters]
    summary.root_utilization = visit.evaluated.copy()
    summary.written = int(_written_bytes(fusion, fusion.fused_root, facts))
    summary.elementwise = all(kind.elementwise for kind in visit.kinds)
    inside = [(kind, count) for kind, count in visit.kinds.items() if not kind.is_transparent]
    summary.features = 0
    for kind, _ in inside:
        summary.features |= kind.features
    summary.minor_of_transpose = min([a.minor_of_transpose for a, _ in inside], default=UNBOUNDED_ELEMENTS)
    summary.shared_memory = sum([kind.shared_memory * count for kind, count in inside])
    summary.unnested_reductions = sum([kind.unnested_reductions * count for kind, count in inside])
    summary.significant_reduce = any(kind.significant_reduce for kind, _ in inside)
    across = [chain_end(i.operand) for i in visit.across]
    summary.bad_transpose = any(end.opcode not in ("broadcast", "iota") for end in across)
    summary.clean = [visit.clean[p] for p in parameters]
    summary.roots = []
    for number, output in enumerate(visit.outputs):
        found = [i for i in visit.found if visit.sought.get(i, 0) >> number & 1]
        reached = [bool(visit.sought.get(p, 0) >> number & 1) for p in parameters]
        summary.roots.append(root_of_output(output, visit.atoms, visit.clean, found, reached, facts))
    summary.is_reduction = any(root.is_reduction for root in summary.roots)
    summary.skipped = frozenset(
        [o.parameter_number for o in visit.outputs if o.is_parameter and o.user_count <= 1]
    )
    return summary


def _elements_read(often: float, share: float, operand: ShapeFacts) -> float:
    """Reads of an operand by an instruction evaluated `often` that reads `share` of it. Whole elements are
    read. XLA multiplies in single and divides in double precision, so that 1 does not stay 1 where single
    precision cannot count the elements."""
    read = fp32(often * share)
    elements = operand.elements
    if elements == 0:
        return 0.0
    if read == 1.0 and operand.elements_fp32 == elements:
        return read
    return fp32(math.ceil(fp32(read * operand.elements_fp32)) / elements)


def _bytes_of(operand: ShapeFacts, share: float) -> int:
    size = operand.size_fp32
    return int(size) if share == 1.0 else single_half_away(size * share)


def _written_bytes(fusion: Instruction, root: Instruction, facts: _Facts) -> float:
    """Bytes written, for a dynamic-update-slice the update only (`FusionProcessOutputBytesAccessed`)."""

    def one(output: Instruction) -> float:
        updates = output.opcode == "dynamic-update-slice"
        return fp32(facts(output.second.shape if updates else output.shape).size)

    if not fusion.is_tuple:
        return one(root)
    total = 0.0
    for output in root.outputs:
        sizes = [one(output)]
        if output.is_tuple:
            sizes = [float(facts(leaf).size) for leaf in output.shape.leaf_shapes]
        for size in sizes:
            total = fp32(total + size)
    return total


class SummaryTable:
    """Finds the summary of an instruction, by its structure or its pair."""

    def __init__(self, shapes: ShapeTable, atoms: AtomTable) -> None:
        self._facts = shapes.facts
        self._atoms = atoms
        self._by_key = dict[Hashable, Summary]()
        self._visits = dict[Instruction, _Visit]()
        self._count = 0

    def find(self, instruction: Instruction) -> Summary:
        """The summary; a fusion's from its current computation."""
        config = fusion_config(instruction)
        if instruction.is_fusion:
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
        config = fusion_config(fusion)
        if pair.fused is None:
            pair.fused = {}
        cached = pair.fused.get(config)
        if cached is None:
            # Looking for an equal fusion made in another way costs as much as a walk and finds few.
            cached = summary_of_fusion(fusion, self._visited(fusion), self._facts)
            pair.fused[config] = self._assign_number(cached, config)
            if config is None and len(cached.roots) == 1 and cached.roots[0].update is None:
                cached.launch = pair.launch  # the same kernel, about to be fused or fused
        return cached

    def _visited(self, fusion: Instruction) -> _Visit:
        """A visit of all that the fusion holds, which goes on with the one from before it grew."""
        body = fusion.fused_computation
        order = body.post_order()
        order.reverse()
        visit = self._visits.pop(fusion, None)
        if visit is None or not visit.goes_on(order):
            visit = _Visit(body, self._atoms.atom)
            visit.add(order)
        if len(order) >= _WORTH_KEEPING:
            self._visits[fusion] = visit
        return visit

    def forget(self, fusion: Instruction) -> None:
        """Drop what is kept of a fusion that is removed, or has changed in another way than by growing."""
        self._visits.pop(fusion, None)

    def forget_module(self) -> None:
        """Drop what is kept of a finished module."""
        self._visits.clear()

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
            fusion.operand_count,
            place[body.root],
            tuple(
                [
                    (atoms[i].key, i.parameter_number)
                    if i.is_parameter
                    else (atoms[i].key, *[place[o] for o in i.operands])
                    for i in order
                ]
            ),
        )
        cached = self._by_key.get(key)
        if cached is None:
            visit = _Visit(body, atoms.__getitem__)
            visit.add(order[::-1])
            summary = summary_of_fusion(fusion, visit, self._facts)
            cached = self._by_key[key] = self._assign_number(summary, config)
        return cached


class Launcher(Struct, eq=False):
    _device: DeviceDescription
    _release: Release

    def launch(self, instruction: Instruction, summary: Summary) -> Launch:
        cached = summary.launch
        if cached is None:
            cached = None if summary.config is None else self._named_emitter(summary.config, summary)
            if cached is None:
                cached = launch_of(self.kernel(instruction, summary))
            summary.launch = cached
        return cached

    def kernel(self, instruction: Instruction, summary: Summary) -> FusionAnalysis:
        """The facts that decide the launch of a single instruction."""
        return FusionAnalysis(self._device, self._release, (instruction,), summary)

    def pair_launch(
        self,
        producer: Instruction,
        consumer: Instruction,
        pair: SummaryPair,
    ) -> Launch:
        cached = pair.launch
        if cached is None:
            a = pair.producer
            b = pair.consumer
            fusion = a.config if b.config is None else b.config
            if fusion is not None:
                cached = self._named_emitter(fusion, b)
            if cached is None:
                parts = producer, consumer
                cached = launch_of(FusionAnalysis(self._device, self._release, parts, pair))
            pair.launch = cached
        return cached

    def _named_emitter(self, fusion: config.FusionConfig, summary: Summary) -> Launch | None:
        root = summary.roots[0].result
        if fusion.kind == config.CUSTOM:
            return elementwise_launch(root, "custom")
        if fusion.is_triton:
            if not fusion.tile_sizes:
                return elementwise_launch(root, "triton")
            blocks = 1
            for size, tile in zip(root.dimensions, fusion.tile_sizes[0], strict=False):
                blocks *= -(-size // tile)
            return Launch("triton", blocks, fusion.num_warps * self._device.threads_per_warp)
        return elementwise_launch(root, "cudnn") if fusion.kind == config.CUDNN else None


class Tables:
    """Tables of one model on one device; no figure depends on names or neighbours."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        shapes = ShapeTable()
        self.atoms = AtomTable(device, shapes, release)
        self.summaries = SummaryTable(shapes, self.atoms)
        self.pairs = PairTable()
        self.launcher = Launcher(device, release)
        self.tiling: TilingModel | None = None  # The tiled model, if one was made

    def forget_module(self) -> None:
        """Drop a finished module; figures of structures stay."""
        self.atoms.forget_regions()
        self.summaries.forget_module()
        if self.tiling is not None:
            self.tiling.forget_module()


class SharedTables(Struct, eq=False):
    """Tables by model, device and release."""

    __repr__ = object.__repr__  # not all that they hold
    _tables: dict[tuple[str, DeviceDescription, Release], Tables] = {}

    def tables(self, model: str, device: DeviceDescription, release: Release) -> Tables:
        key = (model, device, release)
        tables = self._tables.get(key)
        if tables is None:
            tables = self._tables[key] = Tables(device, release)
        else:
            tables.forget_module()
        return tables
