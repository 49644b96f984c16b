"""Time of a matrix product by the rates that XLA measured on some devices
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
    """Microseconds without the launch; None where XLA did not measure the device or the types.

    The rate is the mean of the measured corners around the product, weighted by distance. Sizes are
    clamped to 256–4096. XLA's table has one result type for each pair of operands, and its treatment of
    other types is an order of magnitude too slow: here the result may have any type.
    """
    rates = _rates(rate_profile(device), f"{lhs}x{rhs}")
    if not rates or min(sizes) <= 0:
        return None
    around = [(1 << n.bit_length() - 1, 1 << (n - 1).bit_length()) for n in sizes]
    borders = zip(around, _SMALLEST, _LARGEST, strict=True)
    corners = product(*({min(max(n, low), high) for n in powers} for powers, low, high in borders))
    weights = {corner: 1 / (1 + math.dist(corner, sizes) ** 2) for corner in corners}
    weighted = math.fsum(rates[corner] * weight for corner, weight in weights.items())
    return 2 * math.prod(sizes) * math.fsum(weights.values()) / weighted / 1e3


def rate_profile(device: DeviceDescription) -> str:
    """The name of the device's measurements (`GetDeviceSpecificProfileName`)."""
    is_b200 = device.is_blackwell and "B200" in device.name.split()
    return "sm_100_B200" if is_b200 else device.op_profile


@cache
def _rates(profile: str, operands: str) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for line in Path(__file__).with_name("product_rates.csv").read_text().splitlines():
        if line.startswith(f"{profile},{operands},"):
            b, m, k, *rates = map(int, line.split(",")[2:])
            found |= {(b, m, k, 256 << place): rate for place, rate in enumerate(rates)}
    return found
