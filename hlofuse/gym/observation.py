"""What an environment shows of a module: opcode counts, or its graph in arrays of a fixed size."""

from collections import Counter
from typing import Any

import numpy as np
from gymnasium import spaces

from hlofuse.ir.graph import Module
from hlofuse.ir.opcodes import OPCODES

NUMBERS = {opcode: n for n, opcode in enumerate(sorted(OPCODES))}
"""The place of an opcode in the counts, and its number in the graph."""


def counts_space() -> spaces.Box:
    """log(1 + n) for the instructions of each opcode, then for the computations and the steps so far."""
    return spaces.Box(0.0, 32.0, (len(NUMBERS) + 2,), np.float32)


def counts_array(counts: Counter[str], computations: int, steps: int) -> np.ndarray:
    return np.log1p(np.array([*map(counts.__getitem__, NUMBERS), computations, steps], np.float32))


def graph_space(nodes: int, edges: int) -> spaces.Dict:
    """`nodes` by opcode, `edges` as (from, to, 1 for a called computation's root), `sizes` of both, `counts`.

    What does not fit is left out, from the end; `sizes` counts what is there.
    """
    return spaces.Dict(
        counts=counts_space(),
        nodes=spaces.Box(0, len(NUMBERS), (nodes,), np.int32),
        edges=spaces.Box(0, max(nodes - 1, 1), (edges, 3), np.int32),
        sizes=spaces.Box(0, max(nodes, edges), (2,), np.int32),
    )


def graph_arrays(module: Module, nodes: int, edges: int) -> dict[str, Any]:
    """The arrays of `graph_space` but for the counts."""
    number = {i: n for n, i in enumerate(i for c in module.computations for i in c) if n < nodes}
    pairs = [
        (number[source], n, int(source.computation is not i.computation))
        for i, n in number.items()
        for source in (*i.operands, *(c.root for c in i.called_computations))
        if source in number
    ][:edges]
    shown, linked = np.zeros(nodes, np.int32), np.zeros((edges, 3), np.int32)
    shown[: len(number)] = [NUMBERS.get(i.opcode, len(NUMBERS)) for i in number]
    linked[: len(pairs)] = np.array(pairs, np.int32).reshape(-1, 3)
    return {"nodes": shown, "edges": linked, "sizes": np.array([len(number), len(pairs)], np.int32)}
