"""The users of what a loop's body takes out of its parameter.

What a scan does is a function, `eval_jaxpr`, that the body of its loop calls. CallInliner
(`xla/service/call_inliner.cc`) put the clones behind the call, operands first, and the last of them took the
place of the call.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.holes import without
from hlofuse.pipelines.widened import served_by

_BODY, _FUNCTION = "/body/", "eval_jaxpr"
_MERGED = ".clone.clone"


def is_read_in_scan(element: Instruction) -> bool:
    """Is it an element of the parameter of a scan's body?"""
    if element.opcode != "get-tuple-element" or element.operands[0].opcode != "parameter":
        return False
    return any(map(_is_of_function, element.users))


def in_order_of_scan(element: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such an element, given in the order of the text."""
    clones = [u for u in users if _is_of_function(u)]
    call = clones[0]
    listed: list[Instruction | None] = [
        None if u is call else u for u in users if u is call or u not in clones
    ]
    left = [u for u in without([*listed, *clones], [None]) if u is not None]
    if element.computation is not None and _MERGED in element.computation.name:
        # WhileLoopSimplifier merged counters: a tuple of all elements was the first user, until it went
        # (`TryMergeInductionVariables`, `xla/service/while_loop_simplifier.cc`).
        left = [*left[-1:], *left[:-1]]
    return left


def _is_of_function(user: Instruction) -> bool:
    return (served_by(user).op_name or "").rpartition(_BODY)[2].startswith(_FUNCTION)
