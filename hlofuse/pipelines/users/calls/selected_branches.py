"""Conditionals that became selects: branches themselves read now what came in by a tuple for each of them.

ConditionalSimplifier (`xla/service/conditional_simplifier.cc`, `TryRemoveConditional`) inlines both branches
and selects among their results. AlgebraicSimplifier (`HandleGetTupleElement`) then gives a value its users
within the branches, those of what is done if the predicate is true first, and the tuple of its results last
if the branch hands the value on as it is. The tuple for a branch goes when its last element is read, ahead of
the users in the other branch; a select comes when the element of the results is met, which is ahead of them
too for the first result of the true branch. HloCSE (`xla/service/hlo_cse.cc`) makes one of what both branches
compute at the end. Whenever something goes, the last user is put in the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_in_function
from hlofuse.pipelines.users.calls.selected_results import (
    is_only_result,
    is_result_of_branches,
    predicate_of,
    results_beside,
)
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.fusions import readers_past_layout
from hlofuse.pipelines.users.common.holes import without

_BRANCH = re.compile(r"/branch_(\d+)_fun(?=/)")
_NAMELESS = frozenset({"parameter", "get-tuple-element"})


Given: TypeAlias = "dict[str, dict[int, dict[Instruction, frozenset[Instruction]]]]"
"""What each branch is given, by the name of conditionals and by branch, with the predicates of those."""


def given_to_branches(computation: Iterable[Instruction]) -> Given:
    """What branches that are no computations of their own any more were given.

    The front end gives a branch what it reads, in the order in which it does. Where that is the same for
    both, HloCSE made one of the two tuples. Where the outcome was a number in the program, the front end
    itself put the branch in place of the conditional: there is no other branch, and no choice of results.
    In a function, the outcome may be an argument that it does not know.
    """
    given: dict[tuple[str, int], dict[Instruction, list[Instruction]]] = {}
    results = []
    for x in computation:
        for place, branch in _branches(x.op_name or ""):
            read = given.setdefault((place, branch), {})
            for o in map(_as_in_program, x.operands):
                if _is_given(o, place):
                    read.setdefault(o, []).append(x)
        if x.op_name and is_result_of_branches(x):
            results.append((x.op_name, x))
    for place, result in results:
        for branch in (0, 1):
            value = _as_in_program(_gives(result, branch))
            if _is_given(value, place):
                given.setdefault((place, branch), {}).setdefault(value, []).append(result)
    found: Given = {}
    kept = {place for place, _ in results}
    kept |= {place for place, branch in given if (place, 1 - branch) in given or is_in_function(place)}
    for (place, branch), read in given.items():
        if place in kept:
            found.setdefault(place, {})[branch] = {o: _predicates(xs, place) for o, xs in read.items()}
    return found


def _predicates(readers: list[Instruction], place: str) -> frozenset[Instruction]:
    """By which the results are chosen that are computed of what `readers` in branches read.

    Conditionals of one function bear the same name.
    """
    found, pending = set(readers), [*readers]
    while pending:
        x = pending.pop()
        behind = x.users if not is_result_of_branches(x) else ()
        near = [u for u in behind if u not in found and (u.op_name == place or _is_within(u, place))]
        found.update(near)
        pending += near
    return frozenset(predicate_of(x) for x in found if x.op_name == place and is_result_of_branches(x))


def _is_given(x: Instruction, place: str) -> bool:
    return not is_made_of_nothing(x) and all(place != inner for inner, _ in _branches(x.op_name or ""))


def with_last_in_place_of_branches(
    producer: Instruction,
    users: list[Instruction],
    order: Mapping[Instruction, int],
    given: Given,
) -> list[Instruction]:
    """The `users` of a value that branches read which are no computations of their own any more."""
    if not is_read_by_conditional(producer, users, given):
        return users
    place, branches = _in_branches(producer, users)
    assert place is not None
    handed_on = [u for u in users if _hands_on(u, producer, place)]
    results = results_beside(handed_on[0]) if handed_on else []
    handed_on = [u for u in handed_on if u in results]
    first = next(k for k, u in enumerate(users) if u in branches or u in handed_on)
    others = [u for u in users[first:] if u not in branches and u not in handed_on]
    read = _read_beside(producer, given[place])
    if not handed_on and is_only_result(producer) and all(xs == [producer] for xs in read.values()):
        return [*users[:first], *others, *branches]
    met = _as_elements_are_met(producer, others, place, branches, results, order, read)
    return users[:first] + met


def is_read_by_conditional(producer: Instruction, users: list[Instruction], given: Given) -> bool:
    """Was one of the `users` such a conditional?"""
    if not given or not _is_given_to_branches(producer):
        return False
    place, _ = _in_branches(producer, users)
    return place in given and all(x[0] != place for x in _branches(producer.op_name or ""))


def with_last_or_conditional_in_front(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` with the last in front, which may be the conditional that some of them were in."""
    given = _given_to_conditional(producer, users)
    listed = with_branches_together(producer, users)
    last = given if listed[-1] in given else listed[-1:]
    return [*last, *listed[: -len(last)]]


def _read_beside(
    producer: Instruction, given: Mapping[int, dict[Instruction, frozenset[Instruction]]]
) -> dict[int, list[Instruction]]:
    """What the branches of those conditionals are given that are given the `producer`."""
    own = frozenset[Instruction]().union(*(read.get(producer, ()) for read in given.values()))
    return {
        branch: [x for x, predicates in read.items() if not own or not predicates or own & predicates]
        for branch, read in given.items()
    }


def with_branches_together(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` with those in branches where the first is: the tuples that the branches are given."""
    given = _given_to_conditional(producer, users)
    if not given:
        return users
    first = users.index(given[0])
    return [*users[:first], *given, *(u for u in users[first:] if u not in given)]


def _given_to_conditional(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """Those of the `users` for which the `producer` was given to a conditional."""
    place, branches = _in_branches(producer, users)
    return [u for u in users if place is not None and (u in branches or _hands_on(u, producer, place))]


def _in_branches(
    producer: Instruction, users: list[Instruction]
) -> tuple[str | None, dict[Instruction, int]]:
    """The first conditional that some of the `users` are in and not the `producer`, and each one's branch.

    Conditionals that are still around all of them are none, by whatever names: what several branches call
    bears the name of one call.
    """
    own = set(_branches(producer.op_name or ""))
    around = _conditionals_around(producer)
    branches: dict[Instruction, int] = {}
    place = None
    for user in users:
        found = next((x for x in _branches(_named_like(user))[around:] if x not in own), None)
        if found is not None and found[0] == (place or found[0]):
            place = found[0]
            branches[user] = found[1]
    return place, branches


def _named_like(x: Instruction) -> str:
    """The name of what reads `x` where a pass only put its operand in another layout for that."""
    return (x.users[0] if _is_for_layout(x) and len(x.users) == 1 else x).op_name or ""


def _is_for_layout(x: Instruction) -> bool:
    return x.opcode in {"copy", "transpose"} and x.op_name in {None, x.operands[0].op_name}


def _as_in_program(x: Instruction) -> Instruction:
    while x.opcode == "bitcast" or _is_for_layout(x):
        x = x.operands[0]
    return x


def _as_elements_are_met(
    producer: Instruction,
    others: list[Instruction],
    place: str,
    branches: dict[Instruction, int],
    results: list[Instruction],
    order: Mapping[Instruction, int],
    read: Mapping[int, list[Instruction]],
) -> list[Instruction]:
    """The users from the tuples on, of which the `others` came first.

    Branches that `read` the same have one tuple. The tuple of one value alone was made behind all others, and
    the last such took the place of the conditional (`ConditionalCanonicalizer`,
    `xla/hlo/transforms/simplifiers/conditional_canonicalizer.cc`).
    """
    given, gives, inlined = {}, {}, {}
    places = {u: order[u] for u in branches}
    gone: list[Instruction] = []
    others = [*others]
    for met in sorted(_read_outside(branches, place, order)):
        gone.append(Instruction("", producer.shape, "copy"))
        others.insert(sum(order.get(u, -1) < met for u in others), gone[-1])
    for branch in (0, 1):
        inlined[branch] = [u for u in branches if branches[u] == branch]
        for met in sorted(_read_then(producer, (place, branch), branches, order)):
            gone.append(Instruction("", producer.shape, "copy"))
            inlined[branch].insert(sum(places[u] < met for u in inlined[branch]), gone[-1])
            places[gone[-1]] = met
        if any(_gives(x, branch) is producer for x in results):
            gives[branch] = Instruction("", producer.shape, "tuple")
            inlined[branch].append(gives[branch])
        if inlined[branch]:
            given[branch] = Instruction("", producer.shape, "tuple")
    is_one = {branch: len(read.get(branch, ())) == 1 for branch in given}
    users = [*(given[branch] for branch in sorted(given, key=is_one.__getitem__)), *others]
    if len(given) > 1 and read.get(0) == read.get(1):  # the elements became one, too
        other = given.pop(0)
        users = [*given.values(), *others] if is_one[1] else without(users, [other])
        inlined = {1: [*inlined[1], *inlined[0]], 0: []}

    def meet(branch: int, k: int) -> list[Instruction]:
        met = [x for x in results[k : k + 1] if _gives(x, branch) is producer and x not in users]
        read = [gives[branch]] if branch in gives and k == len(results) - 1 else []
        return without([*users, *met], read)

    for branch in (1, 0):
        users = without([*users, *inlined[branch]], [given[branch]] if branch in given else [])
        users = meet(branch, 0)
    for k in range(1, len(results)):
        for branch in (1, 0):
            users = meet(branch, k)
    return without(users, gone)


def _read_outside(branches: Iterable[Instruction], place: str, order: Mapping[Instruction, int]) -> list[int]:
    """Where outside of the branches was computed what they compute, too: of each the first reader."""
    found = []
    for user in branches:
        readers = [*readers_past_layout(user)]
        outside = [order[v] for v in readers if v.op_name and v.op_name != place and not _is_within(v, place)]
        if len(outside) < len(readers):
            found += sorted(outside)[:1]
    return found


def _is_within(x: Instruction, place: str) -> bool:
    return any(place == around for around, _ in _branches(x.op_name or ""))


def _read_then(
    producer: Instruction,
    branch: tuple[str, int],
    branches: dict[Instruction, int],
    order: Mapping[Instruction, int],
) -> list[int]:
    """Where the `branch` has what is no user of the `producer` any more."""
    found = []
    for user in producer.users:
        read = [w for v in user.users for w in (v.users if v.opcode == "bitcast" else [v])]
        read = [w for w in read if branch in _branches(w.op_name or "")]
        if branches.get(user, branch[1]) != branch[1]:  # both branches computed the `user`
            found += [order[w] for w in read][:1]
        elif user.opcode == "convert" and user not in branches:  # FloatNormalization put it between
            found += [order[w] for w in read if _is_narrowed(w, producer)]
    return found


def _is_narrowed(x: Instruction, like: Instruction) -> bool:
    return all(u.opcode == "convert" and u.shape.element_type == like.shape.element_type for u in x.users)


def _gives(result: Instruction, branch: int) -> Instruction:
    return result.operands[2 - branch]


def _is_given_to_branches(producer: Instruction) -> bool:
    if is_made_of_nothing(producer) or not (producer.op_name or producer.opcode in _NAMELESS):
        return False
    # A branch may have had conditionals of its own: what it is shows where those are.
    return not _is_in_branch(producer) or bool(_branches(producer.op_name or ""))


def _is_in_branch(x: Instruction) -> bool:
    return x.computation is None or _conditionals_around(x) > 0


def _conditionals_around(x: Instruction) -> int:
    """How many conditionals that are still there it is in, one within another."""
    count = 0
    computation = x.computation
    while computation is not None:
        caller = next((c for c in computation.callers if c.opcode == "conditional"), None)
        computation = None if caller is None else caller.computation
        count += caller is not None
    return count


def is_of_inlined_branch(x: Instruction) -> bool:
    """Is it of a branch that is no computation of its own any more?"""
    return bool(_branches(x.op_name or "")) and not _is_in_branch(x)


def _hands_on(user: Instruction, producer: Instruction, place: str) -> bool:
    return is_result_of_branches(user) and user.op_name == place and producer in user.operands[1:]


@lru_cache(maxsize=1 << 12)
def _branches(op_name: str) -> tuple[tuple[str, int], ...]:
    """The branches in which it is, the outermost first, as the name of the conditional and a number.

    Those around a loop are left out.
    """
    found: list[tuple[str, int]] = []
    op_name = op_name.partition(";")[0]  # of several names the first counts
    for match in _BRANCH.finditer(op_name):
        if "/body/" not in op_name[match.end() :]:
            found.append((op_name[: match.start()], int(match[1])))
    return tuple(found)


def with_other_branches_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of what several branches compute alike: those of its own branch first.

    Both branches are there by then, and HloCSE (`xla/service/hlo_cse.cc`) keeps the value of one of them.
    """
    own = dict(_branches(producer.op_name or ""))
    return sorted(users, key=lambda u: _is_of_other_branch(u, own)) if own else users


def _is_of_other_branch(user: Instruction, own: dict[str, int]) -> bool:
    return any(own.get(place, branch) != branch for place, branch in _branches(user.op_name or ""))
