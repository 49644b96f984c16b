"""Time of a collective by the rates that XLA measured between the GPUs of one host
(`CollectiveInterpolator`, `xla/service/gpu/model/collective_interpolator.cc`)."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.product_rates import rate_profile

GPUS_OF_A_HOST = 8
"""As `SolGPUCostModel` supposes of every device."""
_SMALLEST, _LARGEST = 10, 30  # powers of two of the sizes that the interpolation clamps to


def tabled_collective_us(
    device: DeviceDescription, opcode: str, size: int, groups: Sequence[Sequence[int]]
) -> float | None:
    """Microseconds of a collective of `size` bytes: the larger of what enters and leaves it.

    None where XLA did not measure the device or the kind, and between hosts. `groups` are the device numbers
    that take part, for a collective-permute its pairs. The rate is that of the nearest power of two, in bytes
    and in devices.
    """
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
    return below if size - (1 << below) < (2 << below) - size else below + (size > 1)


@cache
def _rates(profile: str) -> dict[tuple[str, str], list[int]]:
    """Kilobytes per second by opcode and pattern, for each size."""
    found = {}
    for line in Path(__file__).with_name("collective_rates.csv").read_text().splitlines():
        name, *key = line.split(",")[:3]
        if name == profile:
            found[key[0], key[1]] = [int(rate) for rate in line.split(",")[3:]]
    return found
