"""Since when instructions are there: since the program, since calls were inlined, or since a pass made them.

The framework makes the root last. What calls bring in when they are inlined comes behind it, operands first,
and then what passes make. Ids have to be XLA's.
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.pipelines.constants import is_made_of_nothing
from hlofuse.pipelines.names import is_made_by_pass, is_of_program


def first_of_passes(computation: Computation) -> int:
    """The lowest id of an operation of the program that a pass made anew, outside of called functions.

    What is as young or younger was made by a pass, in a called function as well.
    """
    young = (x.id for x in computation if is_made_by_pass(x) and is_of_program(x) and not is_made_of_nothing(x))
    return min(young, default=computation.root.id + len(computation.instructions))
