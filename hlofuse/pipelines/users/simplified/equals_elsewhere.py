"""What reads a value that is written in several parts of a program, where only names tell of those parts.

HloCSE (`xla/service/hlo_cse.cc`) gives the first of equal values the users of the others, behind its own. A
text of an older release, or without places in the source, has the scopes that the framework puts in names.
"""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import stack_frame

_DERIVED = re.compile(r"jvp\(|transpose\(|\)")


def written_elsewhere(producer: Instruction, moved: list[Instruction]) -> list[Instruction]:
    """Those of the users that ReshapeMover `moved` which had another value, of another scope, equal to this.

    None if nothing tells, or none is of the scope of `producer`: it is computed for others then, as what a
    call results in.
    """
    if outermost_call(producer):
        return []
    scope, slash, _ = _as_written(producer).rpartition("/")
    if not slash or stack_frame(producer) or any(map(stack_frame, moved)):
        return []
    elsewhere = [u for u in moved if u.op_name and not _as_written(u).startswith(scope + slash)]
    return elsewhere if len(elsewhere) < len(moved) else []


def _as_written(x: Instruction) -> str:
    """Its name, whether it is of the derivative or not."""
    return _DERIVED.sub("", x.op_name or "")
