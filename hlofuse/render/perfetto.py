"""The kernels of one step as a trace, in Chrome's trace event format, which Perfetto opens."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from hlofuse.account import Launched
from hlofuse.analysis.kernels import CONTROL_FLOW
from hlofuse.analysis.loops import runs_in, trip_count_of
from hlofuse.format.escape import printable
from hlofuse.format.paths import layer_of
from hlofuse.ir import Computation, Instruction
from hlofuse.render.launched import LaunchedModule

MOST_ITERATIONS = 10
"""Of one loop; the rest of them is one event."""
MOST_EVENTS = 50_000
"""Beyond, loops show one iteration each."""

_KERNELS, _SCOPES, _LOOPS = 1, 2, 3


def to_trace(launched: LaunchedModule, compressed: bool = False) -> bytes:
    """JSON, also by gzip; the same module gives the same bytes.

    Kernels run one after the other, in the module's order: XLA's schedule where the module has one. A kernel
    without an estimated time lasts 1 µs for each kB that it moves.
    """
    text = json.dumps(_Trace(launched).document(), separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0) if compressed else text.encode()


class _Trace:
    def __init__(self, launched: LaunchedModule) -> None:
        self.launched = launched
        self.account = launched.account
        self.events: list[dict[str, Any]] = []
        self.now = 0.0
        self.open_scopes: list[tuple[str, float]] = []

    def document(self) -> dict[str, Any]:
        module = self.account.module
        self._run(module.entry)
        self._enter(())
        unit = "estimated time" if self.launched.is_timed else "1 µs stands for 1 kB moved: no time model"
        title = f"{printable(module.name)}, {self.launched.title} ({unit})"
        names = [("process_name", 0, title), ("thread_name", _KERNELS, "kernels")]
        names += [("thread_name", _SCOPES, "scopes of op_name"), ("thread_name", _LOOPS, "loops")]
        head = [{"ph": "M", "pid": 1, "tid": t, "name": n, "args": {"name": text}} for n, t, text in names]
        # Of events that begin together the longest comes first: the others lie inside it.
        self.events.sort(key=lambda e: (e["tid"], e["ts"], -e["dur"]))
        return {"displayTimeUnit": "ns", "traceEvents": [*head, *self.events]}

    def _add(self, thread: int, name: str, start: float, **more: Any) -> None:
        start, end = round(start, 4), round(self.now, 4)
        event = {"ph": "X", "pid": 1, "tid": thread, "name": name, "ts": start, "dur": round(end - start, 4)}
        self.events.append(event | more)

    def _run(self, computation: Computation) -> None:
        scheduled = self.account.module.attributes.raw("is_scheduled") == "true"
        for i in computation if scheduled else computation.post_order():
            if (row := self.account.by_name.get(i.name)) is not None and row.instruction is i:
                self._kernel(row)
            elif i.opcode == "while":
                self._loop(i)
            elif i.opcode in CONTROL_FLOW:
                for callee in i.called_computations:
                    if self.account.runs(callee):  # of the branches of a conditional the slowest
                        self._run(callee)

    def _kernel(self, row: Launched) -> None:
        self._enter(_scopes(row.instruction))
        start = self.now
        us = row.us if row.us is not None else row.cost.bytes_accessed / 1e3
        self.now += max(us, 0.001)
        facts = self.launched.facts(row)
        self._add(_KERNELS, facts["name"], start, cat=row.kind, args=facts)

    def _enter(self, scopes: tuple[str, ...]) -> None:
        """End the scopes that a kernel is not in, and begin those that it is in."""
        common = 0
        while common < min(len(scopes), len(self.open_scopes)):
            if scopes[common] != self.open_scopes[common][0]:
                break
            common += 1
        while len(self.open_scopes) > common:
            name, start = self.open_scopes.pop()
            self._add(_SCOPES, name, start)
        self.open_scopes += [(name, self.now) for name in scopes[common:]]

    def _loop(self, loop: Instruction) -> None:
        start, trips = self.now, trip_count_of(loop)
        count = 1 if trips is None else trips
        drawn = min(count, MOST_ITERATIONS)
        last = start
        for n in range(drawn):
            if n and len(self.events) > MOST_EVENTS:
                drawn = n
                break
            last = self.now
            for callee in _bodies(loop):
                self._run(callee)
            self._add(_LOOPS, f"iteration {n + 1}", last)
        if rest := count - drawn:
            before = self.now
            self.now += rest * (before - last)
            self._add(_KERNELS, f"… {rest:,} more iterations", before, args={"iterations": rest})
        args = {"trip count": "unknown: one iteration is counted" if trips is None else trips}
        name = self.launched.name(loop) + ("" if trips is None else f" ×{trips:,}")
        self._add(_LOOPS, name, start, args=args)


def _bodies(loop: Instruction) -> Iterator[Computation]:
    return (callee for name, callee in loop.called if runs_in(loop, name))


def _scopes(i: Instruction) -> tuple[str, ...]:
    return tuple(filter(None, printable(layer_of(i.op_name)).split("/")))
