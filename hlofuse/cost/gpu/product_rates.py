"""Time of a matrix product by the rates that XLA measured of some devices
(`MatmulInterpolator`, `xla/service/gpu/model/matmul_interpolator.cc`)."""

import math
from functools import cache
from itertools import product
from pathlib import Path

from hlofuse.cost.gpu.device import DeviceDescription

Sizes = tuple[int, int, int, int]
"""Batch, rows, summed and columns of a product."""

_LARGEST: Sizes = (4, 4096, 4096, 4096)
_SMALLEST: Sizes = (1, 256, 256, 256)


def tabled_product_us(device: DeviceDescription, sizes: Sizes, lhs: str, rhs: str) -> float | None:
    """Microseconds, the launch not included; None where XLA did not measure the device or the types.

    The rate is the mean of those at the measured corners around the product, which weigh the less the
    farther off they are. Below 256 and above 4096 that of the border stands. XLA's table is of one type of
    result for each pair of operands, and its way with other types is an order of magnitude too slow: here
    the result may have any type.
    """
    rates = _rates(_profile(device), f"{lhs}x{rhs}")
    if not rates or not all(sizes):
        return None
    borders = zip(sizes, _SMALLEST, _LARGEST, strict=True)
    ends = [{min(max(p, low), high) for p in _powers_around(n)} for n, low, high in borders]
    weighted = weights = 0.0
    for corner in product(*ends):
        weight = 1 / (1 + math.dist(corner, sizes) ** 2)
        weighted += weight * rates[corner]
        weights += weight
    return 2 * math.prod(sizes) / (weighted / weights) / 1e3


def _profile(device: DeviceDescription) -> str:
    """One table for a compute capability, except Blackwell's (`GetDeviceSpecificProfileName`)."""
    return "sm_100_B200" if device.is_blackwell and "B200" in device.name.split() else device.op_profile


def _powers_around(n: int) -> tuple[int, int]:
    """The powers of two below and above, or the number itself twice if it is one."""
    above = 1 << (n - 1).bit_length()
    return (above if above == n else above // 2), above


@cache
def _rates(profile: str, operands: str) -> dict[tuple[int, ...], int]:
    """GFLOP/s by the sizes that were measured."""
    text = Path(__file__).with_name("product_rates.csv").read_text()
    found: dict[tuple[int, ...], int] = {}
    for line in text.splitlines():
        if line.startswith(f"{profile},{operands},"):
            b, m, k, *rates = map(int, line.split(",")[2:])
            found |= {(b, m, k, 256 << place): rate for place, rate in enumerate(rates)}
    return found
