"""What is said of loops, whose kernels are counted once."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.analysis.loops import Loop
from hlofuse.format.escape import printable
from hlofuse.format.units import plural


def times_text(often: int) -> str:
    """`, 100 times`; empty of what runs once."""
    return f", {often:,} times" if often > 1 else ""


def loops_line(loops: Sequence[Loop], most: int = 2) -> str:
    """`8 kernels are in a loop and counted once: while.3 runs 100 times`."""
    turns = [
        f"{printable(p.name)} runs {f'{p.trips:,} times' if p.trips is not None else 'as often as it takes'}"
        for p in loops[:most]
    ]
    more = f" and {plural(len(loops) - most, 'loop')} more" if len(loops) > most else ""
    count = sum(p.kernels for p in loops)
    where = "a loop" if len(loops) == 1 else "loops"
    are = "is" if count == 1 else "are"
    return f"{plural(count, 'kernel')} {are} in {where} and counted once: {', '.join(turns)}{more}"
