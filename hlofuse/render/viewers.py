"""The kernels of one step as a trace, in Chrome's trace event format, which Perfetto opens."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hlofuse.account import Account, Launched
from hlofuse.analysis.kernels import (
    CONTROL_FLOW,
    kernel_source,
    launched_computations,
    runs_in,
    trip_count_of,
)
from hlofuse.format.escape import printable
from hlofuse.format.paths import layer_of, source_text
from hlofuse.format.units import plural
from hlofuse.ir import Computation, Instruction
from hlofuse.ir.grouping import common_length
from hlofuse.ir.text.printer import print_instruction
from hlofuse.render.labels import cut, role, sources, value_title


@dataclass(frozen=True, slots=True)
class LaunchedModule:
    """A module, the costs of its kernels, and their names."""

    account: Account
    title: str
    names_at_fusion: Mapping[str, str]
    """Names at fusion by final names, without later additions."""

    @property
    def time(self) -> str:
        """`measured time`, else `estimated time`; empty without either."""
        totals = self.account.totals
        return "measured time" if totals.measured_us else "estimated time" if totals.us is not None else ""

    def us(self, row: Launched) -> float | None:
        """Microseconds of one run, measured if there is a profile: a kernel without launches took no time."""
        if self.account.totals.measured_us:
            return row.measured.us if row.measured is not None else 0.0
        return row.us

    def name(self, i: Instruction) -> str:
        """The name that a profiler shows."""
        return printable(i.name)

    def facts(self, row: Launched) -> dict[str, Any]:
        """A kernel's figures for one run, and its source."""
        i, cost = row.instruction, row.cost
        source = kernel_source(i, self.account.module)
        facts: dict[str, Any] = {"name": self.name(i)}
        if (at_fusion := self.names_at_fusion.get(i.name)) is not None:
            facts["name at fusion"] = printable(at_fusion)
        facts |= {"opcode": i.opcode, "kind": row.kind}
        if source is not None:
            facts["source"] = printable(source_text(source))
        if i.op_name:
            facts["op_name"] = printable(i.op_name)
        facts |= {"bytes read": cost.bytes_read, "bytes written": cost.bytes_written, "FLOP": cost.flops}
        if row.measured is not None:
            facts["measured time (µs)"] = round(row.measured.us, 4)
        if row.us is not None:
            facts |= {"estimated time (µs)": round(row.us, 4), "is lower bound": row.is_floor}
        facts["runs"] = row.runs
        if row.per_iteration:
            facts["trip count"] = "unknown: one iteration is counted"
        return facts


MOST_ITERATIONS = 10
"""The limit of iterations shown for a loop; the rest is one event."""
MOST_EVENTS = 50_000
"""The limit of events; with more, loops show one iteration each."""

_KERNELS, _SCOPES, _LOOPS = 1, 2, 3


def to_trace(launched: LaunchedModule, compressed: bool = False) -> bytes:
    """JSON, with `compressed` by gzip; the same module gives the same bytes.

    Kernels run in sequence, in the module's order: XLA's schedule where the module has one. A kernel without
    an estimated time lasts 1 µs for each kB of traffic.
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
        self._switch_scopes(())
        unit = self.launched.time or "1 µs stands for 1 kB moved: no time model"
        title = f"{printable(module.name)}, {self.launched.title} ({unit})"
        names = [("process_name", 0, title), ("thread_name", _KERNELS, "kernels")]
        names += [("thread_name", _SCOPES, "scopes of op_name"), ("thread_name", _LOOPS, "loops")]
        head = [{"ph": "M", "pid": 1, "tid": t, "name": n, "args": {"name": text}} for n, t, text in names]
        # Of events that begin together the longest comes first: the others lie inside it.
        self.events.sort(key=lambda e: (e["tid"], e["ts"], -e["dur"]))
        return {"displayTimeUnit": "ns", "traceEvents": [*head, *self.events]}

    def _add(self, thread: int, name: str, start: float, **more: Any) -> None:
        start, end = round(start, 3), round(self.now, 3)  # whole ns, or viewers see overlaps
        event = {"ph": "X", "pid": 1, "tid": thread, "name": name, "ts": start, "dur": round(end - start, 3)}
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
        self._switch_scopes(tuple(filter(None, printable(layer_of(row.instruction.op_name)).split("/"))))
        start = self.now
        us = self.launched.us(row)
        self.now += max(row.cost.bytes_accessed / 1e3 if us is None else us, 0.001)
        facts = self.launched.facts(row)
        self._add(_KERNELS, facts["name"], start, cat=row.kind, args=facts)

    def _switch_scopes(self, scopes: tuple[str, ...]) -> None:
        common = common_length(scopes, [name for name, _ in self.open_scopes])
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
            for name, callee in loop.called:
                if runs_in(loop, name):
                    self._run(callee)
            self._add(_LOOPS, f"iteration {n + 1}", last)
        if rest := count - drawn:
            before = self.now
            self.now += rest * (before - last)
            self._add(_KERNELS, f"… {rest:,} more iterations", before, args={"iterations": rest})
        args = {"trip count": "unknown: one iteration is counted" if trips is None else trips}
        name = self.launched.name(loop) + ("" if trips is None else f" ×{trips:,}")
        self._add(_LOOPS, name, start, args=args)


_COLORS = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#d55e00"}]


def to_model_explorer(launched: LaunchedModule) -> tuple[bytes, bytes]:
    """The graph, and its node data: the time of each kernel, or its bytes without times.

    The figure of a fusion is that of its root, so that sums over a layer are right. All runs are counted.
    """
    graph = _Graph(launched)
    name = printable(launched.account.module.name)
    document = {"id": name, "nodes": graph.nodes, "groupNodeAttributes": graph.layers}
    title = f"{launched.time} (µs)" if launched.time else "bytes moved"
    data = {name: {"name": title, "results": graph.results, "gradient": _COLORS}}
    return _json({"label": name, "graphs": [document]}), _json(data)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class _Graph:
    def __init__(self, launched: LaunchedModule) -> None:
        self.launched = launched
        self.account = launched.account
        self.nodes: list[dict[str, Any]] = []
        self.results: dict[str, dict[str, float]] = {}
        self.layers: dict[str, dict[str, str]] = {}
        self.launched_computations = set(launched_computations(self.account.module))
        self.open_fusions = {i for i in self.account.module.instructions() if _is_layer(i)}
        self.drawn: set[str] = set()
        self._add(self.account.module.entry, (), [])

    def _add(self, computation: Computation, layers: tuple[str, ...], arguments: list[Instruction]) -> None:
        """The instructions of a computation in `layers`; its parameters take `arguments`."""
        is_fused = computation.fusion is not None
        for i in computation.post_order():
            inside = layers if is_fused else (*layers, *_own_scopes(i, layers))
            if i in self.open_fusions:
                inside = (*inside, _component(self.launched.name(i)))
                self._add(i.fused_computation, inside, [])
                self._measure(i, _unique_id(i.fused_root), "/".join(inside))
            elif i.opcode == "get-tuple-element" or (is_fused and i.opcode == "parameter"):
                continue  # edges come from what computes the value
            elif i.opcode != "tuple" or i is self.account.module.entry.root:
                self._add_unfused(i, inside, arguments)

    def _add_unfused(self, i: Instruction, layers: tuple[str, ...], arguments: list[Instruction]) -> None:
        """The node of `i`; called computations are in a layer with it, and a loop's results lead to it."""
        inputs: list[Instruction] = i.operands
        if i.opcode == "parameter":
            inputs = arguments[i.parameter_number : i.parameter_number + 1]
        callees = [(role(a), c) for a, c in i.called if c in self.launched_computations]
        if callees:
            trips = trip_count_of(i) if i.opcode == "while" else None
            count = f" ({plural(trips, 'iteration')})" if trips is not None else ""
            layers = (*layers, _component(self.launched.name(i) + count))
            inputs = [c.root for _, c in callees]
        for n, (part, callee) in enumerate(callees):
            given = i.operands[n + 1 : n + 2] if i.opcode == "conditional" else i.operands
            inner = (*layers, _component(f"{part} {callee.name}")) if len(callees) > 1 else layers
            self._add(callee, inner, given)
        self._node(i, layers, inputs)

    def _node(self, i: Instruction, layers: tuple[str, ...], inputs: list[Instruction]) -> None:
        edges = [
            {
                "sourceNodeId": _unique_id(source),
                "sourceNodeOutputId": ".".join(map(str, path)) or "0",
                "targetNodeInputId": str(n),
            }
            for n, value in enumerate(inputs)
            for source, path in sources(value, self.open_fusions, ())
        ]
        shapes = i.shape.tuple_shapes if i.shape.is_tuple else (i.shape,)
        outputs = [
            {"id": str(n), "attrs": [{"key": "shape", "value": s.text_without_layout}]}
            for n, s in enumerate(shapes)
        ]
        node = {
            "id": _unique_id(i),
            "label": value_title(i) if i.opcode == "parameter" else i.opcode,
            "namespace": "/".join(layers),
            "incomingEdges": edges,
            "outputsMetadata": outputs,
        }
        self.nodes.append(node)
        self.drawn.add(_unique_id(i))
        facts = self._measure(i, _unique_id(i)) | {"HLO": cut(print_instruction(i), 1000)}
        if (source := self.account.module.source_of(i)) is not None:
            facts["source"] = printable(source_text(source))
        node["attrs"] = [{"key": key, "value": value} for key, value in facts.items()]

    def _measure(self, kernel: Instruction, node: str, layer: str = "") -> dict[str, str]:
        """The facts about a kernel; its figure belongs to a node, or to the last one where that
        is not drawn."""
        row = self.account.by_name.get(kernel.name)
        if row is None or row.instruction is not kernel:
            return {}
        us = self.launched.us(row)
        value = round(row.runs * (row.cost.bytes_accessed if us is None else us), 4)
        self.results[node if node in self.drawn else self.nodes[-1]["id"]] = {"value": value}
        facts = {key: str(fact) for key, fact in self.launched.facts(row).items()}
        if layer:
            self.layers[layer] = facts
        return facts


def _unique_id(i: Instruction) -> str:
    """Unique in any module; names are only in a module written by XLA."""
    return printable(f"{i.computation.name}/{i.name}" if i.computation is not None else i.name)


def _is_layer(i: Instruction) -> bool:
    no_node = ("parameter", "get-tuple-element", "tuple")
    return (
        i.opcode == "fusion" and bool(i.called) and any(x.opcode not in no_node for x in i.fused_computation)
    )


def _own_scopes(i: Instruction, layers: tuple[str, ...]) -> list[str]:
    """The scopes of an operation within the first ones in `layers`."""
    scopes = [_component(s) for s in layer_of(i.op_name).split("/") if s]
    return scopes[common_length(scopes, layers) :]


def _component(name: str) -> str:
    return printable(name).replace("/", "|")
