"""Predicates by which selects choose that were conditionals.

ConditionalSimplifier (`xla/service/conditional_simplifier.cc`, `TryRemoveConditional`) makes a select for
each result, in order, and for an array a broadcast of the predicate in front of it. All of them come behind
the conditional, and the last takes its place. HloCSE (`xla/service/hlo_cse.cc`) makes one of broadcasts of
one shape, and of the predicates of several conditionals. A predicate that is a bitcast was a reshape made
by ReshapeMover ahead of that, which had the conditionals in reverse.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import number_in_name, stack_frame
from hlofuse.pipelines.users.calls.selected_branches import is_of_inlined_branch
from hlofuse.pipelines.users.calls.selected_results import is_result_of_branches, results_beside, results_by
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.common.visits import Uses


def in_order_of_results(
    predicate: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The `users` of such a predicate; `order` is the post-order.

    One that came in with a branch was a predicate of selects by then, and has its users as they are written.
    """
    if predicate.shape.element_type != "pred" or is_of_inlined_branch(predicate):
        return users
    readers = {v: u for u in predicate.users for v in results_by(u, predicate)}
    groups: dict[Hashable, list[Instruction]] = {}
    for result in readers:  # of the conditional that CSE came along first, whose predicate stayed
        groups.setdefault((result.op_name, stack_frame(result)), []).append(result)
    groups = {key: _in_order(group, order) for key, group in groups.items()}
    if len(readers) < 2 or not all(groups.values()):
        return users
    others = [u for u in users if u not in readers.values()]
    inlined = [last_in_front(group) for group in groups.values()]
    if predicate.opcode == "bitcast":
        first = [x for results in inlined for x in results[1:]]
        listed = [*(results[0] for results in reversed(inlined)), *others, *first]
    else:
        listed = []
        for results in inlined:
            listed += [results[0], *others, *results[1:]]
            others = []
    kept: dict[Instruction, Instruction] = {}
    gone: list[Instruction] = []
    for group in groups.values():
        for result in group:
            if kept.setdefault(readers[result], result) is not result:
                gone.append(result)
    return [readers.get(x, x) for x in without(listed, gone)]


def with_results_together(
    spread: Instruction, users: list[Instruction], order: dict[Instruction, int], uses: Uses
) -> list[Instruction]:
    """The `users` of such a predicate that is `spread`: CSE came along all results of a conditional at once.

    They were in a tuple, from which they are read. `order` is the post-order.
    """
    if spread.opcode != "broadcast" or spread.shape.element_type != "pred":
        return users
    if not all(is_result_of_branches(u) and u.operands[0] is spread for u in users):
        return users
    groups = {u: _in_order(results_beside(u), order) for u in users}
    if not all(groups.values()):
        return users
    met = {u: min(uses[spread, v] for v in group if v in groups) for u, group in groups.items()}
    return sorted(users, key=lambda u: (met[u], groups[u].index(u)))


def _in_order(results: list[Instruction], order: dict[Instruction, int]) -> list[Instruction]:
    """The results of a conditional in order, as their numbers tell; none if one of them is gone.

    What LayoutNormalization (`xla/service/layout_normalization.cc`) made anew has higher numbers, in the
    order of its walk, and those of the program are missing. Of the first results nothing but the post-order
    tells then.
    """
    listed = sorted(results, key=number_in_name)
    first = number_in_name(listed[0])
    last = first + len(listed) - 1
    anew = [x for x in listed if number_in_name(x) > last]
    ahead = sum(order[x] < order[listed[0]] for x in anew)
    first -= min(ahead, last - max(n for x in listed if (n := number_in_name(x)) <= last))
    there = {n: x for x in listed if (n := number_in_name(x)) < first + len(listed)}
    anew = listed[len(there) :]
    if anew and number_in_name(anew[-1]) - number_in_name(anew[0]) >= len(anew):
        return []
    left = iter(anew)
    return [there.get(n) or next(left) for n in range(first, first + len(listed))]
