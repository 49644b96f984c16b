"""Times of products and collectives by XLA's measured rates (`MatmulInterpolator`, `CollectiveInterpolator`,
`xla/service/gpu/model/matmul_interpolator.cc` and `collective_interpolator.cc`)."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

from .device import DeviceDescription

Sizes = tuple[int, int, int, int]  # Batch, rows, summed and columns of a product
_LARGEST_PRODUCT: Sizes = (4, 4096, 4096, 4096)
_SMALLEST_PRODUCT: Sizes = (1, 256, 256, 256)


def tabled_product_us(
    device: DeviceDescription,
    sizes: Sizes,
    lhs: str,
    rhs: str,
) -> float | None:
    """Microseconds without the launch; None where XLA did not measure the device or the types. The rate is
    the mean of the measured corners around the product, weighted by distance. Sizes are clamped to 256–4096.
    XLA's table has one result type for each pair of operands, and its treatment of other types is an order of
    magnitude too slow: here the result may have any type."""
    rates = _product_rates(rate_profile(device), f"{lhs}x{rhs}")
    if not rates or min(sizes) <= 0:
        return None
    around = [(1 << n.bit_length() - 1, 1 << (n - 1).bit_length()) for n in sizes]
    borders = zip(around, _SMALLEST_PRODUCT, _LARGEST_PRODUCT, strict=True)
    corners = product(*({min(max(n, low), high) for n in powers} for powers, low, high in borders))
    weights = {corner: 1 / (1 + math.dist(corner, sizes) ** 2) for corner in corners}
    weighted = math.fsum(rates[corner] * weight for corner, weight in weights.items())
    return 2 * math.prod(sizes) * math.fsum(weights.values()) / weighted / 1e3


def rate_profile(device: DeviceDescription) -> str:
    """The name of the device's measurements (`GetDeviceSpecificProfileName`)."""
    is_b200 = device.is_blackwell and "B200" in device.name.split()
    return "sm_100_B200" if is_b200 else device.op_profile


@cache
def _product_rates(profile: str, operands: str) -> dict[tuple[int, ...], int]:
    rows = (map(int, row) for row in _rows("product_rates.csv", profile, operands))
    return {(b, m, k, 256 << place): rate for b, m, k, *rates in rows for place, rate in enumerate(rates)}


def _rows(file: str, *first: str) -> list[list[str]]:
    """The further cells of the rows that begin with these."""
    lines = Path(__file__).with_name(file).read_text().splitlines()
    start = ",".join((*first, ""))
    return [line.removeprefix(start).split(",") for line in lines if line.startswith(start)]


GPUS_OF_A_HOST = 8  # As `SolGPUCostModel` supposes of every device
_SMALLEST, _LARGEST = 10, 30  # powers of two of the sizes that the interpolation clamps to


def tabled_collective_us(
    device: DeviceDescription, opcode: str, size: int, groups: Sequence[Sequence[int]]
) -> float | None:
    """Microseconds of a collective of `size` bytes: the larger of what enters and leaves it. None where XLA
    did not measure the device or the kind, and between hosts. `groups` are the device numbers that take part,
    for a collective-permute its pairs. The rate is that of the nearest powers of two."""
    if not size or not groups or any(len({d // GPUS_OF_A_HOST for d in group}) != 1 for group in groups):
        return None
    pattern = _permute_kind(groups) if opcode == "collective-permute" else f"{1 << _power(len(groups[0]))}"
    rates = _rates(rate_profile(device)).get((opcode, pattern))
    if rates is None:
        return None
    return size / rates[min(max(_power(size), _SMALLEST), _LARGEST) - _SMALLEST] * 1e3


def _permute_kind(pairs: Sequence[Sequence[int]]) -> str:
    """`GetCollectivePermuteCostModelType`, for the GPUs of one host."""
    edges = {tuple(pair) for pair in pairs}
    if {a for a, _ in edges}.isdisjoint(b for _, b in edges):
        return "one-way"
    return "mutual" if all((b, a) in edges for a, b in edges) else "two-way"


def _power(size: int) -> int:
    """The exponent of the nearest power of two, the larger of two that are as near."""
    below = (size - 1).bit_length() - 1 if size > 1 else 0
    return below if size - (1 << below) < (2 << below) - size else below + 1


@cache
def _rates(profile: str) -> dict[tuple[str, str], list[int]]:
    rows = _rows("collective_rates.csv", profile)
    return {(kind, pattern): [*map(int, rates)] for kind, pattern, *rates in rows}
