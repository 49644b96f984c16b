"""What is known of the JAX releases a capture is made with."""

from __future__ import annotations

import re

KNOWN = ("0.11.1", "0.12")
"""Releases that captures are tested with; the replay repeats the first."""


def doubt_about(version: str | None) -> str | None:
    """What is not assured of a capture made with this JAX; None for a known one."""
    if version is None:
        return (
            "which JAX compiled this is not known: whether its XLA decides as the one replayed is not assured"
        )
    if version == KNOWN[0] or version.startswith(KNOWN[0] + "."):
        return None
    known = " and ".join(KNOWN)
    if _numbers(version)[:2] == _numbers(KNOWN[1])[:2]:
        return (
            f"JAX {version} captures well, but the replay repeats XLA as in jaxlib {KNOWN[0]}:"
            " hlofuse verify shows where this one decides otherwise"
        )
    older = _numbers(version) < _numbers(KNOWN[0])
    what = "names of dumps and passes may be others" if older else "passes may have been added or renamed"
    return (
        f"JAX {version} is not among the tested releases ({known}): {what}, and its XLA may decide"
        f" otherwise than the one replayed (jaxlib {KNOWN[0]}); hlofuse verify shows where"
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])
