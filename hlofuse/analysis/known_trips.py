"""How often a loop runs, where XLA has found it out (`known_trip_count` of its backend configuration)."""

from __future__ import annotations

import re

from hlofuse.ir.graph import Instruction

_TRIPS = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d+)')


def known_trips(loop: Instruction) -> int | None:
    """None where the dump does not say."""
    found = _TRIPS.search(loop.attributes.raw("backend_config") or "")
    return int(found[1]) if found else None
