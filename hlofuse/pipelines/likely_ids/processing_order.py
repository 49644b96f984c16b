"""The order in which passes go through the computations of a module, where no proto tells.

`HloModule::MakeComputationPostOrder` reads off an order that is kept while computations are added
(`TopologicalSort`, `xla/online_topsort.h`): callees first, and what is new comes last. A computation that
calls something new goes behind that, and so does all that it is called by. Those of the framework bear
numbers in the order in which it made them. FlattenCallGraph is the first pass to add some, where a function
is called again; CallInliner takes them away, but their callers keep their place. Ahead of layouts it comes
again. The last passes to add some are FloatNormalization, which clones what reduces where that is narrow,
those that make fusions of products, and DynamicSliceFusionRewriter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from hlofuse.analysis.processing_order import with_changed_behind
from hlofuse.ir.computation import Computation
from hlofuse.ir.module import Module
from hlofuse.pipelines.likely_ids.cloned_loops import with_loops_cloned
from hlofuse.pipelines.likely_ids.flattened_calls import Clone, with_clones
from hlofuse.pipelines.likely_ids.repeated_calls import repeated_calls

Time: TypeAlias = "tuple[int, ...]"

_CLONED = re.compile(r"(.*)\.clone(?:\.(\d+))?", re.DOTALL)
_LATE_FUSION = "dynamic-slice-fusion"
_OF_REDUCTION = ".reduce_sub_computation"
_SOFTMAX = "triton_softmax"
_NUMBERED = re.compile(r"[^.]*\.(\d+)")


def likely_processing_order(module: Module) -> list[Computation]:
    """All of them, the entry last."""
    clones, again = _flattened(module)
    later = list(_added_later(module.computations, again))
    fresh = {c for added, _ in later[1:] for c in added}
    order = with_clones(_before_flattening(module, clones, fresh), clones)
    for added, is_backward in later:
        changed = {c for c in order if any(x in added for i in c for x in i.called_computations)}
        order = with_changed_behind(order, changed, is_backward=is_backward)
    return sorted(order, key=lambda c: c is module.entry)


def _added_later(
    order: list[Computation], again: set[Computation]
) -> Iterator[tuple[set[Computation], bool]]:
    """What passes behind FlattenCallGraph have others call, and do they go backward?

    SoftmaxRewriterTriton does: it makes the fusions that it found from the last one to the first.
    """
    fusions = {c for c in order if c.fusion is not None}
    softmax = {c for c in fusions if c.name.startswith(_SOFTMAX)}
    late = {c for c in fusions if c.name.startswith(_LATE_FUSION)}
    yield again, False
    yield {c for c in order if _is_of_split_product(c)}, False
    yield fusions - softmax - late, False
    yield softmax, True
    yield late, False


def _is_of_split_product(x: Computation) -> bool:
    """Does it sum the parts of a product that SplitkRewriter made?"""
    caller = x.first_caller
    if caller is None or caller.opcode != "reduce" or not x.name.endswith(_OF_REDUCTION):
        return False
    return caller.operands[0].opcode == "fusion"


def _before_flattening(
    module: Module, clones: Mapping[Computation, Clone], later: set[Computation]
) -> list[Computation | str]:
    """Without these clones; instead with the names of what is gone but for them.

    What is made `later` tells nothing of who calls it.
    """
    origins = _origins(module, clones)
    there = {c.name: c for c in module.computations if c not in clones}
    for computation in module.computations:
        there.setdefault(origins[computation], computation)
    written = {c: k for k, c in enumerate(module.computations)}
    repeated = repeated_calls(module)
    called = {
        x: {there[origins[c]] for i in x for c in i.called_computations if c not in later}
        for x in there.values()
    }
    since: dict[Computation, Time] = {}
    entered: set[Computation] = set()
    pending = [*there.values()]
    while pending:
        x = pending[-1]
        if x not in entered:
            entered.add(x)
            pending += called[x] - entered
            continue
        pending.pop()
        times = [_first_place(x, origins[x], written)]
        times += [(*since[c], 0) for c in called[x] if since.get(c, _OF_PROGRAM) > _OF_PROGRAM]
        if x in repeated:
            times.append((0, 2, repeated[x]))
        since[x] = max(times)

    added = sorted(there.values(), key=lambda c: (_first_place(c, origins[c], written), written[c]))
    order = sorted(added, key=lambda c: (c is module.entry, since[c], written[c]))
    order = with_loops_cloned(order, added, origins)
    order.sort(key=lambda c: c is module.entry)
    return [origins[x] if x in clones else x for x in order]


_OF_PROGRAM: Time = (0, 1)
"""What is older is there before anything calls it."""


def _first_place(computation: Computation, name: str, written: Mapping[Computation, int]) -> Time:
    """Passes make bodies of loops behind conditions (`WhileUtil::MakeCountedLoop`)."""
    number = _NUMBERED.match(name)
    if number is None or (number.end() < len(name) and not _is_clone(name)):
        return (0, 1, *_behind_condition(computation, written))
    return (0, 0, int(number[1]))


def _behind_condition(computation: Computation, written: Mapping[Computation, int]) -> Time:
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


def _is_clone(name: str) -> bool:
    return ".clone" in name or ".sunk" in name


def _flattened(module: Module) -> tuple[dict[Computation, Clone], set[Computation]]:
    """The clones that FlattenCallGraph made: what they are clones of is still there, or others of it are.

    Also those that were cloned once more.
    """
    names = {c.name for c in module.computations}
    families: dict[str, list[Computation]] = {}
    for computation in module.computations:
        match = _CLONED.fullmatch(computation.name)
        if match is not None and computation.fusion is None:
            families.setdefault(match[1], []).append(computation)
    found: dict[Computation, Clone] = {}
    again: set[Computation] = set()
    for root, family in families.items():
        if root in names or len(family) > 1:
            found |= {c: _clone(c.name) for c in family}
        elif _is_cloned_again(family[0]):
            again.add(family[0])
            found[family[0]] = _clone(root)
    return found, again


def _clone(name: str) -> Clone:
    match = _CLONED.fullmatch(name)
    return Clone(match[1], int(match[2] or 0)) if match is not None else Clone(name, 0)


def _origins(module: Module, clones: Mapping[Computation, Clone]) -> dict[Computation, str]:
    """The names of what they are, or are clones of clones of."""
    of = {c.name: clone.of for c, clone in clones.items()}
    found: dict[Computation, str] = {}
    for computation in module.computations:
        name = clones[computation].of if computation in clones else computation.name
        while name in of:
            name = of[name]
        found[computation] = name
    return found
