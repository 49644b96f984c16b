"""Values that a Python function computes in every call of it, which are equal: who read that of another call.

HloCSE (`xla/service/hlo_cse.cc`) keeps the one that its walk meets first, and appends the users of the
others. What a function computes it reads there, or what it calls does: what is written in the same place, in
a call of the function that is not the one the value is of, read that of its own call. What callers give to
several calls parts from the readers in all calls alike, and nothing is told of it.
"""

from __future__ import annotations

from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.calls_in_names import FUNCTIONS_OF_SCAN, is_in_branch, scope
from hlofuse.pipelines.names import stack_frame

Call: TypeAlias = "tuple[int, int]"
"""One call of a function: where it was called, and the function."""
Place: TypeAlias = "frozenset[tuple[str, int]]"


def users_in_other_calls(x: Instruction, users: list[Instruction]) -> set[Instruction]:
    """Those of the `users` that must have read another like `x`; none where nothing tells.

    What XLA was given as a call or a branch is another matter: what is in it is cloned with whoever reads it.
    """
    if x.computation is None or x.computation.module is None or _is_inlined(x):
        return set()
    module = x.computation.module
    own = set(_calls(module, stack_frame(x)))
    ways = {u: _way(module, stack_frame(u)) for u in users}
    depths = {u: sum(call in own for _, call in way) for u, way in ways.items()}
    within = dict[tuple[Place, ...], int]()
    for u, way in ways.items():
        parted = next((k for k, (_, call) in enumerate(way, 1) if call in own), None)
        if parted is not None:
            places = tuple(place for place, _ in way[:parted])
            within[places] = max(within.get(places, 0), depths[u])
    others = set[Call]()
    for u, way in ways.items():
        places = tuple(place for place, _ in way)
        ends = (k for k in range(1, len(way) + 1) if within.get(places[:k], 0) > depths[u])
        others.update(way[k - 1][1] for k in ends if way[k - 1][1] not in own)
    return {u for u, way in ways.items() if any(call in others for _, call in way)}


def _is_inlined(x: Instruction) -> bool:
    function = (scope(x) or "").rpartition("/")[2]
    return is_in_branch(x) or function not in ("", *FUNCTIONS_OF_SCAN)


def _way(module: Module, frame: int) -> list[tuple[Place, Call]]:
    """The places in the source from the innermost outwards, with the call that each is in."""
    tables = module.stack_frames
    found = []
    for k in tables.with_callers(frame):
        at = tables.frames.get(k, {})
        place = tables.locations.get(at.get("file_location_id", 0), {})
        call = at.get("parent_frame_id", 0), place.get("function_name_id", 0)
        found.append((frozenset(place.items()), call))
    return found


def _calls(module: Module, frame: int) -> list[Call]:
    return [call for _, call in _way(module, frame)]
