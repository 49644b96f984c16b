"""The tiled model: the best tiling of a fusion that Triton would emit, and its cost
(`GpuPerformanceModelWithIndexingAnalysis` in `xla/service/gpu/model/gpu_indexing_performance_model.cc`)."""

from typing import TypeAlias

import numpy as np

from hlofuse.cost.gpu.backend_config import TRITON, FusionConfig, fusion_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.estimate import Estimate, Launch, OperandRead
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.ir import Dims, Instruction, Ints, PrintOptions, replace
from hlofuse.ir.text.printer import print_instruction
from hlofuse.releases import Release
from .analysis import Analysis
from .constraints import PREFIX, NotTiled, Operation, Refusal, Tiling
from .fusion_view import FusionView, view_of
from .indexing_map import IndexingMap
from .op_kinds import OpKinds
from .tiled_cost import KernelTimes, TilingCosts, dot_tile_sizes, tile_reads, tiling_costs
from .tilings import NO_TILE, Columns, TilingSet, all_of, valid_tilings

_NO_TILING = "No valid tilings found."
_Outcome: TypeAlias = "Tiling | tuple[object, ...]"
"""A tiling, or the parts of a refusal with operations by number."""


class TilingModel:
    """Tilings on one device. Fusions of equal structure are evaluated once."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self.device = device
        self._kinds = OpKinds(device, release)
        self._times = KernelTimes(device, release)
        self._pads = release.tiles_are_powers_of_two
        self._best = dict[object, _Outcome]()
        self._fixed = dict[object, _Outcome]()
        self._analyses = dict[object, Analysis | NotTiled]()
        self._sets = dict[Dims, TilingSet]()

    def best_tiling(self, *parts: Instruction, extra_outputs: bool = False) -> Tiling | Refusal:
        """The cheapest tiling of a fusion, or of a producer and its future consumer. `parts` is the fusion,
        or the producer and the consumer (`TryFindBestTilingForFusion`). A refusal has the words of
        `PriorityFusionQueue::CanFuseTriton`. With `extra_outputs` results with other users remain."""
        view = self._view(*parts, extra_outputs=extra_outputs)
        if isinstance(view, Refusal):
            return view
        outcome = self._best.get(view.key)
        if outcome is None:
            try:
                outcome = self._choose(self._analysis(view))
            except NotTiled as refusal:
                unnamed = self._times.release.failed_tilings_unnamed
                outcome = (_NO_TILING,) if unnamed else tuple(refusal.parts)
            self._best[view.key] = outcome
        return outcome if isinstance(outcome, Tiling) else self._refusal(outcome, view)

    def can_tile(self, *parts: Instruction) -> bool:
        """True if the fusion, or the producer and the consumer, have tilings (`AnalyzeFusion`)."""
        view = self._view(*parts)
        try:
            return not isinstance(view, Refusal) and bool(self._analysis(view))
        except NotTiled:
            return False

    def run_time(self, fusion: Instruction) -> Tiling | Refusal:
        """The cost of a Triton fusion with the tile sizes of its config (`EstimateRunTimeForTriton`)."""
        config = fusion_config(fusion)
        if config is None or not config.num_warps:
            return Refusal(("Could not get launch config for Triton fusion.",))
        view = self._view(fusion)
        if isinstance(view, Refusal):
            return view
        contractions = dot_tile_sizes(view)
        key = (view.key, config, tuple(contractions.items()))
        best = self._best.get(view.key)
        if isinstance(best, Tiling) and best.config == config and not contractions:
            # What was fused a moment ago mostly has the tiling that was found best for the two.
            return replace(best, candidates=1)
        outcome = self._fixed.get(key)
        if outcome is None:
            try:
                outcome = self._fixed_cost(self._analysis(view), config, contractions)
            except NotTiled as refusal:
                outcome = tuple(refusal.parts)
            self._fixed[key] = outcome
        return outcome if isinstance(outcome, Tiling) else self._refusal(outcome, view)

    def reads(self, tiling: Tiling, *parts: Instruction) -> list[OperandRead]:
        """The reads of the tiling, by operand; empty if it is no tiling of these `parts`."""
        view = self._view(*parts)
        if isinstance(view, Refusal):
            return []
        try:
            analysis = self._analysis(view)
            if max(len(analysis.sizes), 1) != max(len(tiling.parameters), 1):
                return []
            tilings = self._single_tiling(analysis, tiling.parameters)
            costs = tiling_costs(analysis, tilings, self._times, tiling.config)
        except NotTiled:
            return []
        is_same = int(costs.exec_time[0]) == tiling.estimate.ticks
        return tile_reads(view, costs, self._times) if is_same else []

    def forget_module(self) -> None:
        """Drop the instructions of a finished module; figures of structures stay."""
        self._kinds.forget()

    def _view(self, *parts: Instruction, extra_outputs: bool = False) -> FusionView | Refusal:
        try:
            return view_of(self._kinds, *parts, extra_outputs=extra_outputs)
        except NotTiled as refusal:
            return Refusal((PREFIX, *refusal.parts))

    def _analysis(self, view: FusionView) -> Analysis:
        cached = self._analyses.get(view.key)
        if cached is None:
            try:
                cached = Analysis(view, self._times.release.tiles_parts_of_rows)
            except NotTiled as refusal:
                cached = refusal
            self._analyses[view.key] = cached
        if isinstance(cached, NotTiled):
            raise cached
        return cached

    def _choose(self, analysis: Analysis) -> Tiling:
        extents = tuple(analysis.sizes)
        every = self._sets.get(extents)
        if every is None:
            pads, transaction = self._pads, self.device.dram_to_l2_transaction_bytes
            every = self._sets[extents] = all_of(extents, transaction, pads)
        tilings = valid_tilings(analysis, self.device, every)
        if not tilings.count:
            raise NotTiled(_NO_TILING)
        costs = tiling_costs(analysis, tilings, self._times)
        best = int(np.argmin(costs.exec_time))
        if costs.exec_time[best] >= INFINITE and self._times.release.tilings_that_spill_skipped:
            raise NotTiled(_NO_TILING)
        sizes = [int(np.asarray(c)[best]) for c in tilings.columns]
        return self._tiling(analysis, costs, best, sizes, tilings.count)

    def _single_tiling(self, analysis: Analysis, parameters: Ints) -> TilingSet:
        columns = [np.array([n], dtype=np.int64) for n in parameters or (1,)]
        return TilingSet(analysis.sizes, columns, self.device.dram_to_l2_transaction_bytes, self._pads)

    def _fixed_cost(
        self,
        analysis: Analysis,
        config: FusionConfig,
        contractions: dict[int, Dims],
    ) -> Tiling:
        main = analysis.view.roots.index(0)
        if main >= len(config.tile_sizes):
            raise NotTiled(
                "Output tile sizes index ", main, " is out of bounds for block level fusion config"
            )
        own = list[int]()
        for op in analysis.first_parameter:
            own += contractions.get(op, ())
            if op == 0:
                own += config.tile_sizes[main]
        if self._pads:  # the last of a dimension may reach beyond it
            own = [min(n, size) for n, size in zip(own, analysis.sizes, strict=False)]
        if len(own) != len(analysis.sizes):
            raise NotTiled("Expected ", len(analysis.sizes), " tile sizes but got ", len(own), ".")
        tilings = self._single_tiling(analysis, own)
        if not all(np.all(tilings.sizes.condition_mask(c)) for c in analysis.conditions):
            raise NotTiled("Tiling does not satisfy constraints.")
        costs = tiling_costs(analysis, tilings, self._times, config)
        for root, chosen in zip(analysis.view.roots, costs.outputs, strict=True):
            if chosen[0] == NO_TILE:
                text = "Unsupported case of multi-output fusion, we found no tiling to reuse for "
                raise NotTiled(text, Operation(root))
        return self._tiling(analysis, costs, 0, own, 1)

    def _tiling(
        self, analysis: Analysis, costs: TilingCosts, i: int, parameters: list[int], candidates: int
    ) -> Tiling:
        values = Columns(parameters)
        written = [analysis.nodes[int(chosen[i])] for chosen in costs.outputs]
        warps = int(costs.num_warps[i])
        size = values.padded if self._pads else values.value
        estimate = Estimate(
            int(costs.exec_time[i]),
            int(costs.flops[i]),
            int(costs.bytes_read[i]),
            costs.bytes_written,
            int(costs.read_time[i]),
            int(costs.write_time[i]),
            int(costs.compute_time[i]),
            Launch("triton", int(costs.blocks[i]), warps * self.device.threads_per_warp),
            True,
        )
        tiles = tuple(tuple(int(size(e)) for e in n.tile.sizes) for n in written)
        return Tiling(estimate, FusionConfig(TRITON, tiles, warps, 1), candidates, tuple(parameters))

    def _refusal(self, parts: tuple[object, ...], view: FusionView) -> Refusal:
        """The refusal with the current names of instructions, printed in XLA's default way."""
        texts = [
            print_instruction(view.instructions[p.number], PrintOptions())
            if isinstance(p, Operation)
            else self._part_text(p)
            for p in parts
        ]
        return Refusal((PREFIX, *texts))

    def _part_text(self, part: object) -> str:
        """The text of a part; index maps have spelled-out operators where XLA's are MLIR expressions."""
        text = str(part)
        if isinstance(part, IndexingMap) and self._times.release.maps_are_affine:
            text = text.replace(" / ", " floordiv ").replace(" % ", " mod ")
        return text
