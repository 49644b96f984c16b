"""The users of what a loop's body takes out of its parameter, and of what is taken out of a loop's result.

What a scan does is a function, `eval_jaxpr`, that the body of its loop calls. CallInliner
(`xla/service/call_inliner.cc`) put the clones behind the call, operands first, and the last of them took the
place of the call.

WhileLoopSimplifier (`xla/service/while_loop_simplifier.cc`) merges counters that run alike
(`TryMergeInductionVariables`), which clones the body twice, and drops what nobody reads then
(`RemoveDeadTupleIndices`), which clones it again. The loop is given another tuple, and a tuple of its
elements as it had been is put behind it; merging counters does the same in the body. Once its elements have
found their users that goes, and the last user takes its place.
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import (
    FUNCTIONS_OF_SCAN,
    caller_of,
    is_named_around_loop,
    outermost_call,
)
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.common.visits import order_of_walk
from hlofuse.pipelines.users.duplicates.twins_in_body import with_twins_gone
from hlofuse.pipelines.users.floats.widened import served_by

_SLICED = "/body/slice"
_BODY = "/body/"
_MERGED, _MERGED_AND_DROPPED = 2, 3
_MERGED_AND_SUNK = ".clone.clone.sunk"
_WINDOWS = frozenset({"dynamic-slice", "slice"})


def is_read_in_scan(element: Instruction) -> bool:
    """Is this get-tuple-element one of the parameter of a scan's body?"""
    return element.operands[0].opcode == "parameter" and any(map(_is_of_function, element.users))


def in_order_of_scan(element: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such an element, given in the order of the text."""
    if _was_cloned_once(element.computation):
        return last_in_front(users)
    clones = {u: None for u in users if _is_of_function(u)}
    call = next(iter(clones))
    others = [u for u in users if u is call or u not in clones]
    others.sort(key=lambda u: is_named_around_loop(served_by(u)))  # what is stacked was made last
    returned = [u for u in others if _returns(u, element)]
    listed: list[Instruction | None] = [None if u is call else u for u in others if u not in returned]
    left = [u for u in without([*listed, *clones, *returned], [None]) if u is not None]
    return last_in_front(left) if _were_counters_merged(element.computation) else left


def in_order_of_turns(users: list[Instruction]) -> list[Instruction]:
    """The users of what the body of a loop takes slices of by itself, one for each call of a function.

    Those are what it does in several turns (`scan` with `unroll`); their order was that of the calls, which
    read all there is of one turn, and is told by ids alone since.
    """
    if any(
        u.opcode != "slice" or not (u.op_name or "").endswith(_SLICED) or outermost_call(u) for u in users
    ):
        return users
    return sorted(users, key=lambda u: u.id)


def is_read_in_changed_body(element: Instruction) -> bool:
    """Is this get-tuple-element one of the parameter of a loop's body that was given such a tuple?

    One that is no scan's may have been cloned three times for what was dropped alone. If twice at once ahead
    of WhileLoopConstantSinking (`xla/service/while_loop_constant_sinking.cc`), counters were merged. Elements
    that are all younger than the result were put in front of the tuple, be it for counters or for elements
    that are constants (`TryRemoveConstantParams`).
    """
    loop = caller_of(element)
    if loop is None or loop.opcode != "while" or element.operands[0].opcode != "parameter":
        return False
    body = element.computation
    if body is None:
        return False
    if _times_cloned(body) > _MERGED_AND_DROPPED or _MERGED_AND_SUNK in body.name:
        return True
    return all(x.id > body.root.id for x in element.operands[0].users)


def with_tuple_gone(users: list[Instruction]) -> list[Instruction]:
    """The users of such an element, of which that tuple had been the first.

    What has no name is younger: counters are computed by it of the one they were merged with, and windows are
    taken by it to be scattered into, by a loop then. Beside what has a name a bitcast stands for what
    computes with the element.
    """
    younger = [u for u in users if not served_by(u).op_name and u.opcode != "tuple"]
    if any(served_by(u).op_name for u in users):
        younger = [u for u in younger if u.opcode != "bitcast"]
    if any(u.opcode not in _WINDOWS for u in younger):
        return users
    return [*last_in_front([u for u in users if u not in younger]), *younger]


def is_result_of_changed_loop(element: Instruction) -> bool:
    """Is this get-tuple-element one of the result of a loop of which counters were merged?"""
    loop = element.operands[0]
    if loop.opcode != "while":
        return False
    return any(name == "body" and _were_counters_merged(body) for name, body in loop.called)


def with_last_two_in_front(users: list[Instruction]) -> list[Instruction]:
    """The users of such an element: there were two tuples, one after the other."""
    return last_in_front(last_in_front(users))


def is_merged_counter(x: Instruction) -> bool:
    """Was it computed of the counter that is left, in place of one that ran alike?

    What nobody read then may have been dropped from the loop. The lists of loops that were cloned for other
    reasons as well were turned more often than can be told.
    """
    if x.opcode != "add" or x.computation is None or is_of_program(x):
        return False
    if any(o.opcode != "get-tuple-element" or o.operands[0].opcode != "parameter" for o in x.operands):
        return False
    return _times_cloned(x.computation) in (_MERGED, _MERGED_AND_DROPPED)


def in_order_of_merged_counters(counter: Instruction) -> list[Instruction]:
    """The users of such a sum: those of the counter of the program, in a body its increment among them.

    That went, and so did the tuple of all elements as they had been, which was the first user. Those of a
    function were clones behind its call, whose place the last of them had taken. What was computed twice
    HloCSE made one ahead of both, right behind WhileLoopSimplifier.
    """
    listed: list[Instruction | str | None] = [*with_twins_gone(counter.users)]
    root = counter.computation.root if counter.computation is not None else None
    if root is None or root.opcode != "tuple":
        return last_in_front(counter.users)
    before = order_of_walk(root.operands[: counter.operands[0].tuple_index], lambda x: x.operands)
    increment, elements = "increment", "elements"
    ahead = sum(u in before for u in counter.users)
    listed.insert(
        listed.index(counter.users[ahead]) if ahead < len(counter.users) else len(listed), increment
    )
    if any(map(_is_of_function, counter.users)):
        listed = last_in_front(listed)
    twins = [u for u in listed if u is None]
    left = without([elements, *listed], [*twins, elements, increment])
    return [u for u in left if isinstance(u, Instruction)]


def _were_counters_merged(body: Computation | None) -> bool:
    return _times_cloned(body) >= _MERGED_AND_DROPPED


def _was_cloned_once(body: Computation | None) -> bool:
    return _times_cloned(body) == 1


def _times_cloned(body: Computation | None) -> int:
    return 0 if body is None else body.name.split(".").count("clone")


def _returns(root: Instruction, element: Instruction) -> bool:
    """Does the body give back the `element` as another one? The function did, behind all else."""
    if root.opcode != "tuple" or root.computation is None or root.computation.root is not root:
        return False
    return all(x is not element or k != element.tuple_index for k, x in enumerate(root.operands))


def _is_of_function(user: Instruction) -> bool:
    served = served_by(user)
    if is_named_around_loop(served):
        return False
    name, caller = served.op_name or "", caller_of(served)
    if caller is not None and caller.op_name and name.startswith(f"{caller.op_name}/"):
        return name[len(caller.op_name) :].startswith(tuple(_BODY + x for x in FUNCTIONS_OF_SCAN))
    # A loop that came with a call got a longer name, what is in it did not.
    return name.rpartition(_BODY)[2].startswith(FUNCTIONS_OF_SCAN)
