"""One caller for every computation (`xla/hlo/transforms/simplifiers/flatten_call_graph.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.unfusing import check_growth, most_instructions
from hlofuse.passes.base import Pass
from hlofuse.passes.common.cloning import clone_computation, set_called
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class FlattenCallGraph(Pass):
    """`flatten-call-graph`; HlofuseError where calls multiply beyond reason."""

    name: ClassVar[str] = "flatten-call-graph"

    def run(self, module: Module, recorder: Recorder) -> bool:
        most = most_instructions(module)
        size = sum(len(c) for c in module.computations)
        changed = False
        for computation in module.computation_post_order():
            for k, caller in enumerate(_by_age(computation)):
                if k == 0 and caller.called_computations.count(computation) <= 1:
                    continue
                changed = True
                fresh = _replace(caller, computation)
                while fresh:
                    body = fresh.pop()
                    size += len(body)
                    if size > most:
                        check_growth(module, most)
                    for inner in body:
                        fresh += _replace(inner, None)
        return changed


def _by_age(computation: Computation) -> list[Instruction]:
    """Callers by unique id, of which the order of computations and of instructions in them is left."""
    module = computation.module
    assert module is not None
    place = {c: k for k, c in enumerate(module.computations)}
    return sorted(
        computation.callers,
        key=lambda i: (place.get(i.computation, -1) if i.computation is not None else -1, i.id),
    )


def _replace(caller: Instruction, which: Computation | None) -> list[Computation]:
    """Copies take the place of what `caller` calls, of `which` or of everything; the copies."""
    if not caller.called:
        return []
    called = []
    fresh = []
    for name, callee in caller.called:
        if which is None or callee is which:
            callee = clone_computation(callee)
            fresh.append(callee)
        called.append((name, callee))
    set_called(caller, called)
    return fresh
