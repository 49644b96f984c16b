"""Clock cycles of element-wise operations (`xla/service/gpu/model/hlo_op_profiles.cc`)."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from hlofuse.analysis.release import JAXLIB_0_11_1, Release
from hlofuse.cost.gpu.device import DeviceDescription

DEFAULT_FLOPS = 3
"""What an operation missing in the table takes (`GetFlopsPerElementwiseOpElement`)."""
_DEFAULT_PROFILE = "sm_86"


@cache
def _tables() -> dict[str, dict[str, dict[str, int]]]:
    return tomllib.loads(Path(__file__).with_name("op_profiles.toml").read_text())


def op_profile(device: DeviceDescription, release: Release = JAXLIB_0_11_1) -> dict[str, dict[str, int]]:
    """Cycles by opcode and element type; a device without a table of its own has that of sm_86."""
    tables = _tables()
    if device.compute_capability > release.newest_op_profile:
        return tables[_DEFAULT_PROFILE]
    return tables.get(device.op_profile, tables[_DEFAULT_PROFILE])
