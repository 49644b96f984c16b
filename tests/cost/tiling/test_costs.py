"""Costs of all tilings of small fusions: by going through every block, and by hand on a simple device."""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
import pytest

from hlofuse.cost.gpu import ticks as scalar
from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.cost.gpu.timing import Timing
from hlofuse.cost.tiling.analysis import Analysis, TiledNode
from hlofuse.cost.tiling.constraints import NotTiled
from hlofuse.cost.tiling.dot_cost import Dot, DotTime, dot_of, dot_time, peak_matrix_ops
from hlofuse.cost.tiling.expressions import constant, substitute
from hlofuse.cost.tiling.fusion_view import view_of
from hlofuse.cost.tiling.op_kinds import OpKind, OpKinds, operand_maps
from hlofuse.cost.tiling.size_and_stride import symbolic_tile
from hlofuse.cost.tiling.tiled_cost import (
    KernelTimes,
    TilingCosts,
    nanoseconds,
    num_warps,
    seconds,
    tile_reads,
    tiling_costs,
)
from hlofuse.cost.tiling.tilings import (
    NO_TILE,
    TilingSet,
    all_of,
    all_tilings,
    block_count,
    power_of_two_ceil,
    valid_tilings,
)
from hlofuse.ir.graph import Instruction
from hlofuse.ir.record import replace
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE

H100 = load_device("h100_sxm")
TRANSACTION = 64


def instruction(line: str, *operands: str) -> Instruction:
    parameters = "\n".join(f"  p{i} = {t} parameter({i})" for i, t in enumerate(operands))
    return parse_module(f"HloModule m\nENTRY e {{\n{parameters}\n  ROOT x = {line}\n}}").entry.root


def fusion(result: str, body: str, *operands: str) -> Instruction:
    """A Triton fusion; `r`, the last line of the body, is its root."""
    parameters = "\n".join(f"  p{i} = {t} parameter({i})" for i, t in enumerate(operands))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return parse_module(
        f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
c {{
{parameters}
{body}
}}
ENTRY e {{
{parameters}
  ROOT f = {result} fusion({names}), kind=kCustom, calls=c
}}"""
    ).entry.root


# ------------------------------------------------------------ arithmetic of columns


@pytest.mark.parametrize("name", ["h100_sxm", "v100", "mi350"])
def test_times_of_columns_are_those_of_single_kernels(name: str) -> None:
    device = load_device(name)
    columns, single, choose = KernelTimes(device, RELEASE), Timing(device, RELEASE), random.Random(1)
    for _ in range(300):
        flops = choose.choice([0, choose.randrange(10**6), choose.randrange(10**13)])
        blocks, threads = choose.choice([1, 7, 131, 132, 133, 5000]), choose.choice([32, 64, 128, 256])
        compute = columns.compute(*(np.array([n]) for n in (flops, blocks, threads)))
        assert compute.tolist() == [single.compute(flops, blocks, threads)]
        a, b = choose.randrange(10**6), choose.randrange(10**6)
        assert columns.combine(np.array([a]), np.array([b])).tolist() == [single.combine(a, b)]
        size = choose.choice([4, choose.randrange(1, 10**6), choose.randrange(10**7, 10**9)])
        total = choose.choice([0, size // 2, size, 3 * size])
        rate = choose.choice([1.0, 0.5, 0.0625])
        read = columns.read(blocks, size, np.array([total]), np.array([rate]))
        assert read.tolist() == [single.read_at_rate(min(size, total), total, rate, blocks)]
        write = columns.write(size, np.array([rate]))
        assert write.tolist() == [scalar.seconds(size / int(rate * device.memory_bandwidth))]


def test_column_durations_round_as_single_ones() -> None:
    values = [0.0, 1e-10, 1.249e-10, 1.25e-10, 1e-9, 0.75, 1.5, 3.125e-10, 7.0000001, 123.4]
    assert seconds(np.array(values)).tolist() == [scalar.seconds(v) for v in values]
    nanos = [0.0, 0.1, 0.125, 0.13, 1.0, 2.5e9, 130 * 0.95 / 4, 1e10 + 0.2]
    assert nanoseconds(np.array(nanos)).tolist() == [scalar.nanoseconds(v) for v in nanos]


def test_powers_of_two() -> None:
    wanted = [next(1 << k for k in range(9) if 1 << k >= n) for n in range(1, 200)]
    assert [power_of_two_ceil(n) for n in range(1, 200)] == wanted
    assert power_of_two_ceil(0) == 0
    found = power_of_two_ceil(np.arange(1, 200))
    assert isinstance(found, np.ndarray)
    assert found.tolist() == wanted


def test_all_tilings_are_powers_of_two_and_the_whole() -> None:
    assert [c.tolist() for c in all_tilings((1,))] == [[1]]
    assert [c.tolist() for c in all_tilings((2, 3))] == [[1, 1, 1, 2, 2, 2], [1, 2, 3, 1, 2, 3]]
    assert [c.tolist() for c in all_tilings((8,))] == [[1, 2, 4, 8]]
    assert [c.tolist() for c in all_tilings((9,))] == [[1, 2, 4, 8, 9]]
    assert all_tilings(()) == []
    assert all_of((), TRANSACTION).count == 1


@pytest.mark.parametrize(
    ("dims", "tiles", "blocks"), [((8, 6), (3, 6), 3), ((8, 6), (4, 4), 4), ((1,), (1,), 1)]
)
def test_blocks_cover_the_array(dims: tuple[int, ...], tiles: tuple[int, ...], blocks: int) -> None:
    assert block_count(dims, tiles) == blocks


@pytest.mark.parametrize(
    ("tile", "warps"), [(1, 1), (256, 1), (257, 2), (1024, 2), (1025, 4), (4096, 4), (4097, 8)]
)
def test_warps_grow_with_the_largest_tile(tile: int, warps: int) -> None:
    assert int(num_warps(tile)) == warps


# ------------------------------------------------------------ reads of a tile

ARRAYS = [
    ("f32[6,8]{1,0}", "negate(p0)", "f32[6,8]{1,0}"),
    ("f32[6,8]{0,1}", "negate(p0)", "f32[6,8]{0,1}"),
    ("bf16[4,3,40]{1,2,0}", "negate(p0)", "bf16[4,3,40]{1,2,0}"),
    ("f32[8,6]{1,0}", "transpose(p0), dimensions={1,0}", "f32[6,8]{1,0}"),
    ("f32[3,8]{1,0}", "slice(p0), slice={[0:6:2], [0:8]}", "f32[6,8]{1,0}"),
    ("f32[6,4]{1,0}", "slice(p0), slice={[0:6], [0:8:2]}", "f32[6,8]{1,0}"),
    ("f64[6,4]{1,0}", "slice(p0), slice={[0:6], [3:7]}", "f64[6,8]{1,0}"),
    ("f32[6,8,5]{2,1,0}", "broadcast(p0), dimensions={0,1}", "f32[6,8]{1,0}"),
    ("f32[6,4,64]{2,1,0}", "negate(p0)", "f32[6,4,64]{2,1,0}"),
]


@pytest.mark.parametrize(("result", "operation", "operand"), ARRAYS)
def test_a_tile_reads_whole_transactions(result: str, operation: str, operand: str) -> None:
    """The share is that of the bytes in a row from the first one, in the transactions that they fill."""
    root = instruction(f"{result} {operation}", operand)
    (m,), source = operand_maps(root), root.operands[0].shape
    assert m is not None
    tile = symbolic_tile(m)
    assert tile is not None
    kind, sizes = OpKind(0, "", source), root.shape.dimensions
    tilings = all_of(sizes, TRANSACTION)
    bytes_read, share = tilings.access(kind, tile)
    order, steps = source.minor_to_major, {}
    for position, d in enumerate(order):
        steps[d] = math.prod(source.dimensions[k] for k in order[:position])
    for i, parameters in enumerate(zip(*(np.asarray(c).tolist() for c in tilings.columns), strict=True)):
        places = set()
        for at in product(*map(range, parameters)):
            index = [substitute(e, [constant(n) for n in at]).value for e in m.results]
            places.add(sum(n * steps[d] for d, n in enumerate(index)))
        first = min(places)
        row = next(n for n in range(1, len(places) + 1) if first + n not in places)
        width = kind.element_bytes
        assert int(np.broadcast_to(bytes_read, tilings.count)[i]) == len(places) * width
        transactions = -(-row * width // TRANSACTION)
        assert np.broadcast_to(share, tilings.count)[i] == row * width / (TRANSACTION * transactions)


# ------------------------------------------------------------ costs by enumeration

ROW = "  z = f32[] constant(0)\n  s = f32[16]{0} reduce(e, z), dimensions={1}, to_apply=add\n"
FUSIONS = {
    "element-wise": fusion("f32[16,24]{1,0}", "  ROOT r = f32[16,24]{1,0} add(p0, p0)", "f32[16,24]{1,0}"),
    "across": fusion(
        "f32[16,16]{1,0}",
        "  t = f32[16,16]{1,0} transpose(p0), dimensions={1,0}\n  ROOT r = f32[16,16]{1,0} add(p0, t)",
        "f32[16,16]{1,0}",
    ),
    "across, evaluated": fusion(
        "f32[16,16]{1,0}",
        "  e = f32[16,16]{1,0} exponential(p0)\n"
        "  t = f32[16,16]{1,0} transpose(e), dimensions={1,0}\n  ROOT r = f32[16,16]{1,0} add(e, t)",
        "f32[16,16]{1,0}",
    ),
    "two slices": fusion(
        "f32[8,24]{1,0}",
        "  e = f32[16,24]{1,0} exponential(p0)\n"
        "  s = f32[8,24]{1,0} slice(e), slice={[0:8], [0:24]}\n"
        "  t = f32[8,24]{1,0} slice(e), slice={[8:16], [0:24]}\n"
        "  ROOT r = f32[8,24]{1,0} multiply(s, t)",
        "f32[16,24]{1,0}",
    ),
    "one slice twice": fusion(
        "f32[8,24]{1,0}",
        "  s = f32[8,24]{1,0} slice(p0), slice={[4:12], [0:24]}\n"
        "  t = f32[8,24]{1,0} slice(p0), slice={[4:12], [0:24]}\n"
        "  ROOT r = f32[8,24]{1,0} multiply(s, t)",
        "f32[16,24]{1,0}",
    ),
    "softmax": fusion(
        "f32[16,24]{1,0}",
        "  e = f32[16,24]{1,0} exponential(p0)\n"
        + ROW
        + "  b = f32[16,24]{1,0} broadcast(s), dimensions={0}\n"
        "  ROOT r = f32[16,24]{1,0} divide(e, b)",
        "f32[16,24]{1,0}",
    ),
    "rows": fusion(
        "f32[16]{0}",
        "  e = f32[16,24]{1,0} negate(p0)\n" + ROW + "  ROOT r = f32[16]{0} negate(s)",
        "f32[16,24]{1,0}",
    ),
    "two arrays": fusion(
        "bf16[16,24]{1,0}",
        "  c = bf16[16,24]{1,0} convert(p0)\n  b = bf16[16,24]{1,0} broadcast(p1), dimensions={1}\n"
        "  i = bf16[16,24]{1,0} iota(), iota_dimension=1\n  m = bf16[16,24]{1,0} multiply(c, b)\n"
        "  ROOT r = bf16[16,24]{1,0} add(m, i)",
        "f32[16,24]{1,0}",
        "bf16[24]{0}",
    ),
}


def analysis_of(root: Instruction) -> Analysis:
    return Analysis(view_of(OpKinds(H100, RELEASE), root), False)


def costs_of(analysis: Analysis, device: DeviceDescription = H100) -> tuple[TilingSet, TilingCosts]:
    tilings = valid_tilings(analysis, device, all_of(analysis.sizes, TRANSACTION))
    return tilings, tiling_costs(analysis, tilings, KernelTimes(device, RELEASE))


def parameters_of(tilings: TilingSet) -> list[tuple[int, ...]]:
    columns = [np.broadcast_to(np.asarray(c), tilings.count).tolist() for c in tilings.columns]
    return list(zip(*columns, strict=True))


def at(exprs: tuple[object, ...], values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(substitute(e, [constant(n) for n in values]).value for e in exprs)  # type: ignore[arg-type]


def starts(sizes: list[int], tile: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The first index of each block, in the order of the blocks."""
    return [
        tuple(k * t for k, t in zip(n, tile, strict=True))
        for n in product(*(range(-(-s // t)) for s, t in zip(sizes, tile, strict=True)))
    ]


Tile = tuple[object, ...]


def tile_of(node: TiledNode, tile: tuple[int, ...], blocks: list[tuple[int, ...]]) -> Tile:
    """Equal for nodes that hold the same tile in every block."""
    limits = tuple(min(t, n) for t, n in zip(tile, node.tile.limits, strict=True))
    own: Tile = (node.op, at(node.tile.sizes, tile), at(node.tile.strides, limits))
    if node.operands:
        return (*own, *(tile_of(o, tile, blocks) for o in node.operands))
    symbols = (0,) * len(node.map.symbols)
    return (*own, tuple(at(node.map.results, (*b, *symbols)) for b in blocks))


@pytest.mark.parametrize("name", FUSIONS)
def test_equal_tiles_are_read_and_computed_once(name: str) -> None:
    analysis = analysis_of(FUSIONS[name])
    view = analysis.view
    tilings, costs = costs_of(analysis)
    assert tilings.count > 4
    for i, tile in enumerate(parameters_of(tilings)):
        blocks = starts(analysis.sizes, tile)
        different = {tile_of(n, tile, blocks): n for n in analysis.nodes}
        flops = read = 0
        largest = 1
        for node in different.values():
            kind, sizes = view.kinds[node.op], at(node.tile.sizes, tile)
            padded = math.prod(int(power_of_two_ceil(n)) for n in sizes)
            largest = max(largest, padded)
            if view.inside[node.op]:
                flops += kind.flops * padded
            else:
                inside = math.prod(map(min, sizes, kind.dims))
                read += inside * kind.element_bytes
        assert int(costs.blocks[i]) == len(blocks)
        assert int(costs.flops[i]) == flops * len(blocks), tile
        assert int(costs.bytes_read[i]) == read * len(blocks), tile
        assert int(costs.num_warps[i]) == int(num_warps(largest))
    assert costs.bytes_written == view.kinds[0].byte_size


@pytest.mark.parametrize("name", FUSIONS)
def test_times_are_those_of_the_sums(name: str) -> None:
    analysis = analysis_of(FUSIONS[name])
    tilings, costs = costs_of(analysis)
    times = KernelTimes(H100, RELEASE)
    assert (
        costs.compute_time.tolist() == times.compute(costs.flops, costs.blocks, costs.num_warps * 32).tolist()
    )
    reads = np.zeros(tilings.count, dtype=np.int64)
    for op, (total, share) in costs.reads.items():
        size = analysis.view.kinds[op].byte_size
        reads += times.read(costs.blocks, size, np.broadcast_to(total, tilings.count), share)
    assert costs.read_time.tolist() == reads.tolist()
    whole = times.combine(costs.compute_time, costs.read_time + costs.write_time)
    assert costs.exec_time.tolist() == whole.tolist()
    for i, tile in enumerate(parameters_of(tilings)):
        single = TilingSet(analysis.sizes, [np.array([n]) for n in tile], TRANSACTION)
        alone = tiling_costs(analysis, single, times)
        assert int(alone.exec_time[0]) == int(costs.exec_time[i])
        rows = tile_reads(analysis.view, alone, times)
        assert sum(r.ticks for r in rows) == int(costs.read_time[i])
        assert sum(r.read for r in rows) == int(costs.bytes_read[i])


@pytest.mark.parametrize(("registers", "largest"), [(40_960, 16_384), (40_959, 8_192)])
def test_a_tile_takes_at_most_two_fifths_of_the_registers(registers: int, largest: int) -> None:
    device = replace(H100, registers_per_block_limit=registers)
    root = fusion("f32[2,16384]{1,0}", "  ROOT r = f32[2,16384]{1,0} negate(p0)", "f32[2,16384]{1,0}")
    tilings, costs = costs_of(analysis_of(root), device)
    sizes = map(math.prod, parameters_of(tilings))
    fit = {n for n, time in zip(sizes, costs.exec_time.tolist(), strict=True) if time < scalar.INFINITE}
    assert max(fit) == largest


def test_parts_of_a_concatenation_run_in_their_own_blocks() -> None:
    root = fusion(
        "f32[192,32]{1,0}",
        "  ROOT r = f32[192,32]{1,0} concatenate(p0, p1), dimensions={0}",
        "f32[128,32]{1,0}",
        "f32[64,32]{1,0}",
    )
    analysis = analysis_of(root)
    tilings, costs = costs_of(analysis)
    for i, (rows, columns) in enumerate(parameters_of(tilings)):
        assert 128 % rows == 0
        blocks = -(-192 // rows) * -(-32 // columns)
        read = [blocks * n // 192 * min(n, rows) * columns * 4 for n in (128, 64)]
        assert int(costs.blocks[i]) == blocks
        assert int(costs.bytes_read[i]) == sum(read)
        totals = [int(np.broadcast_to(total, tilings.count)[i]) for total, _ in costs.reads.values()]
        assert sorted(totals) == sorted(read)


def test_several_outputs_are_written_where_blocks_are_in_step() -> None:
    root = fusion(
        "(f32[16,24]{1,0}, f32[16]{0}, f32[384]{0})",
        "  e = f32[16,24]{1,0} exponential(p0)\n  n = f32[384]{0} bitcast(p0)\n"
        "  m = f32[16,24]{1,0} bitcast(n)\n" + ROW + "  b = f32[16,24]{1,0} broadcast(s), dimensions={0}\n"
        "  d = f32[16,24]{1,0} divide(e, b)\n  r = f32[16,24]{1,0} add(d, m)\n"
        "  ROOT t = (f32[16,24]{1,0}, f32[16]{0}, f32[384]{0}) tuple(r, s, n)",
        "f32[16,24]{1,0}",
    )
    analysis = analysis_of(root)
    view = analysis.view
    tilings, costs = costs_of(analysis)
    some = set()
    for i, tile in enumerate(parameters_of(tilings)):
        blocks = starts(analysis.sizes, tile)
        for output, chosen in zip(view.roots, costs.outputs, strict=True):
            good = []
            for position, node in enumerate(analysis.nodes):
                if node.op == output:
                    own = starts(list(view.kinds[output].dims), at(node.tile.sizes, tile))
                    symbols = (0,) * len(node.map.symbols)
                    if own == [at(node.map.results, (*b, *symbols)) for b in blocks]:
                        good.append(position)
            assert int(chosen[i]) in (good or [NO_TILE])
            some.add((output, bool(good)))
        whole = all(int(chosen[i]) != NO_TILE for chosen in costs.outputs)
        assert (int(costs.exec_time[i]) < scalar.INFINITE) is whole
    assert {good for output, good in some if output} == {True, False}
    assert costs.bytes_written == (16 * 24 + 16 + 384) * 4


# ------------------------------------------------------------ what the emitter takes


def tiles(result: str, body: str, *operands: str) -> list[tuple[int, ...]]:
    analysis = analysis_of(fusion(result, body, *operands))
    return parameters_of(valid_tilings(analysis, H100, all_of(analysis.sizes, TRANSACTION)))


def test_an_output_tile_is_a_power_of_two_or_the_whole() -> None:
    plain = tiles("f32[24]{0}", "  ROOT r = f32[24]{0} negate(p0)", "f32[24]{0}")
    assert plain == [(1,), (2,), (4,), (8,), (16,), (24,)]


def test_a_tensor_has_at_most_a_million_elements() -> None:
    big = tiles("f32[2,1048576]{1,0}", "  ROOT r = f32[2,1048576]{1,0} negate(p0)", "f32[2,1048576]{1,0}")
    assert (1, 1_048_576) in big
    assert (2, 524_288) in big
    assert (2, 1_048_576) not in big
    rows = tiles(
        "f32[2]{0}",
        "  z = f32[] constant(0)\n  ROOT r = f32[2]{0} reduce(p0, z), dimensions={1}, to_apply=add",
        "f32[2,1048576]{1,0}",
    )
    assert rows == [(1,)]


def test_a_reshape_splits_tiles_of_rounded_size() -> None:
    """A block of 24 elements, rounded up to 32, is no whole number of rows of 12."""
    found = tiles("f32[48]{0}", "  ROOT r = f32[48]{0} bitcast(p0)", "f32[4,12]{1,0}")
    assert found == [(1,), (2,), (4,)]
    even = tiles("f32[64]{0}", "  ROOT r = f32[64]{0} bitcast(p0)", "f32[4,16]{1,0}")
    assert even == [(1,), (2,), (4,), (8,), (16,), (32,), (64,)]


def test_sides_of_a_product_are_at_most_256() -> None:
    found = tiles(
        "f32[512,512]{1,0}",
        "  ROOT r = f32[512,512]{1,0} dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[512,512]{1,0}",
        "f32[512,512]{1,0}",
    )
    assert found == list(product([1 << k for k in range(9)], repeat=3))


def test_a_root_of_several_arrays_is_refused() -> None:
    with pytest.raises(NotTiled) as error:
        analysis_of(
            fusion(
                "(f32[4]{0}, f32[4]{0})",
                "  z = f32[] constant(0)\n"
                "  ROOT r = (f32[4]{0}, f32[4]{0}) reduce(p0, p0, z, z), dimensions={1}, to_apply=add",
                "f32[4,8]{1,0}",
            )
        )
    assert " has non-array shape: (f32[4]{0}, f32[4]{0})" in error.value.parts


# ------------------------------------------------------------ dots by hand

SIMPLE = replace(
    H100,
    core_count=10,
    clock_rate_ghz=1.0,
    fpus_per_core=100,
    matrix_units=(("bf16", 2.0, 4, 256),),
    memory_bandwidth=1000 << 30,
    compute_capability=(12, 0),
    threads_per_core_limit=2048,
    threads_per_warp=32,
    shared_memory_per_core=64 << 10,
    max_blocks_per_multiprocessor=0,
)
"""2,000 FLOP/ns, and 40,960 for bf16."""


def test_rates_of_matrix_units() -> None:
    assert peak_matrix_ops(SIMPLE, "f32") == 2 * 10 * 100
    assert peak_matrix_ops(SIMPLE, "bf16") == 2 * 2 * 256 * 4 * 10


@pytest.mark.parametrize(
    ("major", "rows", "factor"),
    [
        (12, 1, 1.0),
        (10, 127, 0.5),
        (10, 128, 1.0),
        (9, 63, 0.63),
        (9, 64, 1.0),
        (8, 31, 0.5),
        (8, 32, 1.0),
        (7, 1, 1.0),
    ],
)
def test_few_rows_miss_the_fast_instructions(major: int, rows: int, factor: float) -> None:
    device = replace(SIMPLE, compute_capability=(major, 0))
    found = dot_time(Dot(1, 2048, 2048, 1024, "f32", "f32", "f32"), (rows, 64), 32, 4, 1, device)
    assert found is not None
    blocks = -(-2048 // rows) * 32
    flops = 2 * rows * 64 * 1024 * -(-blocks // 10) * 10
    assert found.compute == pytest.approx(4 * flops / (2000 * factor), rel=1e-6)


def whole(dot: Dot, tile: tuple[int, ...], k: int, warps: int, stages: int, **device: int) -> DotTime:
    found = dot_time(dot, tile, k, warps, stages, replace(SIMPLE, **device))
    assert found is not None
    return found


LARGE = 1 << 30
SHARE = 0.93248850
"""The share of the bandwidth that a transfer of a GiB reaches."""


@pytest.mark.parametrize("batch", [1, 3])
def test_a_serial_loop_adds_up(batch: int) -> None:
    """Of one stage: read, compute, write and 1,300 ns for each step, for each wave of blocks."""
    m, n, k = 4096, 4096, 16384
    found = whole(Dot(batch, m, n, k, "f32", "f32", "f32"), (64, 128), 64, 4, 1)
    blocks = batch * 64 * 32
    assert found.compute == pytest.approx(4 * 2 * 64 * 128 * k * -(-blocks // 10) * 10 / 2000, rel=1e-6)
    # A block takes 64 * (64 + 128) * 4 = 49,152 of 65,536 bytes: one on each core.
    waves = -(-blocks // 10)
    read, written = batch * (m * k + k * n) * 4, batch * m * n * 4
    second = 4e9 / (SHARE * 1000 * 2**30)
    one = (found.compute // waves) + read * second / waves + written * second / waves + 256 * 1300 * 4
    assert read + written >= LARGE / 2
    if read + written >= LARGE:
        assert found.total == pytest.approx(waves * one, rel=1e-4)
    else:
        assert found.total == pytest.approx(waves * one, rel=1e-2)


@pytest.mark.parametrize(
    ("warps", "k", "limit", "resident"),
    [
        (4, 64, 0, 1),
        (4, 16, 0, 5),
        (16, 16, 0, 4),
        (32, 16, 0, 2),
        (64, 16, 0, 1),
        (4, 8, 0, 10),
        (4, 8, 3, 3),
        (4, 128, 0, 1),
    ],
)
def test_blocks_share_a_core(warps: int, k: int, limit: int, resident: int) -> None:
    """12,288 bytes for 16 of the summed elements; 2,048 threads to a core."""
    dot = Dot(1, 4096, 4096, 16384, "f32", "f32", "f32")
    found = whole(dot, (64, 128), k, warps, 1, max_blocks_per_multiprocessor=limit)
    waves, steps = -(-2048 // (10 * resident)), 16384 // k
    read, written = (4096 * 16384 * 2 * 4), 4096 * 4096 * 4
    second = 4e9 / (0.92 * 1000 * 2**30)
    one = found.compute / waves + (read + written) * second / waves + steps * 1300 * 4
    assert found.total == pytest.approx(waves * one, rel=2e-2)


def test_stages_read_ahead() -> None:
    """With three stages the longer of reading and computing remains, and both ends of the pipeline."""
    m, n, k = 4096, 4096, 16384
    dot = Dot(1, m, n, k, "bf16", "bf16", "f32")
    staged = whole(dot, (64, 128), 32, 4, 3)
    # 32 * (64 + 128) * 2 = 12,288 bytes a stage: 36,864 of 65,536.
    waves = -(-2048 // 10)
    steps = 512
    compute_step = staged.compute // waves // steps
    read, written = (m * k + k * n) * 2, m * n * 4
    second = 4e9 / (0.9 * 1000 * 2**30)
    read_step, write = read * second / waves / steps, written * second / waves
    delayed = read_step + 1300 * 4
    step = max(read_step, compute_step, max(delayed, compute_step) / 2)
    one = 2 * delayed + (steps - 2) * step + 2 * compute_step + write
    assert staged.total == pytest.approx(waves * one, rel=1e-2)


def test_the_second_cache_bounds_a_product() -> None:
    """All blocks together read rows and columns through it; 400 ns for each step."""
    dot = Dot(1, 64, 4096, 64, "f32", "f32", "f32")
    found = whole(dot, (1, 1), 64, 1, 1, threads_per_core_limit=1 << 20, shared_memory_per_core=1 << 28)
    blocks = 64 * 4096
    l2 = blocks * 2 * 64 * 4 / (6.65e12 * 1000 / 3352.32) + 400e-9
    assert found.total == pytest.approx(4e9 * l2, rel=1e-6)


@pytest.mark.parametrize(
    ("size", "share"),
    [
        (4096, 0.00042359),
        (8192, 0.00042359),
        (12288, (0.00042359 + 0.00090385) / 2),
        (16384, 0.00090385),
        (1 << 29, 0.88562244),
        (3 << 28, 0.88562244 + (0.93248850 - 0.88562244) / 2),
        (1 << 30, 0.93248850),
        (1 << 31, 0.93248850),
    ],
)
def test_small_transfers_reach_little_of_the_bandwidth(size: int, share: float) -> None:
    """A product of one column over one summed element, of `size` bytes in all."""
    rows = size // 8 - 1
    dot = Dot(1, rows, 1, 1, "f32", "f32", "f32")
    found = whole(dot, (rows, 1), 1, 4, 1)
    moved = (rows * 2 + 1) * 4
    assert abs(moved - size) <= 4
    time = 4e9 * moved / (share * 1000 * 2**30)
    latency = 1300 * 4
    assert found.total - latency - found.compute == pytest.approx(time, rel=3e-3)


def test_what_no_time_is_known_of() -> None:
    dot = Dot(1, 64, 64, 64, "f32", "f32", "f32")
    assert dot_time(dot, (64,), 32, 4, 1, SIMPLE) is None
    assert dot_time(dot, (64, 64), 0, 4, 1, SIMPLE) is None
    assert dot_time(dot, (64, 64), 1, 4, 1, SIMPLE) is not None
    assert dot_of(((0,), (1,), (2,), (0,)), (3, 8, 4), (4, 3, 5), ("f32", "f32", "f32")) == Dot(
        3, 8, 5, 4, "f32", "f32", "f32"
    )


@pytest.mark.parametrize(
    ("line", "operands", "flops"),
    [
        ("f32[99,64] concatenate(p0, p1), dimensions={0}", ("f32[33,64]", "f32[66,64]"), 6),
        ("f32[64,99] concatenate(p0, p1), dimensions={1}", ("f32[64,33]", "f32[64,66]"), 400),
        ("f32[64,98] concatenate(p0, p1), dimensions={1}", ("f32[64,32]", "f32[64,66]"), 6),
        (
            "f32[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            ("f32[4,7]", "f32[7,5]"),
            14,
        ),
    ],
)
def test_work_for_an_element(line: str, operands: tuple[str, ...], flops: int) -> None:
    assert OpKinds(H100, RELEASE).inside(instruction(line, *operands)).flops == flops
