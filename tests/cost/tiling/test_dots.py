"""Dots inside generic Triton fusions. XLA makes none by itself, so the figures are worked out by hand."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.ticks import TICKS_PER_SECOND
from hlofuse.cost.tiling.constraints import Refusal, Tiling
from hlofuse.cost.tiling.dot_cost import (
    _loop_time,
    _memory_bandwidth,
    dot_of,
    dot_time,
    peak_matrix_ops,
)
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.ir.graph import Instruction
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE

SIZES = 'backend_config={"sizes":["32"]}'
PLAIN = ((), (), (1,), (0,))


def fusion(config: str = "") -> Instruction:
    text = """HloModule m
c {
  p = f32[512,256]{1,0} parameter(0)
  q = f32[256,128]{1,0} parameter(1)
  e = f32[512,256]{1,0} exponential(p)
  d = f32[512,128]{1,0} dot(e, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}, SIZES
  ROOT r = f32[512,128]{1,0} negate(d)
}
ENTRY e {
  p = f32[512,256]{1,0} parameter(0)
  q = f32[256,128]{1,0} parameter(1)
  ROOT f = f32[512,128]{1,0} fusion(p, q), kind=kCustom, calls=c CONFIG
}"""
    return parse_module(text.replace("SIZES", SIZES).replace("CONFIG", config)).entry.root


def test_a_dot_has_a_tiling_parameter_of_its_own() -> None:
    best = TilingModel(load_device("h100_sxm"), RELEASE).best_tiling(fusion())
    assert isinstance(best, Tiling)
    assert len(best.config.tile_sizes[0]) == 2
    assert all(size <= 256 for size in best.config.tile_sizes[0])
    assert best.estimate.bytes_written == 512 * 128 * 4


def test_the_dots_config_tells_the_tile_of_the_summed_dimension() -> None:
    config = (
        ', backend_config={"fusion_backend_config":{"kind":"__triton","block_level_fusion_config":'
        '{"num_warps":"4","output_tiles":[{"sizes":["64","64"]}]}}}'
    )
    cost = TilingModel(load_device("h100_sxm"), RELEASE).run_time(fusion(config))
    assert isinstance(cost, Tiling), str(cost) if isinstance(cost, Refusal) else ""
    assert (cost.estimate.launch.blocks, cost.estimate.launch.threads) == (16, 128)
    # Each block reads a row of tiles of the left operand and a column of those of the right one.
    assert cost.estimate.bytes_read == 16 * (64 * 256 + 256 * 64) * 4


def test_serial_loop_of_one_wave() -> None:
    device = load_device("h100_sxm")
    dot = dot_of(PLAIN, (512, 256), (256, 128), ("f32", "f32", "f32"))
    assert dot is not None
    time = dot_time(dot, (64, 64), 32, 4, 1, device)
    assert time is not None
    flops = 2 * 64 * 64 * 256 * device.core_count
    assert time.compute == round(flops / peak_matrix_ops(device, "f32") * 4)
    l2_bytes = 16 * (64 + 64) * 256 * 4
    bandwidth = 6.65e12 * device.memory_bandwidth / 2**30 / 3352.32
    l2_time = l2_bytes / bandwidth + 8 * 400e-9
    loop_latency = 8 * 1300 * 4
    assert time.total >= max(loop_latency + time.compute, int(l2_time * TICKS_PER_SECOND))


def test_small_tiles_miss_the_tensor_cores() -> None:
    device = load_device("h100_sxm")
    dot = dot_of(PLAIN, (4096, 4096), (4096, 4096), ("bf16", "bf16", "bf16"))
    assert dot is not None
    small, large = (dot_time(dot, (m, 128), 64, 8, 1, device) for m in (32, 64))
    assert small is not None
    assert large is not None
    assert small.compute == pytest.approx(large.compute / 0.63, rel=1e-6)


def test_what_the_model_leaves_out() -> None:
    types = ("f32", "f32", "f32")
    assert dot_of(((), (), (1, 2), (0, 1)), (8, 4, 4), (4, 4, 8), types) is None
    assert dot_of(((), (), (2,), (0,)), (8, 4, 4), (4, 8), types) is None
    assert dot_of(((), (), (1,), (0,)), (8, 4), (4, 8, 2), types) is None
    assert dot_of(((0,), (0,), (2,), (1,)), (3, 8, 4), (3, 4, 2), types) == (3, 8, 2, 4, *types)


def test_loops_wait_for_their_loads_where_they_have_one_stage_or_one_step() -> None:
    wait = 1300 * TICKS_PER_SECOND // 10**9
    assert _loop_time(1, 4, 400, 80, 7) == 80 + 7 + 400 + 4 * wait
    assert _loop_time(2, 1, 400, 80, 7) == 80 + 7 + 400 + wait
    # One load ahead; then the load of the next step takes longer than the arithmetic of one.
    assert _loop_time(2, 2, 400, 80, 7) == 2 * (40 + wait) + 200 + 7
    # Three loads ahead, a third of whose time is longer than the arithmetic; with no more steps none is left.
    assert _loop_time(4, 8, 800, 80, 7) == 3 * (10 + wait) + 5 * ((10 + wait) // 3) + 3 * 100 + 7
    assert _loop_time(4, 2, 400, 80, 7) == 2 * (40 + wait) + 2 * 200 + 7
    assert _loop_time(4, 4, 40000, 80, 7) == 3 * (20 + wait) + 10000 + 3 * 10000 + 7


@pytest.mark.parametrize(
    ("size", "share"),
    [
        (1, 0.00042359),
        (8 << 10, 0.00042359),
        (12 << 10, (0.00042359 + 0.00090385) / 2),
        (16 << 10, 0.00090385),
        (640 << 20, (3 * 0.88562244 + 0.93248850) / 4),
        (1 << 30, 0.93248850),
        (1 << 40, 0.93248850),
    ],
)
def test_a_transfer_reaches_a_share_of_the_bandwidth_by_its_size(size: int, share: float) -> None:
    device = load_device("h100_sxm")
    assert _memory_bandwidth(device, size) == pytest.approx(share * device.memory_bandwidth, rel=1e-6)
