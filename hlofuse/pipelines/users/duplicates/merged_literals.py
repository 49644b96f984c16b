"""Broadcasts of numbers that are written in the program, in whatever function.

The framework makes one such broadcast for each function that needs it: what a program and the functions it
calls use was as many broadcasts. HloCSE (`xla/service/hlo_cse.cc`) keeps the first of them in post-order and
appends the users of each other one in turn.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import (
    is_called_once,
    is_of_called,
    is_of_derivative,
    outermost_call,
    scope,
)
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.ages import is_sign_of_remainder, was_product_with_predicate
from hlofuse.pipelines.users.common.keys import is_turn, is_word_of_key
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.duplicates.chosen_literals import is_given_to_choice
from hlofuse.pipelines.users.duplicates.compared_maxima import function_given, with_last_in_place_of_call
from hlofuse.pipelines.users.duplicates.computed_again import computed_again
from hlofuse.pipelines.users.duplicates.dead_at_cse import UsesAtCse
from hlofuse.pipelines.users.duplicates.normalized_again import Gone, normalized_again, with_merged_gone
from hlofuse.pipelines.users.floats.widened import served_by


def is_merged_literal(x: Instruction) -> bool:
    """Is it a broadcast of a number, and each function or operation in one had one of its own?

    That of an operation bears its name, as the number was converted for it. What bears the name of a function
    is of all operations in it; those of other calls had theirs, as where they are older or of a scan.
    """
    if not is_broadcast_of_constant(x):
        return False
    if not x.op_name:
        return True
    within = [(served_by(u).op_name or "").startswith(f"{x.op_name}/") for u in x.users]
    if not _is_of_function(x):
        return not any(within)
    if all(within) or not all(outermost_call(served_by(u)) for u in x.users):
        return False
    return is_called_once(x) or any(u.id < x.id for u in x.users)


def _is_of_function(literal: Instruction) -> bool:
    return "jit(" in operation(literal)


def in_order_of_functions(
    producer: Instruction, users: list[Instruction], at_cse: UsesAtCse
) -> list[Instruction]:
    """The users of such a broadcast, by what had one of its own, as CSE's walk came to these.

    Another round of CSE merged with it what is younger than what the first one came to.
    """
    groups: dict[Hashable, list[Instruction]] = {}
    place, last = dict[Instruction, int](), -1
    together = (
        _in_one_call(producer, users, at_cse) if not producer.op_name or _is_of_function(producer) else {}
    )
    for user in users:
        # What fusions took along is where the users around it are.
        # The initial values of a loop that was made anew are where those of the program were.
        younger = producer if user.opcode == "tuple" else max(producer, user, key=lambda x: x.id)
        uses = at_cse.of(younger)
        last = place[user] = uses.get((producer, user), last)
        function = function_given(producer, user) or together.get(user) or _function(user, producer, at_cse)
        groups.setdefault(function, []).append(user)
    # The one that is left is the one that CSE met first, and bears the name of what it was made for.
    own = [u for u in users if producer.op_name and served_by(u).op_name == producer.op_name]
    own = own or [u for u in users if _is_of_same_place(served_by(u), producer)]
    if own:
        place[min(own, key=place.__getitem__)] = -1
    ordered = sorted(groups.values(), key=lambda group: min(place[user] for user in group))
    # What is made of remainders comes in another round, behind all but what is met first.
    later = [group for group in ordered[1:] if is_sign_of_remainder(group[0], producer)]
    members = [_as_in_function(producer, group, together) for group in ordered if group not in later]
    gone = {u: _gone(u, producer, at_cse.of(_younger(producer, u))) for u in users}
    return [*with_merged_gone(members, place, gone), *(user for group in later for user in group)]


def _gone(user: Instruction, literal: Instruction, uses: Uses) -> list[Gone]:
    return [*normalized_again(user, literal, uses), *computed_again(user, uses)]


def _younger(literal: Instruction, user: Instruction) -> Instruction:
    return user if user.id > literal.id else literal


def _in_one_call(
    literal: Instruction, users: list[Instruction], at_cse: UsesAtCse
) -> dict[Instruction, Instruction]:
    """By user in a call of a function the first one there, where both are known to be of the same call.

    Each call brings a constant and its broadcast, merged since, ahead of what reads them; what is older
    than the `literal` of the program was cloned by no call. All are older if a pass made that.
    """
    called = [u for u in users if outermost_call(u) and not _is_in_fusion(u)]
    called = [
        u for u in called if not is_sign_of_remainder(u, literal) and not is_given_to_choice(literal, u)
    ]
    found: dict[Instruction, Instruction] = {}
    last: Instruction | None = None
    is_younger = all(u.id < literal.id for u in called)
    in_scan: dict[Hashable, list[Instruction]] = {}
    for user in sorted(called, key=lambda u: u.id):
        if is_called_once(user):
            call = in_scan.setdefault((scope(user), stack_frame(user) if _is_nested(user) else 0), [])
            if not _is_of_call_in_scan(user, call, at_cse):
                call.clear()
            found[user] = call[0] if call else user
            call.append(user)
        elif is_younger or user.id > literal.id:
            alike = last is not None and _may_be_of_one_call(last, user, moved=not is_younger)
            found[user] = found[last] if last and alike and at_cse.gone_between(last, user) < 2 else user
            last = user
    return found


def _may_be_of_one_call(x: Instruction, behind: Instruction, *, moved: bool) -> bool:
    """What a function of the framework's does stands where it is called, but for what one pass `moved`."""
    if outermost_call(x) != outermost_call(behind):
        return False
    return stack_frame(x) == stack_frame(behind) or (moved and behind.id == x.id + 1)


def _is_nested(x: Instruction) -> bool:
    """Is it of a function that is called by what a scan does, which is one itself?"""
    return scope(x) != outermost_call(x)


def _is_of_call_in_scan(x: Instruction, call: list[Instruction], at_cse: UsesAtCse) -> bool:
    """Is it of the same `call` in what a scan does as others, which are older, of the same function?

    What the scan does is called once itself. Where the like of `x` was made, and then something else that
    reads what the function gives, that was called again.
    """
    if not _is_nested(x) or not any(_like(u) == _like(x) for u in call):
        return True
    between = at_cse.made_between(call[-1], x)
    return all(_is_within(o, x) or not any(_is_within(v, x) for v in o.operands) for o in between)


def _is_within(x: Instruction, other: Instruction) -> bool:
    """Is it of the function that the other is of, or of what that calls?"""
    return f"{scope(x) or ''}/".startswith(f"{scope(other)}/")


def _like(x: Instruction) -> Hashable:
    return x.opcode, x.op_name, str(x.attributes.get("direction"))


def _as_in_function(
    literal: Instruction, group: list[Instruction], together: dict[Instruction, Instruction]
) -> list[Instruction]:
    if function_given(literal, group[0]):
        return with_last_in_place_of_call(group)
    return sorted(group, key=lambda u: u.id) if all(u in together for u in group) else group


def _is_of_same_place(x: Instruction, literal: Instruction) -> bool:
    call = outermost_call(literal)
    return bool(call) and call == outermost_call(x) and stack_frame(x) == stack_frame(literal)


def _function(user: Instruction, producer: Instruction, at_cse: UsesAtCse) -> Hashable:
    reader = served_by(user)
    if is_word_of_key(producer) and is_turn(reader):  # the function has one of each number it turns by
        return (reader.op_name or "").rpartition("/")[0], stack_frame(reader)
    if is_given_to_choice(producer, reader):
        return ""
    if outermost_call(reader):
        return _choice_of(producer, reader) or reader
    if _is_in_fusion(reader) or is_of_called(reader) or not at_cse.met(reader):
        return ""
    if not (is_made_by_pass(reader) or was_product_with_predicate(reader)):
        return ""
    if _is_scattered_over(producer, reader):
        return ""
    return reader  # with a broadcast of its own


def _choice_of(zeros: Instruction, reader: Instruction) -> Hashable | None:
    """The derivative of a choice between two values, if that is what `reader` is of one of them.

    It chooses between the gradient and zeros, of which it has one broadcast for both.
    """
    if reader.opcode != "select" or not is_of_derivative(reader):
        return None
    chosen_by, *sides = reader.operands
    gradient = next((x for x in sides if x is not zeros), None)
    return gradient and (chosen_by, gradient, reader.op_name, stack_frame(reader))


def _is_scattered_over(literal: Instruction, scatter: Instruction) -> bool:
    """Does `scatter` add to the `literal` what was made of it?

    ScatterSimplifier (`xla/service/scatter_simplifier.cc`) puts it where that of the program was.
    """
    if scatter.opcode != "scatter" or scatter.operands[0] is not literal:
        return False
    return any(without_bitcasts(o) in literal.users for o in scatter.operands[1:])


def _is_in_fusion(x: Instruction) -> bool:
    return x.computation is not None and x.computation.fusion is not None
