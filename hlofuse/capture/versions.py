"""What is known of the JAX releases a capture is made with."""

from __future__ import annotations

import re

SUPPORTED = ("0.11.1", "0.12")
"""Releases that captures are tested with; the replay repeats the first."""


FLAGS_OF_RELEASES = {"gpu": [{"flag": "--xla_gpu_autotune_level=0", "until": "0.10"}]}
"""XLA_FLAGS that releases before `until` need to compile for a device that is not there.

They stop at a gemm that a kernel of Triton is tuned for, ahead of fusion.
"""


def doubt_about(version: str | None) -> str | None:
    """What is not assured of a capture made with this JAX; None for a known one."""
    if version is None:
        return (
            "which JAX compiled this is not known: whether its XLA decides as the one replayed is not assured"
        )
    if version == SUPPORTED[0] or version.startswith(SUPPORTED[0] + "."):
        return None
    supported = " and ".join(SUPPORTED)
    if _numbers(version)[:2] == _numbers(SUPPORTED[1])[:2]:
        return (
            f"JAX {version} captures well, but the replay repeats XLA as in jaxlib {SUPPORTED[0]}:"
            " hlofuse verify shows where this one decides otherwise"
        )
    is_earlier = _numbers(version) < _numbers(SUPPORTED[0])
    what = (
        "names of dumps and passes may be others" if is_earlier else "passes may have been added or renamed"
    )
    return (
        f"JAX {version} is not among the tested releases ({supported}): {what}, and its XLA may decide"
        f" otherwise than the one replayed (jaxlib {SUPPORTED[0]}); hlofuse verify shows where"
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])
