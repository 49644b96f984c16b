"""What was inlined from the branches of a conditional that simplification made selects of.

ConditionalSimplifier (`TryRemoveConditional` of
`xla/hlo/transforms/simplifiers/conditional_simplifier.cc`) spreads the predicate and makes a select for each
result, then has CallInliner clone the branches behind these, the one for false first. It comes once around
behind AlgebraicSimplifier and ReshapeMover, and before they go on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_in_branch
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.older_names import is_clone
from hlofuse.pipelines.likely_ids.order_of_pass import in_order_of_pass
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming, operation

_BRANCH = re.compile(r"/branch_(\d+)")
_CONDITIONAL = "cond"
_OLDER: tuple[Maker, ...] = (Maker.INLINER, Maker.SIMPLIFIER)


def of_inlined_branches(
    computation: Computation, makers: Mapping[Instruction, Maker], named: frozenset[Instruction]
) -> list[Instruction]:
    """What ConditionalSimplifier put into a computation; what is `named` the framework had there.

    Of what is in no select the predicate had been known. Clones have been made since.
    """
    if is_clone(computation):
        return []
    older, of_framework = _OLDER, named
    if not computation.is_entry:  # nothing tells whether a number in there is the front end's
        older, of_framework = (Maker.FRONT_END, *_OLDER), frozenset()
    depth = _depth(computation)
    reach = {x for x in computation if _chooses(x)}
    selects = {x for x in reach if makers.get(x) == Maker.SIMPLIFIER and not _is_laid(x, makers)}
    found = dict.fromkeys(x for x in computation if x in selects)
    for x in reversed(computation.instructions):
        if reach.isdisjoint(x.users):
            continue
        inlined = is_in_branch(x) and len(_branches(x)) > depth
        if inlined or not is_told_of_program(x):
            reach.add(x)
        if inlined and makers.get(x) in older and x not in of_framework and not _is_laid(x, makers):
            found[x] = None
    if len(found) == len(selects):
        return []
    inside = (
        x
        for x in computation
        if is_broadcast_of_constant(x) and operation(x) == _CONDITIONAL
        if not found.keys().isdisjoint(x.users)
    )
    spread = (
        x
        for x in computation
        if x.opcode == "broadcast" and not x.op_name and x.users and selects.issuperset(x.users)
        if all(u.operands[0] is x for u in x.users)
    )
    return [*found, *inside, *spread]


def _is_laid(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    """Is it named after its opcode and reads what LayoutNormalization made? That made it anew, too."""
    return name_before_renaming(x).root == x.opcode and any(
        makers.get(o) == Maker.LAYOUT_NORMALIZATION and not is_broadcast_of_constant(o) for o in x.operands
    )


def in_order_of_branches(computation: Computation, members: list[Instruction]) -> list[Instruction]:
    """The members, given in the order of the text, conditional after conditional as they were written."""
    depth = _depth(computation)
    last = {_predicate(x): k for k, x in enumerate(members) if _chooses(x)}
    turn: dict[Instruction, tuple[int, int]] = {}
    """Which conditional it is of, and which branch of that, if any."""
    for x in reversed(computation.instructions):
        if _chooses(x) and _predicate(x) in last:
            turn[x] = (last[_predicate(x)], -1)
            continue
        read = [u for u in x.users if u in turn]
        if not read:
            continue
        conditional, branch = min(turn[u] for u in read)
        if x.opcode != "broadcast" or not all(_chooses(u) and u.operands[0] is x for u in read):
            branch = next(iter(_branches(x)[depth:]), max(branch, 0))
        turn[x] = (conditional, branch)
    groups: dict[tuple[int, int], list[Instruction]] = {}
    for x in members:
        groups.setdefault(turn.get(x, (len(members), 0)), []).append(x)
    return [x for key in sorted(groups) for x in in_order_of_pass(groups[key], [], frozenset())]


def _branches(x: Instruction) -> list[int]:
    return [int(number) for number in _BRANCH.findall(x.op_name or "")]


def _depth(computation: Computation) -> int:
    """How many branches it is in."""
    depth = 0
    caller = computation.first_caller
    while caller is not None:
        depth += caller.opcode == "conditional"
        outer = caller.computation
        caller = outer.first_caller if outer is not None else None
    return depth


def _chooses(x: Instruction) -> bool:
    """Is it one of the selects that a conditional became?"""
    return x.opcode == "select" and operation(x) == _CONDITIONAL and name_before_renaming(x).root == x.opcode


def _predicate(x: Instruction) -> Instruction:
    """What a select's mask is spread of."""
    mask = x.operands[0]
    while mask.opcode in {"bitcast", "broadcast"}:
        mask = mask.operands[0]
    return mask
