"""Structure without names: equal keys for instructions that compute the same in the same kernels.

Keys are small integers handed out by one `Structures` to every module compared with it: two equal
keys mean equal trees all the way up to the parameters, with no chance of a collision. What a
computation is called, how instructions are called or ordered in the text, metadata and the order of a
fusion's parameters play no part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from hlofuse.analysis.kernels import is_kernel
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES

# Where an operation came from, and names (which the graph holds as edges).
_IGNORED = frozenset({*CALLED_COMPUTATION_ATTRIBUTES, "metadata", "control-predecessors", "origin", "kind"})


class Structures:
    """Hands out keys.

    `output_order` says whether the order of a multi-output fusion's results counts.
    """

    def __init__(self, *, output_order: bool = True) -> None:
        self._output_order = output_order
        self._keys: dict[Hashable, int] = {}
        self._texts: dict[tuple[int, ...], Hashable] = {}

    def _key(self, value: Hashable) -> int:
        return self._keys.setdefault(value, len(self._keys))

    def module(self, module: Module) -> ModuleStructure:
        """The keys of every instruction outside fusions."""
        structure = ModuleStructure(module)
        for computation in module.computation_post_order():
            if computation.fusion is None:
                self._computation(computation, structure)
        structure.key = self._key(
            ("module", structure.computations[module.entry], tuple(sorted(structure.computations.values())))
        )
        return structure

    def _computation(self, computation: Computation, structure: ModuleStructure) -> None:
        keys = structure.keys
        order = computation.post_order()
        for i in order:
            keys[i] = self._instruction(i, keys, structure)
        # Everything in it counts, also what the root does not need. An element of a tuple counts where it
        # is used: XLA's texts write no line for it, nor tell two equal ones apart.
        written = [i for i in order if i.opcode != "get-tuple-element" or i.is_root]
        content = tuple(sorted(keys[i] for i in written))
        structure.computations[computation] = self._key(("computation", keys[computation.root], content))
        structure.orders[computation] = written

    def _instruction(self, i: Instruction, keys: dict[Instruction, int], structure: ModuleStructure) -> int:
        operands = tuple(keys[o] for o in i.operands)
        if i.opcode == "fusion":
            return self._fusion(i, operands, structure)
        if i.opcode == "get-tuple-element" and not self._output_order:
            results = structure.results.get(i.operands[0])
            if results is not None and i.tuple_index < len(results):
                return self._key(("result", operands, results[i.tuple_index]))
        called = tuple(structure.computations.get(c, -1) for _, c in i.called)
        payload: Hashable = None
        if i.opcode == "constant":
            payload = i.literal.canonical_text
        elif i.payload is not None:
            payload = i.payload.strip()
        control = tuple(sorted(keys.get(p, -1) for p in i.control_predecessors))
        return self._key((i.opcode, i.shape.key, operands, called, payload, self._attributes(i), control))

    def _fusion(self, fusion: Instruction, operands: tuple[int, ...], structure: ModuleStructure) -> int:
        """A fusion is the operations inside it, its parameters being what it is called with."""
        body = fusion.fused_computation
        inner: dict[Instruction, int] = {}
        content = []
        for i in body.post_order():
            if i.opcode == "parameter":
                number = i.parameter_number
                inner[i] = operands[number] if number < len(operands) else -1
                continue
            inner[i] = self._instruction(i, inner, structure)
            if i.opcode != "tuple" or i is not body.root:
                content.append(inner[i])
        root = body.root
        shape: Hashable = fusion.shape.key
        if root.opcode == "tuple":
            results = tuple(inner[o] for o in root.operands)
            structure.results[fusion] = results
            result: Hashable = results if self._output_order else tuple(sorted(results))
            if not self._output_order:
                shape = "tuple"
        else:
            result = inner[root]
        kind = fusion.attributes.raw("kind")
        control = len(fusion.control_predecessors)
        return self._key(
            ("fusion", kind, shape, result, tuple(sorted(content)), self._attributes(fusion), control)
        )

    def _attributes(self, i: Instruction) -> Hashable:
        if i.opcode == "get-tuple-element":
            return i.tuple_index  # short texts write `%x#1` for it, with room for no more
        items = i.attributes.raw_items
        return tuple(sorted((k, "".join(v.split())) for k, v in items.items() if k not in _IGNORED))


class ModuleStructure:
    """The keys of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.key = -1
        """Of the whole module."""
        self.keys: dict[Instruction, int] = {}
        self.computations: dict[Computation, int] = {}
        self.orders: dict[Computation, list[Instruction]] = {}
        self.results: dict[Instruction, tuple[int, ...]] = {}
        """Keys of the results of multi-output fusions."""

    def counted(self) -> Counter[int]:
        """How often each key occurs among the instructions outside fusions."""
        return Counter(self.keys.values())

    def names(self) -> dict[int, list[str]]:
        """Names of the fusions by key."""
        found: dict[int, list[str]] = {}
        for i, key in self.keys.items():
            if i.opcode == "fusion":
                found.setdefault(key, []).append(i.name)
        return found


def first_unmatched(structure: ModuleStructure, other: Counter[int]) -> Instruction | None:
    """The first instruction, operands before users, that has no equal on the other side.

    Kernels go first: a constant too many is the trace of a kernel that took in another one's.
    """
    left = Counter(other)
    first = None
    for computation in structure.module.computation_post_order():
        for i in structure.orders.get(computation, ()):
            key = structure.keys[i]
            if left[key] > 0:
                left[key] -= 1
            elif is_kernel(i):
                return i
            else:
                first = first or i
    return first
