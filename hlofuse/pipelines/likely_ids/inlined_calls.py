"""The order in which CallInliner clones what is called.

It goes through a computation in the order in which a text would be written while calls are one instruction
each, and clones one call after another (`CallInliner::Inline`). In the text of today what was called is
scattered: each operation stands where it is first needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_called_once, outermost_call
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.likely_ids.nested_calls import with_results_together
from hlofuse.pipelines.likely_ids.order_of_pass import agreed
from hlofuse.pipelines.names import name_before_renaming, operation, stack_frame


def in_order_of_cloning(computation: Computation, inlined: list[Instruction]) -> list[Instruction]:
    """What was inlined into a computation, given in the order of the text, call after call.

    Two calls of one function that share something look like one. Numbers rise from clone to clone: of what
    may have been, that is taken which they agree with most, and the text as it is only where they say so.
    """
    call_of = _calls(computation)
    torn = _torn(inlined, call_of)
    apart = {x: -k if call in torn else call for k, (x, call) in enumerate(call_of.items(), 1)}
    for x in reversed(inlined):
        if x not in apart and x.users and all(apart.get(u, 0) < 0 for u in x.users):
            apart[x] = -len(apart) - 1
    candidates = [_one_after_another(computation, inlined, call_of)]
    if not any(is_called_once(x) for x in call_of):
        candidates.append(inlined)
    if torn:
        candidates.append(_one_after_another(computation, inlined, apart))
    likeliest = max(candidates, key=lambda order: agreed(chains_of(order).values()))
    order = with_results_together(likeliest)
    return _with_bounds_as_called(_with_widths_in_calls(order))


def _with_widths_in_calls(order: list[Instruction]) -> list[Instruction]:
    """The width of the interval that jax.random.uniform draws from, where others read it since, as cloned.

    The function multiplies by it, adds the lower bound, and takes the maximum of that and the bound. What
    multiplied by one is gone, and its factor was there before what equals it outside (HloCSE).
    """
    place = {x: (k, 0) for k, x in enumerate(order)}
    ends: dict[tuple[str, int], list[Instruction]] = {}
    for x in order:
        if x.opcode == "maximum":
            ends.setdefault((x.op_name or "", stack_frame(x)), []).append(x)
    for x in order:
        call, _, written = (x.op_name or "").rpartition("/")
        if written == "mul" and call.endswith("jit(_uniform)") and is_broadcast_of_constant(x):
            found = ends.get((f"{call}/max", stack_frame(x)), [])
            if len(found) == 1 and not any((u.op_name or "").startswith(f"{call}/") for u in x.users):
                place[x] = (place[found[0]][0], -1)
    return sorted(order, key=place.__getitem__)


def _with_bounds_as_called(order: list[Instruction]) -> list[Instruction]:
    """The upper bound before the lower one of what has become one clamp since.

    jax.numpy.clip calls minimum(upper, maximum(lower, x)), of which AlgebraicSimplifier makes
    clamp(lower, x, upper) (`MinMaxToClamp`).
    """
    place = {x: (k, 0) for k, x in enumerate(order)}
    for lower in order:
        for clamp in filter(_was_clip, lower.users):
            bound, _, upper = clamp.operands
            if bound is lower and upper in place:
                place[upper] = min(place[upper], (place[lower][0], -1))
    return sorted(order, key=place.__getitem__)


def _was_clip(x: Instruction) -> bool:
    return x.opcode == "clamp" and operation(x) == "min" and "jit(clip)" in (x.op_name or "")


def _one_after_another(
    computation: Computation, inlined: list[Instruction], call_of: Mapping[Instruction, int]
) -> list[Instruction]:
    """In the order in which all that a call reads is there."""
    reads: dict[int, list[Instruction]] = {}
    for x, call in call_of.items():
        reads.setdefault(call, []).extend(o for o in x.operands if call_of.get(o) != call)
    turn: dict[int, int] = {}
    seen: set[Instruction] = set()
    entered: set[int] = set()

    def needed(x: Instruction) -> Iterator[Instruction]:
        call = call_of.get(x)
        return iter(x.operands if call is None else reads[call])

    for x in computation:
        if x in seen or call_of.get(x) in turn:
            continue
        if x in call_of and x.users and all(call_of.get(u) == call_of[x] for u in x.users):
            continue  # stands where something else of the same call needs it
        pending = [(x, needed(x))]
        while pending:
            at, rest = pending[-1]
            source = next((o for o in rest if o not in seen), None)
            if source is None:
                pending.pop()
                seen.add(at)
                if at in call_of:
                    turn.setdefault(call_of[at], len(turn))
                continue
            seen.add(source)
            if source not in call_of or call_of[source] not in entered:
                if source in call_of:
                    entered.add(call_of[source])
                pending.append((source, needed(source)))
    place = {x: turn.get(call, len(turn)) for x, call in call_of.items()}
    last = behind = len(turn)
    for x in reversed(inlined):  # what reads nothing stands in front of its readers
        if x not in place:
            is_leaf = not (x.operands or _is_constant(x))
            unread = behind if is_leaf else last
            place[x] = min((place[u] for u in _readers(x) if u in place), default=unread)
        if x in call_of:
            behind = place[x]
    return sorted(inlined, key=place.__getitem__)


def _readers(x: Instruction) -> Iterator[Instruction]:
    """Who reads it, by way of what is given to a loop or not: that is another tuple since."""
    for u in x.users:
        yield from u.users if u.opcode == "tuple" else (u,)


def _calls(computation: Computation) -> dict[Instruction, int]:
    """Which call the instructions were inlined from; constants are shared.

    Of a function that is called more than once, what is connected is one call.
    """
    functions = {x: name for x in computation if not _is_constant(x) and (name := outermost_call(x))}
    found: dict[Instruction, int] = {}
    once: dict[str, int] = {}
    for start, function in functions.items():
        if start in found:
            continue
        call = len(found)
        found[start] = call = once.setdefault(function, call) if is_called_once(start) else call
        pending = [start]
        while pending:
            x = pending.pop()
            for y in (*x.operands, *x.users):
                if y not in found and functions.get(y) == function:
                    found[y] = call
                    pending.append(y)
    return found


def _is_constant(x: Instruction) -> bool:
    while x.opcode in {"broadcast", "bitcast"}:
        x = x.operands[0]
    return x.opcode in {"constant", "parameter"}


def _torn(inlined: list[Instruction], call_of: Mapping[Instruction, int]) -> set[int]:
    """Calls between the numbers of which there are some of another one."""
    chains: dict[str, list[tuple[int, int]]] = {}
    for x in inlined:
        if x in call_of:
            root, number = name_before_renaming(x)
            chains.setdefault(root, []).append((number, call_of[x]))
    found: set[int] = set()
    for chain in chains.values():
        over: set[int] = set()
        last: int | None = None
        for _, call in sorted(chain):
            if call != last:
                found |= {call} & over
                over.add(call)
                last = call
    return found
