"""Clock cycles of element-wise operations (`xla/service/gpu/model/hlo_op_profiles.cc`)."""

import tomllib
from functools import cache
from pathlib import Path

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.releases import Release

DEFAULT_FLOPS = 3
"""What an operation missing in the table takes (`GetFlopsPerElementwiseOpElement`)."""
_DEFAULT_PROFILE = "sm_86"


@cache
def _table(name: str) -> dict[str, dict[str, int]] | None:
    """One table of the file, None where it has none: to read all takes as long as a small replay."""
    text = Path(__file__).with_name("op_profiles.toml").read_text()
    _, found, rest = text.partition(f"\n[{name}]\n")
    return tomllib.loads(rest.partition("\n[")[0]) if found else None


def op_profile(device: DeviceDescription, release: Release) -> dict[str, dict[str, int]]:
    """Cycles by opcode and element type; a device without a table of its own has that of sm_86."""
    name = device.op_profile
    newer = {"sm_100": release.has_profile_of_b200, "sm_103": release.has_profile_of_b300}
    table = _table(name) if newer.get(name, True) else None
    if table is None:
        table = _table(_DEFAULT_PROFILE)
    assert table is not None
    return table
