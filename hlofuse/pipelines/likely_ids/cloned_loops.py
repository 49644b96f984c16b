"""What the simplification pipeline does to the order of computations: it clones loops and branches.

The pipeline runs to a fixed point, and names tell what was cloned how often: `.sunk` by
`WhileLoopConstantSinking::RunImpl`, from the outermost loop inward, `.clone` by
`WhileLoopSimplifier::RunImpl`, condition first, and by `ConditionalSimplifier::RunImpl` (`xla/service/`). The
latter two go through computations as they were added to the module. A loop is left alone where what it is in
was cloned earlier in the same round, because its body then has two callers; each other is taken as soon as it
is its turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count

from hlofuse.analysis.call_order import CallOrder
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction

_STEP = re.compile(r"\.(sunk|clone)(?:\.\d+)?(?![^.])")
_CONTROL_FLOW = frozenset({"conditional", "while"})


def with_loops_cloned(
    order: list[Computation], added: list[Computation], names: Mapping[Computation, str]
) -> list[Computation]:
    """The order behind the pipeline: `order` is that ahead of it, `added` the one in which they were made.

    Both have the clones in the place of what they are clones of; `names` has what they were called behind the
    pipeline, also for what was made later, of which one of these stands for all of the same name.
    """
    return _Simplification(order, added, names).run()


class _Simplification:
    def __init__(
        self, order: list[Computation], added: list[Computation], names: Mapping[Computation, str]
    ) -> None:
        there = {names[c]: c for c in order}
        self.time = count()
        self.kept = CallOrder(order, lambda c: self.callers.get(c, ()))
        self.added = {c: next(self.time) for c in added}
        self.callers: dict[Computation, list[Computation]] = {}
        self.calls: dict[Computation, list[_Call]] = {}
        steps = {c: _STEP.findall(names[c]) for c in order}
        """What stands for several equal ones was cloned for the first one."""
        for computation in order:
            for x in computation:
                called = [there[names[c]] for c in x.called_computations]
                for c in dict.fromkeys(called):
                    self.callers.setdefault(c, []).append(computation)
                if x.opcode in _CONTROL_FLOW:
                    call = _Call(x, computation, called, self.added[called[0]], [steps[c] for c in called])
                    self.calls.setdefault(computation, []).append(call)

    def run(self) -> list[Computation]:
        rest = -1
        while rest != (rest := sum(len(steps) for call in self._in_module() for steps in call.left)):
            self._sink()
            self._simplify_loops()
            self._simplify_conditionals()
        return self.kept.listed()

    def _sink(self) -> None:
        agenda = [c for c in self.kept.listed() if c.is_entry]
        seen: set[Computation] = set()
        while agenda:
            computation = agenda.pop()
            if computation in seen:
                continue
            seen.add(computation)
            for call in self.calls.get(computation, ()):
                for k, callee in enumerate(call.called):
                    if call.is_loop and call.takes("sunk", k):
                        self._clone(callee)
                        self.kept.call_new(call.inside)
                agenda += call.called

    def _simplify_loops(self) -> None:
        cloned: set[Computation] = set()
        for call in [*self._in_module()]:
            if call.is_loop and call.inside not in cloned:
                fresh = [c for k, c in reversed([*enumerate(call.called)]) if call.takes("clone", k)]
                for callee in fresh:
                    self._clone(callee)
                    cloned.add(callee)
                if fresh:
                    call.since = next(self.time)
                    self.kept.call_new(call.inside)

    def _simplify_conditionals(self) -> None:
        for _ in ("results", "operands"):
            for call in [*self._in_module()]:
                for k, callee in enumerate(call.called):
                    if not call.is_loop and call.takes("clone", k):
                        self._clone(callee)
                        self.kept.call_new(call.inside)

    def _in_module(self) -> Iterator[_Call]:
        for computation in sorted(self.calls, key=self.added.__getitem__):
            yield from sorted(self.calls[computation], key=lambda call: call.since)

    def _clone(self, computation: Computation) -> None:
        self.added[computation] = next(self.time)
        self.kept.add(computation)


class _Call:
    """A loop or a conditional, with what is yet to be done to what it calls."""

    def __init__(
        self,
        x: Instruction,
        inside: Computation,
        called: list[Computation],
        since: int,
        left: list[list[str]],
    ) -> None:
        self.inside = inside
        self.called = called
        self.since = since
        self.left = left
        self.is_loop = x.opcode == "while"
        if self.is_loop:  # what only one of the two has came of the first FlattenCallGraph
            least = min(steps.count("clone") for steps in left)
            for steps in left:
                while steps.count("clone") > least:
                    del steps[: steps.index("clone") + 1]

    def takes(self, step: str, k: int) -> bool:
        if self.left[k][:1] != [step]:
            return False
        del self.left[k][0]
        return True
