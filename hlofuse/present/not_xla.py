"""The words that say a replay is not XLA's."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.present.escape import printable


def not_xla(packages: Sequence[str]) -> str:
    """`Not XLA's behaviour: …`, for the top of a report; empty for a replay that is XLA's."""
    if not packages:
        return ""
    rules = "the rules of " + ", ".join(map(printable, packages))
    return f"Not XLA's behaviour: {rules} took part."
