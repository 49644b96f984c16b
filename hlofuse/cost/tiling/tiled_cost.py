"""Run time of tilings (`EstimateRunTimeForTiledHloComputation`, `gpu_indexing_performance_model.cc`)."""

import json
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from hlofuse.cost.gpu.backend_config import FusionConfig
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.estimate import OperandRead
from hlofuse.cost.gpu.ticks import INFINITE, TICKS_PER_SECOND
from hlofuse.cost.gpu.timing import flops_per_ns_and_fpu
from hlofuse.ir import Dims, Record, grouped
from hlofuse.releases import Release
from .analysis import Analysis, TiledNode, dot_contraction
from .constraints import NotTiled, Operation
from .dot_cost import Dot, DotTime, dot_of, dot_time
from .expressions import ADD, CONSTANT, MUL, VARIABLE, ZERO, Expr, mul, substitute, variable, variables_of
from .fusion_view import FusionView
from .op_kinds import OpKind
from .simplifier import Simplifier
from .tilings import NO_TILE, Column, Columns, Floats, Mask, TilingSet, Value, output_nodes
from .triton_support import DotDimensions

REGISTER_SHARE = 0.4  # The share of a block's registers that one tile may take before XLA expects spilling

# The arithmetic of `hlofuse.cost.gpu.ticks` and the basic times of a kernel, for many kernels at once.
# Mirrors `GpuPerformanceModelBase` in `xla/service/gpu/model/gpu_performance_model_base.cc`. Single precision
# is that of numpy; times are int64 ticks.

Ticks: TypeAlias = NDArray[np.int64]
Number: TypeAlias = "NDArray[np.int64] | Floats | NDArray[np.float32] | np.float32 | int | float"
_F = np.float32


def half_away(value: Floats) -> Ticks:
    """The nearest integers of non-negative values, halves up."""
    whole = np.trunc(value)
    result: Ticks = whole.astype(np.int64) + (value - whole >= 0.5)
    return result


def seconds(value: Number) -> Ticks:
    """`absl::Seconds` of non-negative values."""
    v = np.asarray(value, dtype=np.float64)
    whole = np.trunc(v)
    result: Ticks = whole.astype(np.int64) * TICKS_PER_SECOND + half_away((v - whole) * TICKS_PER_SECOND)
    return result


def _round_ticks(ticks: Floats) -> Ticks:
    """Fractional ticks, rounded as in absl, through seconds."""
    rest, whole = np.modf(ticks / TICKS_PER_SECOND)
    result: Ticks = whole.astype(np.int64) * TICKS_PER_SECOND + half_away(rest * TICKS_PER_SECOND)
    return result


def nanoseconds(value: Number) -> Ticks:
    """`absl::Nanoseconds` of non-negative values."""
    return _round_ticks(4.0 * np.asarray(value, dtype=np.float64))


class KernelTimes:
    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self.device = device
        self.release = release
        self._bandwidth = _F(device.memory_bandwidth)
        self._flops_per_core = flops_per_ns_and_fpu(device, release)
        self._per_block = _F(device.clock_rate_ghz) * _F(1e9) * _F(device.bytes_per_clock_and_core)
        self._l1_size = device.l1_cache_size_per_core * device.core_count

    def compute(self, flops: Ticks, blocks: Ticks, threads: Ticks) -> Ticks:
        """`ComputeTime`."""
        d = self.device
        units: Ticks = np.minimum(blocks, d.core_count) * np.minimum(threads, d.fpus_per_core)
        rate: Ticks = (self._flops_per_core * units).astype(np.int64)
        return nanoseconds(np.true_divide(flops.astype(_F), rate.astype(_F)))

    def combine(self, compute: Ticks, memory: Ticks) -> Ticks:
        """Run time from compute and memory time (`CombineComputeAndMemoryAccessTime`)."""
        shorter = np.minimum(compute, memory).astype(np.float64)
        result: Ticks = compute + memory - _round_ticks(shorter * self.device.memory_compute_parallelism)
        return result

    def read(
        self,
        blocks: Number,
        size: Ticks | int,
        total: Ticks,
        rate: Floats,
    ) -> Ticks:
        """Ticks to read `total` bytes of `size` at `rate` of the bandwidth (`ReadTimeWithDRAMHeuristic`)."""
        d = self.device
        net = np.minimum(size, total)
        dram = (d.memory_bandwidth * rate).astype(_F)
        cached = self._bandwidth * _F(d.l2_cache_speedup)
        rest = np.where(
            net < d.l2_cache_size,
            np.where(net < self._l1_size, cached * _F(d.l1_cache_speedup), cached),
            (float(self._bandwidth) * rate).astype(_F),
        )
        most = np.asarray(blocks).astype(_F) * self._per_block
        first = seconds(net.astype(_F) / np.minimum(dram, most))
        return first + seconds((total - net).astype(_F) / np.minimum(rest, most))

    def write(self, size: int, rate: Floats) -> Ticks:
        """Ticks to write a `size`-byte output at `rate` of the bandwidth."""
        return seconds(size / (rate * self.device.memory_bandwidth).astype(np.int64))


def dot_problem(view: FusionView, op: int) -> Dot | None:
    """The dot with that number; None if it is counted by its FLOP, like other operations."""
    if _has_transpose_below(view, op):
        return None
    kind = view.kinds[op]
    dims = cast("DotDimensions", kind.instruction_key)
    types = [o.element_type for o in view.instructions[op].operands[:2]]
    lhs, rhs = kind.operand_dims[:2]
    return dot_of(dims, lhs, rhs, (types[0], types[1], kind.shape.element_type))


def dot_tile_sizes(view: FusionView) -> dict[int, Dims]:
    """Contracting tile sizes from the backend configs of dots (`TilingFromAnnotatedFusion`)."""
    result = {}
    for op, kind in enumerate(view.kinds):
        if kind.opcode == "dot" and view.inside[op]:
            text = view.instructions[op].raw("backend_config") or "{}"
            try:
                result[op] = tuple(int(n) for n in json.loads(text).get("sizes", ()))
            except (ValueError, AttributeError):
                result[op] = ()
    return result


def _has_transpose_below(view: FusionView, op: int) -> bool:
    reached = {op}
    changed = True
    while changed:
        changed = False
        for user, operands in enumerate(view.operands):
            if user not in reached and not reached.isdisjoint(operands):
                if view.kinds[user].opcode == "transpose":
                    return True
                reached.add(user)
                changed = True
    return False


def dot_times(
    view: FusionView,
    node: TiledNode,
    sizes: Columns,
    warps: Column,
    stages: int,
    device: DeviceDescription,
) -> tuple[Ticks, Ticks]:
    """Compute time and whole time of one dot for each tiling (`GetDotEstimates`)."""
    dot = dot_problem(view, node.op)
    count = len(warps)
    along = cast("DotDimensions", view.kinds[node.op].instruction_key)[2][0]
    exprs = [*node.tile.sizes, node.operands[0].tile.sizes[along]]
    columns = [np.broadcast_to(sizes.value(e), (count,)).tolist() for e in exprs]
    compute, total = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    cached = dict[Dims, DotTime | None]()
    for i, (*tile, tile_k, w) in enumerate(zip(*columns, warps.tolist(), strict=True)):
        key = (*tile, tile_k, w)
        if key not in cached:
            cached[key] = dot_time(dot, tuple(tile), tile_k, w, stages, device) if dot else None
        if (found := cached[key]) is not None:
            compute[i], total[i] = found
    return compute, total


class TilingCosts(Record):
    """Figures for each tiling; times in ticks, `exec_time` INFINITE for a tiling that would spill."""

    exec_time: Ticks
    compute_time: Ticks
    read_time: Ticks
    write_time: Ticks
    flops: Column
    bytes_read: Column
    bytes_written: int
    blocks: Column
    num_warps: Column
    outputs: list[Column]  # The position of the written node for each output (see `multi_output`)
    reads: dict[int, tuple[Value, Floats]]
    """Bytes read and the attained share of the bandwidth, by number of the operation."""


def num_warps(largest_tile: Value) -> Column:
    """Warps for the largest tile of a kernel, in elements (`GetNumWarps`)."""
    tile = np.asarray(largest_tile)
    return np.where(tile <= 256, 1, np.where(tile <= 1024, 2, np.where(tile <= 4096, 4, 8)))


class _Costing:
    def __init__(self, analysis: Analysis, tilings: TilingSet, times: KernelTimes) -> None:
        self.analysis = analysis
        self.view = analysis.view
        self.tilings = tilings
        self.count = tilings.count
        self.sizes = tilings.sizes
        self.strides_of: dict[TiledNode, Columns] = {}
        self.largest: Value = 1
        self.fits: Mask = True
        self.flops: Value = 0
        self.bytes_read: Value = 0
        self.reads: dict[int, tuple[Value, Floats]] = {}
        self.register_limit = REGISTER_SHARE * times.device.registers_per_block_limit
        self._every_tile = times.release.every_tile_needs_registers
        self._shares_regions = times.release.equal_concatenates_shared
        self.dots: list[tuple[TiledNode, Mask]] = []  # Nodes of dots, with the tilings for which they count
        self._merger: TileMerger | None = None

    def run(self) -> None:
        nodes = self.analysis.nodes
        for node in nodes:
            columns = self.tilings.strides(node.tile)
            if any(map(columns.has_negative, node.tile.strides)):
                text = "Full support for negative strides is not implemented hlo: "
                raise NotTiled(text, Operation(node.op), is_status=True)
        self._merger = TileMerger(self.analysis, self.tilings, self._shares_regions)
        self.blocks = self.tilings.blocks(self.view.kinds[0].dims, self.analysis.first_output)
        self._level(nodes, self.blocks)

    def _level(self, nodes: list[TiledNode], blocks: Column) -> None:
        assert self._merger is not None
        view = self.view
        for node in nodes:
            self.strides_of[node] = self.tilings.strides(node.tile)
            if not self._shares_regions:
                self._regions(node, blocks)
        # Many nodes have the same tile: their work is summed up before anything is multiplied.
        flops_by_tile: dict[tuple[Expr, ...], Value] = {}
        materialized: set[tuple[Expr, ...]] = set()
        for node, new in self._merger.distinct(nodes, self.strides_of):
            kind = view.kinds[node.op]
            inside = view.inside[node.op]
            tile = node.tile.sizes
            if tile not in flops_by_tile:
                flops_by_tile[tile] = 0
            if not inside or kind.opcode == "iota" or self._every_tile:
                materialized.add(tile)
            if new is False:
                continue
            if self._shares_regions:
                self._regions(node, blocks if new is True else blocks * new)
            if inside:
                if kind.opcode == "dot" and dot_problem(view, node.op) is not None:
                    self.dots.append((node, new))
                elif kind.flops:
                    flops = kind.flops if new is True else kind.flops * new
                    flops_by_tile[tile] = flops_by_tile[tile] + flops
            else:
                self._read(node, kind, blocks, new)
        for tile, flops in flops_by_tile.items():
            size = self.sizes.padded_product(tile)
            self.largest = np.maximum(self.largest, size)
            if tile in materialized:
                self.fits = self.fits & self.sizes.padded_at_most(tile, self.register_limit)
            if isinstance(flops, np.ndarray) or flops:
                self.flops = self.flops + blocks * size * flops

    def _regions(self, node: TiledNode, blocks: Column) -> None:
        for position, region in enumerate(node.regions):
            self._region(node, position, region, blocks)

    def _region(
        self,
        node: TiledNode,
        position: int,
        region: list[TiledNode],
        blocks: Column,
    ) -> None:
        """Add a region that runs in some blocks only, or several times (`GetNumBlocksForRegion`)."""
        kind = self.view.kinds[node.op]
        if kind.opcode == "dot":
            lhs = node.operands[0].tile
            for d in dot_contraction(kind):
                steps = -(-kind.operand_dims[0][d] // self.sizes.value(lhs.sizes[d]))
                blocks = blocks * steps
            self._level(region, blocks)
            return
        last = region[-1]
        for (low, _), tile in zip(last.map.dims, self.tilings.columns, strict=False):
            if np.any(low % tile):
                raise NotTiled("Dimension bounds are not divisible by tile size: ", last.map, is_status=True)
        along = kind.instruction_key[0]
        assert isinstance(along, int)
        self._level(region, blocks * kind.operand_dims[position][along] // kind.dims[along])

    def _read(
        self,
        node: TiledNode,
        kind: OpKind,
        blocks: Column,
        new: Mask,
    ) -> None:
        size, share = self.tilings.access(kind, node.tile)
        total: Value = (blocks if new is True else blocks * new) * size
        self.bytes_read = self.bytes_read + total
        if (before := self.reads.get(node.op)) is not None:
            total, share = before[0] + total, np.minimum(before[1], share)
        self.reads[node.op] = (total, share)


def tiling_costs(
    analysis: Analysis,
    tilings: TilingSet,
    times: KernelTimes,
    given: FusionConfig | None = None,
) -> TilingCosts:
    """Costs of these tilings, with `given` warps and stages; raises `NotTiled` where XLA reports an error."""
    costing = _Costing(analysis, tilings, times)
    costing.run()
    view, count = analysis.view, costing.count
    full = (count,)
    blocks = costing.blocks
    used_warps = np.broadcast_to(num_warps(costing.largest) if given is None else given.num_warps, full)
    stages = 1 if given is None else given.num_stages
    none: Ticks = np.zeros(count, dtype=np.int64)
    read = none
    if costing.reads:  # a row for each operand
        sizes = np.array([[view.kinds[op].byte_size] for op in costing.reads], dtype=np.int64)
        totals, shares = np.empty((len(sizes), count), dtype=np.int64), np.empty((len(sizes), count))
        for row, (total, share) in enumerate(costing.reads.values()):
            totals[row], shares[row] = total, share
        read = times.read(blocks, sizes, totals, shares).sum(axis=0)
    outputs = output_nodes(analysis, costing.sizes, blocks)
    write = none
    bytes_written = 0
    fits = costing.fits
    for root, chosen in zip(view.roots, outputs, strict=True):
        kind = view.kinds[root]
        bytes_written += kind.byte_size
        for position in sorted(set(chosen.tolist())):
            if position == NO_TILE:
                fits = fits & (chosen != NO_TILE)
                continue
            node = analysis.nodes[position]
            _, share = tilings.access(kind, node.tile)
            ticks = np.broadcast_to(times.write(kind.byte_size, share), full)
            write = write + np.where(chosen == position, ticks, 0)
            small = costing.sizes.padded_at_most(node.tile.sizes, costing.register_limit)
            fits = fits & ((chosen != position) | small)
    flops = np.broadcast_to(costing.flops, full)
    compute = times.compute(flops, blocks, used_warps * times.device.threads_per_warp)
    dot_total = none
    for node, new in costing.dots:
        own, whole = dot_times(view, node, costing.sizes, used_warps, stages, times.device)
        # No estimate, or merged with another tile: nothing to add.
        counted = np.broadcast_to(new, full)
        compute = compute + np.where(counted, own, 0)
        dot_total = np.maximum(dot_total, np.where(counted, whole, 0))
    exec_time = np.where(fits, np.maximum(times.combine(compute, read + write), dot_total), INFINITE)
    bytes_read = np.broadcast_to(costing.bytes_read, full)
    return TilingCosts(
        exec_time,
        compute,
        read,
        write,
        flops,
        bytes_read,
        bytes_written,
        blocks,
        used_warps,
        outputs,
        costing.reads,
    )


# What the times of one tiling consist of, operand by operand: for explaining, not for deciding.
def tile_reads(view: FusionView, costs: TilingCosts, times: KernelTimes) -> list[OperandRead]:
    """The operands read, in the order of a traversal from the root; `costs` of a single tiling."""
    found = []
    for op, (total, share) in sorted(costs.reads.items()):
        size = view.kinds[op].byte_size
        read = np.broadcast_to(total, (1,))
        rate = np.broadcast_to(share, (1,))
        ticks = int(times.read(costs.blocks, size, read, rate)[0])
        found.append(OperandRead(view.instructions[op], size, int(read[0]), ticks, float(rate[0])))
    return found


# Nodes of an analysis with equal tiles, by tiling.
#
# XLA computes a tile once if operation, sizes, strides and operands agree (`OrderedUniquePtrValueHashSet` in
# `symbolic_tile_analysis.cc`), and for operations without operands also its start, if that can differ.
class TileMerger:
    """Finds, for every node and tiling, the first node with the same tile."""

    def __init__(self, analysis: Analysis, tilings: TilingSet, shares_regions: bool) -> None:
        self.view = analysis.view
        self._shares_regions = shares_regions
        self.values = tilings.sizes
        self.count = tilings.count
        tiles = self.values.parameters
        self.tiles_per_dimension = [-(-n // t) for n, t in zip(analysis.sizes, tiles, strict=False)]
        self.by_offset = self._compared_by_offset(analysis.nodes)
        self._numbers: dict[TiledNode, Value] = {}

    def _compared_by_offset(self, nodes: list[TiledNode]) -> dict[int, Mask]:
        """The tilings whose offsets are compared, for operations without operands that occur twice alike."""
        groups = grouped((node.op, node) for node in nodes if not node.operands)
        result: dict[int, Mask] = {}
        for op, group in groups.items():
            needed: Mask = False
            for i, b in enumerate(group):
                for a in group[:i]:
                    needed = needed | self._same_sizes(a, b)
            if needed is not False:
                result[op] = needed
        result.update((root, True) for root in self.view.roots)
        return result

    def _same_sizes(self, a: TiledNode, b: TiledNode) -> Mask:
        return self._same(a.tile.sizes, b.tile.sizes, self.values, self.values)

    def _same(
        self,
        a: tuple[Expr, ...],
        b: tuple[Expr, ...],
        of_a: Columns,
        of_b: Columns,
    ) -> Mask:
        same = True
        for x, y in zip(a, b, strict=True):
            if x is not y or of_a is not of_b:
                same = same & (of_a.value(x) == of_b.value(y))
        return same

    def distinct(
        self, level: list[TiledNode], strides: dict[TiledNode, Columns]
    ) -> list[tuple[TiledNode, Mask]]:
        numbers = self._numbers
        earlier: dict[int, list[TiledNode]] = {}
        result: list[tuple[TiledNode, Mask]] = []
        for node in level:
            number: Value = len(numbers)
            new: Mask = True
            for other in earlier.get(node.op, ()):
                same = self._equal(other, node, strides) & new
                if same is False:
                    continue
                new = new & ~same if not isinstance(same, bool) else new and not same
                number = numbers[other] if same is True else np.where(same, numbers[other], number)
                if isinstance(new, np.ndarray) and not new.any():
                    new = False
                    break
            numbers[node] = number
            earlier.setdefault(node.op, []).append(node)
            result.append((node, new))
        return result

    def _equal(self, a: TiledNode, b: TiledNode, strides: dict[TiledNode, Columns]) -> Mask:
        has_regions = bool(a.regions or b.regions)
        if has_regions and not self._shares_regions:
            return False
        same: Mask = True
        for x, y in () if has_regions else zip(a.operands, b.operands, strict=True):
            if x is not y:
                same = same & (self._numbers[x] == self._numbers[y])
                if same is False:
                    return False
        same = same & self._same_sizes(a, b)
        same = same & self._same(a.tile.strides, b.tile.strides, strides[a], strides[b])
        compare = True if self.view.kinds[a.op].opcode == "iota" else self.by_offset.get(a.op, False)
        if compare is not False and same is not False:
            at_once = self._same_offsets(a, b, same)
            same = same & (at_once if compare is True else at_once | ~compare)
        if isinstance(same, np.ndarray) and not same.any():
            return False
        return bool(same) if isinstance(same, np.bool_) else same

    def _same_offsets(self, a: TiledNode, b: TiledNode, where: Mask) -> Mask:
        same: Mask = True
        for x, y in zip(a.map.results, b.map.results, strict=True):
            x, y = _tile_start(x, len(a.map.dims)), _tile_start(y, len(b.map.dims))
            if x is y:
                continue
            first, second = _linear(x), _linear(y)
            if first is not None and second is not None:
                if first[0] != second[0]:
                    return False
                for d in first[1].keys() | second[1].keys():
                    if first[1].get(d, 0) != second[1].get(d, 0):
                        same = same & (self.tiles_per_dimension[d] == 1)
            else:
                same = same & self._compare_simplified(x, y, where)
        return same

    def _compare_simplified(self, x: Expr, y: Expr, where: Mask) -> Mask:
        """The general case, by tiling: both as functions of the block's index, simplified."""
        wanted = np.broadcast_to(where, (self.count,))
        result = np.zeros(self.count, dtype=np.bool_)
        for i in map(int, np.flatnonzero(wanted)):
            values = []
            bounds = []
            for d, tile in enumerate(self.values.parameters):
                tiles = int(_item(self.tiles_per_dimension[d], i))
                values.append(mul(variable(d), int(_item(tile, i))) if tiles > 1 else ZERO)
                bounds.append((0, max(tiles, 1) - 1))
            simplifier = Simplifier(bounds)
            result[i] = simplifier.simplify(substitute(x, values)) is simplifier.simplify(
                substitute(y, values)
            )
        return result


def _item(value: Value, i: int) -> int:
    return value if isinstance(value, int) else int(value[i])


def _tile_start(expr: Expr, rank: int) -> Expr:
    symbols = max(variables_of(expr), default=-1) + 1 - rank
    return substitute(expr, [*map(variable, range(rank)), *[ZERO] * symbols]) if symbols > 0 else expr


def _linear(expr: Expr) -> tuple[int, dict[int, int]] | None:
    if expr.kind == CONSTANT:
        return expr.value, {}
    if expr.kind == VARIABLE:
        return 0, {expr.value: 1}
    if expr.kind == MUL and expr.rhs.kind == CONSTANT:
        inner = _linear(expr.lhs)
        return inner and (inner[0] * expr.rhs.value, {d: f * expr.rhs.value for d, f in inner[1].items()})
    if expr.kind == ADD:
        first, second = _linear(expr.lhs), _linear(expr.rhs)
        if first is None or second is None:
            return None
        factors = dict(first[1])
        for d, f in second[1].items():
            factors[d] = factors.get(d, 0) + f
        return first[0] + second[0], factors
    return None
