"""Values that the program computes again, of which the one made last was met first.

In the derivative of `logaddexp` the infinite results are replaced for either operand. HloCSE
(`xla/service/hlo_cse.cc`) keeps what its walk meets first. That was made for a reader of its own: who is
older than it, and reads it nonetheless, had another one, with a number of its own that is missing now.
Whatever that one read and is as young was there twice as well. Ids have to be XLA's.
"""

from __future__ import annotations

from collections import defaultdict

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming
from hlofuse.pipelines.users.common.numbers import Numbers
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.duplicates.repeated import (
    Place,
    Repeated,
    gaps_between,
    is_numbered,
    numbered_in,
)


def met_first_in(computation: Computation, uses: Uses, numbers: Numbers, passes: int) -> Repeated:
    """Those of a `computation`; `passes` is the first id that a pass gave."""
    made = numbered_in(computation, passes)
    gaps = gaps_between(made, numbers)
    found: Repeated = defaultdict(list)
    for x in made:
        root = name_before_renaming(x).root
        for reader in x.users:
            if reader.id > x.id or not is_numbered(reader, passes):
                continue
            if name_before_renaming(reader).root == root or not gaps[root].take(reader.id):
                continue
            place = Place(uses[x, reader], reader.id)
            for twin in _made_with(x, reader, passes):
                found[twin].append(place)
    return dict(found)


def _made_with(x: Instruction, reader: Instruction, passes: int) -> list[Instruction]:
    """`x` and of what it is computed whatever is younger than the `reader`."""
    found = [x]
    for y in found:
        younger = (o for o in y.operands if o.id > reader.id and is_numbered(o, passes))
        found += [o for o in dict.fromkeys(younger) if o not in found]
    return found
