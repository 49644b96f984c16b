"""What an environment shows of a module: opcode counts, or its graph in arrays of a fixed size."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from gymnasium import spaces

from hlofuse.ir.graph import Module
from hlofuse.ir.opcodes import OPCODES

NUMBERS = {opcode: n for n, opcode in enumerate(sorted(OPCODES))}
"""The place of an opcode in the counts, and its number in the graph."""
_LOG_LIMIT = 32.0


def opcode_counts(module: Module) -> Counter[str]:
    """Instructions of all computations by opcode."""
    return Counter([i.opcode for c in module.computations for i in c])


def counts_space() -> spaces.Box:
    """log(1 + n) for the instructions of each opcode, then for the computations and for the steps so far."""
    return spaces.Box(0.0, _LOG_LIMIT, (len(NUMBERS) + 2,), np.float32)


def counts_array(counts: Counter[str], computations: int, steps: int) -> np.ndarray:
    numbers = np.zeros(len(NUMBERS) + 2, np.float32)
    for opcode, n in counts.items():
        if opcode in NUMBERS:
            numbers[NUMBERS[opcode]] = n
    numbers[-2:] = computations, steps
    return np.log1p(numbers)


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
    number = {i: n for n, i in enumerate(i for c in module.computations for i in c)}
    opcodes = [NUMBERS.get(i.opcode, len(NUMBERS)) for i in number][:nodes]
    pairs = [
        (number[source], n, int(source.computation is not i.computation))
        for i, n in number.items()
        for source in (*i.operands, *(c.root for c in i.called_computations))
        if n < nodes and number[source] < nodes
    ][:edges]
    padded = np.zeros(nodes, np.int32), np.zeros((edges, 3), np.int32)
    padded[0][: len(opcodes)] = opcodes
    padded[1][: len(pairs)] = np.array(pairs, np.int32).reshape(-1, 3)
    return {"nodes": padded[0], "edges": padded[1], "sizes": np.array([len(opcodes), len(pairs)], np.int32)}
