"""Numbers that indices are compared with and counted from the end by, once for each gather that reads them.

The framework writes comparison, sum and select for every dimension of the indices, wherever they are used:
what gathers share was computed again for each. All of them read the one broadcast of the number that their
function has, until HloCSE (`xla/service/hlo_cse.cc`) made them one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import scope
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.duplicates.normalized_indices import sum_of_index


class Gone(NamedTuple):
    """What was equal to something that is kept, and is no user any more."""

    like: Instruction
    ahead_of: int
    """The id of what was made next."""
    met: int
    """When CSE's walk came to what read it."""


def normalized_again(user: Instruction, literal: Instruction, uses: Uses) -> list[Gone]:
    """Those equal to a `user` of the `literal` that are gone: all but the first."""
    selected = _selected_by(user, literal)
    if selected is None:
        return []
    read: list[Gone] = []
    for spread in selected.users:
        joined = spread.users if spread.opcode == "bitcast" else ()
        for indices in {x: None for x in joined if x.opcode == "concatenate"}:
            if scope(indices) == scope(user) and _is_read_by_gather(indices):
                read.append(Gone(user, _made_next(indices, spread, user, literal), uses[spread, indices]))
    return sorted(read, key=lambda gone: gone.ahead_of)[1:]


def with_merged_gone(
    functions: list[list[Instruction]], met: Mapping[Instruction, int], gone: Mapping[Instruction, list[Gone]]
) -> list[Instruction]:
    """The users of a number that `functions` had each in turn, less those `gone` that equal them.

    HloCSE appends those of a function when its walk comes to the first of them, and puts the last user in the
    place of whatever goes, when it comes to that.
    """
    listed: list[Instruction | Gone] = []
    left: list[Gone] = []
    for users in functions:
        start = min(met[u] for u in users)
        ahead = sorted((x for x in left if x.met < start), key=_when_met)
        listed = without(listed, ahead)
        own = [x for u in users for x in gone[u]]
        left = [*(x for x in left if x.met >= start), *own]
        function: list[Instruction | Gone] = [*users]
        for x in own:
            behind = (k for k, u in enumerate(function) if _made(u) >= x.ahead_of)
            function.insert(next(behind, len(function)), x)
        listed += function
    left.sort(key=_when_met)
    return [u for u in without(listed, left) if isinstance(u, Instruction)]


def _made(x: Instruction | Gone) -> int:
    return x.ahead_of if isinstance(x, Gone) else x.id


def _when_met(x: Gone) -> int:
    return x.met


def _selected_by(user: Instruction, literal: Instruction) -> Instruction | None:
    """The select of an index for which `user` compares it with the `literal` or adds that."""
    if user.opcode not in {"compare", "add"} or len(user.operands) != 2 or user.operands[1] is not literal:
        return None
    index = user.operands[0]
    for selected in user.users:
        sign = selected.operands[0]
        moved = sum_of_index(selected, sign, index)
        is_normalized = moved is not index and sign.opcode == "compare" and sign.operands[0] is index
        if is_normalized and (user is sign or user is moved):
            return selected
    return None


def _is_read_by_gather(indices: Instruction) -> bool:
    readers = (v for u in indices.users for v in (u.users if u.opcode == "bitcast" else [u]))
    return any(v.opcode == "gather" and indices.id < v.id for v in readers)


def _made_next(indices: Instruction, spread: Instruction, user: Instruction, literal: Instruction) -> int:
    """The id of what was made behind one like `user` that a dimension of the `indices` had."""
    behind = indices.operands[indices.operands.index(spread) + 1 :]
    made = [indices.id]
    first = min((u.id for u in spread.users if u.opcode == "concatenate"), default=0)
    for other in behind:
        select = other.operands[0] if other.opcode == "bitcast" else other
        made += [
            u.id
            for u in (select.operands[:2] if select.opcode == "select" else ())
            if u.opcode == user.opcode and literal in u.operands and u.id > first
        ]
    return min(made)
