"""Times of reads and writes, worked out by hand from the numbers of the device."""

from __future__ import annotations

import pytest

from hlofuse.account.figures import us
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.timing import Timing
from hlofuse.releases import AROUND_FUSION as RELEASE

H100 = load_device("h100_sxm")
TIMING = Timing(H100, RELEASE)
ALL = TIMING.saturating_blocks
L2 = H100.l2_cache_size
L1 = H100.l1_cache_size_per_core * H100.core_count
BANDWIDTH = H100.memory_bandwidth / 1e6
"""Bytes in a microsecond."""
UNCOALESCED = 4 / H100.dram_to_l2_transaction_bytes
"""The part of a transaction that is an element of 4 bytes."""


@pytest.mark.parametrize(
    ("size", "total", "element_bytes", "expected"),
    [
        # Each byte once.
        (2 * L2, 2 * L2, 0, 2 * L2 / BANDWIDTH),
        (2 * L2, L2, 0, L2 / BANDWIDTH),
        # Again and again: from memory, from the second cache, from the first.
        (L2, 3 * L2, 0, 3 * L2 / BANDWIDTH),
        (L2 - 1, 3 * L2, 0, L2 / BANDWIDTH + 2 * L2 / (BANDWIDTH * H100.l2_cache_speedup)),
        (L1, 3 * L1, 0, L1 / BANDWIDTH + 2 * L1 / (BANDWIDTH * H100.l2_cache_speedup)),
        (
            L1 - 1,
            3 * L1,
            0,
            L1 / BANDWIDTH + 2 * L1 / (BANDWIDTH * H100.l2_cache_speedup * H100.l1_cache_speedup),
        ),
        # Across the grain of memory a transaction brings one element, also again and again.
        (2 * L2, 2 * L2, 4, 2 * L2 / BANDWIDTH / UNCOALESCED),
        (2 * L2, 6 * L2, 4, 6 * L2 / BANDWIDTH / UNCOALESCED),
        (L2 - 1, 3 * L2, 4, L2 / BANDWIDTH / UNCOALESCED + 2 * L2 / (BANDWIDTH * H100.l2_cache_speedup)),
    ],
)
def test_reads(size: int, total: int, element_bytes: int, expected: float) -> None:
    assert us(TIMING.read(size, total, element_bytes, ALL)) == pytest.approx(expected, rel=1e-3)


def test_few_blocks_read_no_more_than_they_can_ask_for() -> None:
    one = H100.clock_rate_ghz * 1e3 * H100.bytes_per_clock_and_core
    assert us(TIMING.read(1 << 20, 1 << 20, 0, 1)) == pytest.approx((1 << 20) / one, rel=1e-3)
    assert us(TIMING.read(1 << 20, 1 << 20, 0, 8)) == pytest.approx((1 << 20) / (8 * one), rel=1e-3)
    # Of what is read again, too.
    assert us(TIMING.read(1 << 20, 1 << 21, 0, 1)) == pytest.approx((1 << 21) / one, rel=1e-3)


def test_writes_take_the_bandwidth_and_times_overlap_in_part() -> None:
    assert us(TIMING.write(1 << 28)) == pytest.approx((1 << 28) / BANDWIDTH, rel=1e-3)
    hidden = H100.memory_compute_parallelism
    assert TIMING.combine(1000, 100_000) == pytest.approx(101_000 - 1000 * hidden, abs=1)
    assert TIMING.combine(100_000, 1000) == TIMING.combine(1000, 100_000)


def test_units_that_a_launch_does_not_fill_do_not_compute() -> None:
    rate = 2 * H100.clock_rate_ghz * 1e3
    flops = 10**9
    whole = flops / (rate * H100.core_count * H100.fpus_per_core)
    assert us(TIMING.compute(flops, 10 * H100.core_count, 1024)) == pytest.approx(whole, rel=1e-3)
    assert us(TIMING.compute(flops, H100.core_count // 2, 1024)) == pytest.approx(2 * whole, rel=1e-3)
    half = H100.fpus_per_core // 2
    assert us(TIMING.compute(flops, H100.core_count, half)) == pytest.approx(2 * whole, rel=1e-3)
