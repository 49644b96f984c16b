"""The order in which passes go through the computations of a module, where no proto tells.

`HloModule::MakeComputationPostOrder` reads off an order that is kept while computations are added
(`TopologicalSort`, `xla/online_topsort.h`): callees first, and what is new comes last. A computation that
calls something new goes behind that, and so does all that it is called by. Those of the framework bear
numbers in the order in which it made them. FlattenCallGraph is the first pass to add some, where a function
is called again; CallInliner takes them away, but their callers keep their place. The last passes to add some
are those that make fusions of products, FlattenCallGraph again, which clones what is called twice, callee by
callee, and DynamicSliceFusionRewriter.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from hlofuse.ir.computation import Computation
from hlofuse.ir.module import Module
from hlofuse.pipelines.likely_ids.repeated_calls import repeated_calls

Time: TypeAlias = "tuple[int, ...]"

_CLONED = re.compile(r"(.*)\.clone(?:\.(\d+))?", re.DOTALL)
_LATE_FUSION = "dynamic-slice-fusion"
_NUMBERED = re.compile(r"[^.]*\.(\d+)")


def likely_processing_order(module: Module) -> list[Computation]:
    """All of them, the entry last."""
    written = {c: k for k, c in enumerate(module.computations)}
    clones = _flattened(module)
    repeated = repeated_calls(module)
    since: dict[Computation, Time] = {}
    for computation in module.computation_post_order():
        times = [clones.get(computation) or _first_place(computation, written)]
        if computation in repeated:
            times.append((0, 2, repeated[computation]))
        for instruction in computation:
            called = (since[c] for c in instruction.called_computations)
            times += [(*time, 0) for time in called if time > _OF_PROGRAM]
        since[computation] = max(times)
        if since[computation] == (*_AGAIN, 0):  # those that call such came in the order that they had
            since[computation] += max(time for time in times if time[: len(_AGAIN)] != _AGAIN)
    return sorted(written, key=lambda c: (c is module.entry, since[c], written[c]))


_OF_PROGRAM: Time = (0, 1)
"""What is older is there before anything calls it."""

_AGAIN: Time = (3, 1 << 30)
"""What was a clone of FlattenCallGraph and was cloned once more."""


def _first_place(computation: Computation, written: dict[Computation, int]) -> Time:
    """Passes make bodies of loops, and clone them, behind conditions (`WhileUtil::MakeCountedLoop`)."""
    if computation.fusion is not None:
        return (4 if computation.name.startswith(_LATE_FUSION) else 2, written[computation])
    if not _is_clone(computation.name):
        number = _NUMBERED.fullmatch(computation.name)
        return (
            (0, 0, int(number[1])) if number is not None else (0, 1, *_behind_condition(computation, written))
        )
    if computation.first_caller is None:
        return (1, 0)
    return (1, _depth(computation), *_behind_condition(computation, written))


def _behind_condition(computation: Computation, written: dict[Computation, int]) -> Time:
    caller = computation.first_caller
    if caller is None:
        return (written[computation], 0)
    called = caller.called_computations
    is_body = caller.opcode == "while" and called[0] is computation
    return (min(written[c] for c in called), int(is_body))


def _is_cloned_again(x: Computation) -> bool:
    """Was one of several clones of what reduces cloned itself, as FloatNormalization does where it is narrow?

    Mirrors `ConvertCalledComputations` of `xla/hlo/transforms/simplifiers/float_normalization.cc`.
    """
    caller = x.first_caller
    match = _CLONED.fullmatch(x.name)
    if caller is None or caller.opcode in ("while", "conditional", "call") or match is None:
        return False
    return match[2] is not None or ".clone" in match[1]


def _depth(computation: Computation) -> int:
    depth = 0
    outer: Computation | None = computation
    while outer is not None and (caller := outer.first_caller) is not None:
        depth += 1
        outer = caller.computation
    return depth


def _is_clone(name: str) -> bool:
    return ".clone" in name or ".sunk" in name


def _flattened(module: Module) -> dict[Computation, Time]:
    """The clones that FlattenCallGraph made, with when it did: what they are clones of is still there."""
    names = {c.name for c in module.computations}
    families: dict[str, list[Computation]] = {}
    for computation in module.computations:
        match = _CLONED.fullmatch(computation.name)
        if match is not None:
            families.setdefault(match[1], []).append(computation)
    found: dict[Computation, Time] = {}
    for root, family in families.items():
        if root not in names and len(family) == 1:
            if _is_cloned_again(family[0]):
                found[family[0]] = _AGAIN
            continue
        number = _NUMBERED.match(root)
        callee = int(number[1]) if number is not None else 1 << 30
        for computation in family:
            match = _CLONED.fullmatch(computation.name)
            assert match is not None
            found[computation] = (3, root.count(".clone"), callee, int(match[2] or 0))
    return found
