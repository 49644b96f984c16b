"""A module as a graph of Google's Model Explorer: scopes, loops and fusions are layers.

https://github.com/google-ai-edge/model-explorer/wiki/4.-API-Guide
"""

from __future__ import annotations

import json
from typing import Any

from hlofuse.analysis.kernels import launched_computations
from hlofuse.analysis.loops import trip_count_of
from hlofuse.format.escape import printable
from hlofuse.format.paths import layer_of, source_text
from hlofuse.format.units import plural
from hlofuse.ir import Computation, Instruction
from hlofuse.ir.text.printer import print_instruction
from hlofuse.render.labels import cut, role, sources, value_title
from hlofuse.render.launched import LaunchedModule

_COLORS = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#d55e00"}]


def to_model_explorer(launched: LaunchedModule) -> tuple[bytes, bytes]:
    """The graph, and its node data: the time of each kernel, or its bytes where there is no time model.

    The figure of a fusion is that of its root, so that sums over a layer are right. All runs are counted.
    """
    graph = _Graph(launched)
    name = printable(launched.account.module.name)
    document = {"id": name, "nodes": graph.nodes, "groupNodeAttributes": graph.layers}
    title = "estimated time (µs)" if launched.is_timed else "bytes moved"
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
                self._measure(i, _id(i.fused_root), "/".join(inside))
            elif i.opcode == "get-tuple-element" or (is_fused and i.opcode == "parameter"):
                continue  # edges come from what computes the value
            elif i.opcode != "tuple" or i is self.account.module.entry.root:
                self._add_unfused(i, inside, arguments)

    def _add_unfused(self, i: Instruction, layers: tuple[str, ...], arguments: list[Instruction]) -> None:
        """The node of `i`; what it calls lies in a layer with it, and of a loop the results lead to it."""
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
                "sourceNodeId": _id(source),
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
            "id": _id(i),
            "label": value_title(i) if i.opcode == "parameter" else i.opcode,
            "namespace": "/".join(layers),
            "incomingEdges": edges,
            "outputsMetadata": outputs,
        }
        self.nodes.append(node)
        self.drawn.add(_id(i))
        facts = self._measure(i, _id(i)) | {"HLO": cut(print_instruction(i), 1000)}
        if (source := self.account.module.source_of(i)) is not None:
            facts["source"] = printable(source_text(source))
        node["attrs"] = [{"key": key, "value": value} for key, value in facts.items()]

    def _measure(self, kernel: Instruction, node: str, layer: str = "") -> dict[str, str]:
        """The facts about a kernel; its figure goes to a node, or to the last one where that is not drawn."""
        row = self.account.by_name.get(kernel.name)
        if row is None or row.instruction is not kernel:
            return {}
        value = row.cost.bytes_accessed * row.runs if row.total_us is None else round(row.total_us, 4)
        self.results[node if node in self.drawn else self.nodes[-1]["id"]] = {"value": value}
        facts = {key: str(fact) for key, fact in self.launched.facts(row).items()}
        if layer:
            self.layers[layer] = facts
        return facts


def _id(i: Instruction) -> str:
    """Unique in any module; names are only in one that XLA wrote."""
    return printable(f"{i.computation.name}/{i.name}" if i.computation is not None else i.name)


def _is_layer(i: Instruction) -> bool:
    """True for a fusion with something to draw in it."""
    no_node = ("parameter", "get-tuple-element", "tuple")
    return (
        i.opcode == "fusion" and bool(i.called) and any(x.opcode not in no_node for x in i.fused_computation)
    )


def _own_scopes(i: Instruction, layers: tuple[str, ...]) -> list[str]:
    """The scopes of an operation within those that `layers` begins with."""
    scopes = [_component(s) for s in layer_of(i.op_name).split("/") if s]
    common = 0
    while common < min(len(scopes), len(layers)) and scopes[common] == layers[common]:
        common += 1
    return scopes[common:]


def _component(name: str) -> str:
    return printable(name).replace("/", "|")
