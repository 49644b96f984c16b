"""Summaries, each structure's once."""

from collections.abc import Hashable, Sequence

from hlofuse.cost.gpu.atom_summary import summary_of_atom
from hlofuse.cost.gpu.atoms import AtomTable
from hlofuse.cost.gpu.backend_config import TRITON, FusionConfig, fusion_config
from hlofuse.cost.gpu.composing import compose
from hlofuse.cost.gpu.fusion_summary import summary_of_fusion
from hlofuse.cost.gpu.origins import Origin
from hlofuse.cost.gpu.pair import SummaryPair
from hlofuse.cost.gpu.shapes import ShapeTable
from hlofuse.cost.gpu.summary import Summary
from hlofuse.ir.graph import Instruction


class SummaryTable:
    """Finds the summary of an instruction, by its structure or by what it was made of."""

    def __init__(self, shapes: ShapeTable, atoms: AtomTable) -> None:
        self._facts = shapes.facts
        self._atoms = atoms
        self._by_key: dict[Hashable, Summary] = {}
        self._count = 0

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
        cached = self._by_key.get(key)
        if cached is None:
            cached = self._by_key[key] = self._numbered(summary_of_atom(atom, slots), config)
        return cached

    def of_pair(self, fusion: Instruction, pair: SummaryPair, origins: Sequence[Origin] | None) -> Summary:
        """The summary of a fusion made from such a pair; one made so before has it too.

        It is put together from those of the pair if `origins` tells how and that can be, otherwise walked.
        """
        config = fusion_config(fusion)
        if pair.fused is None:
            pair.fused = {}
        cached = pair.fused.get(config)
        if cached is None:
            if origins is not None:
                cached = compose(pair, origins)
            if cached is None:
                # Looking for an equal fusion made in another way costs as much as a walk and finds few.
                order = fusion.fused_computation.post_order()
                atoms = {inner: self._atoms.atom(inner) for inner in order}
                cached = summary_of_fusion(fusion, order, atoms, self._facts)
            pair.fused[config] = self._numbered(cached, config)
            if config is None and len(cached.roots) == 1 and cached.roots[0].update is None:
                cached.launch = pair.launch  # the same kernel, about to be fused or fused
        return cached

    def _numbered(self, summary: Summary, config: FusionConfig | None) -> Summary:
        summary.config, summary.is_triton = config, False
        if config is not None:  # it may name the emitter
            summary.leaves_loops = summary.keeps_loop = False
            if summary.is_fusion and config.kind == TRITON:
                summary.is_triton, summary.composes = True, False
        summary.number = self._count
        self._count += 1
        summary.launch = summary.loop = None
        summary.estimates = [None, None]
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
        cached = self._by_key.get(key)
        if cached is None:
            summary = summary_of_fusion(fusion, order, atoms, self._facts)
            cached = self._by_key[key] = self._numbered(summary, config)
        return cached
