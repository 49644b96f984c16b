"""The users of what a convolution of cuDNN gives, where layout normalization made it anew.

It put a tuple behind the new library call, of which the old element was then taken
(`UpdateLayoutForCudnnConvolution`, `xla/service/gpu/conv_layout_normalization.cc`). AlgebraicSimplifier gave
the users of that element to the new one, behind the tuple. The tuple went, and the last user took its place.
"""

from __future__ import annotations

from collections import Counter

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, number_in_name
from hlofuse.pipelines.users.common.holes import last_in_front

_RESULT = 0


def results_of_normalized(computation: Computation) -> frozenset[Instruction]:
    """The results of convolutions that layout normalization made anew.

    The rewriter numbered its calls from 0 on; a call that is made anew gets the next number.
    """
    calls = [x for x in computation if is_library_convolution(x)]
    if not calls or computation.module is None:
        return frozenset()
    outside = (c for c in computation.module.computations if c.fusion is None)
    count = Counter(name_before_renaming(x).root for c in outside for x in c if is_library_convolution(x))
    anew = [x for x in calls if number_in_name(x) >= count[name_before_renaming(x).root]]
    return frozenset(u for x in anew for u in x.users if _is_result(u))


def users_of_normalized(users: list[Instruction]) -> list[Instruction]:
    """The users of such a result: the tuple had been the first.

    Where all are bitcasts one had been the only user, and the others, made of what read it, came later.
    """
    if all(u.opcode == "bitcast" for u in users):
        return users
    return last_in_front(users)


def _is_result(x: Instruction) -> bool:
    return x.opcode == "get-tuple-element" and x.tuple_index == _RESULT
