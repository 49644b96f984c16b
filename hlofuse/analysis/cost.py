"""Flops and bytes of instructions, computations and modules, as XLA's `HloCostAnalysis` counts them.

Mirrors `xla/service/hlo_cost_analysis.cc` of jaxlib 0.11.1, in whole numbers where XLA sums single
precision floats. A loop counts as one iteration, a conditional as the most expensive of its branches. XLA
knows nothing of what a custom call does: such an instruction costs nothing here and is counted in
`Cost.unknown` (XLA subtracts 1 from every sum instead). The start of an asynchronous operation has the
cost of its updates and its done as well, so that kernels add up to their computation."""

from operator import add
from typing import NamedTuple

from msgspec import Struct

from hlofuse.analysis import flops as count
from hlofuse.ir.graph import Computation, Instruction, callees_first
from hlofuse.ir.opcodes import values
from .async_ops import ends_of, is_async_end, start_of, wrapped_operation
from .custom_calls import is_annotation
from .elementwise import transpose_is_bitcast
from .flops import fusion_bytes


class Cost(NamedTuple):
    """Operations and bytes of an instruction or a sum of them, all exact counts."""

    flops: int = 0
    transcendentals: int = 0  # exp, log, tanh and similar ones; not part of `flops`
    bytes_read: int = 0
    bytes_written: int = 0
    unknown: int = 0  # Custom calls, about which nothing is known

    @property
    def bytes_accessed(self) -> int:
        """Bytes read and written: XLA's `bytes accessed`."""
        return self.bytes_read + self.bytes_written

    def __add__(self, other: "Cost") -> "Cost":  # type: ignore[override]
        return Cost(*map(add, self, other))

    def work(self, times: int) -> "Cost":
        """Arithmetic alone, done `times` times: what a reduce takes over from its function."""
        return Cost(self.flops * times, self.transcendentals * times, unknown=self.unknown)


NOTHING = Cost()

# A view, a name or an order in time: no byte is touched.
_FREE = values("parameter constant get-tuple-element domain after-all add-dependency bitcast")


class CostAnalysis(Struct, eq=False):
    """Costs with a memory: each computation is added up once. For a module that does not change."""

    _computations: dict[Computation, Cost] = {}
    _instructions: dict[Instruction, Cost] = {}

    def instruction(self, instruction: Instruction) -> Cost:
        """The cost of one execution, with everything it calls."""
        cached = self._instructions.get(instruction)
        if cached is None:
            for callee in instruction.called_computations:
                self.computation(callee)
            cached = self._instructions[instruction] = self._cost(instruction)
        return cached

    def computation(self, computation: Computation) -> Cost:
        if computation not in self._computations:
            for current in callees_first([computation]):
                if current not in self._computations:
                    own = zip(*map(self.instruction, current), strict=True)
                    self._computations[current] = Cost(*map(sum, own))
        return self._computations[computation]

    def _callee(self, instruction: Instruction, attribute: int = 0) -> Cost:
        if attribute >= len(instruction.called):
            return NOTHING
        return self._computations.get(instruction.called[attribute][1], NOTHING)

    def _cost(self, instruction: Instruction) -> Cost:
        cost = self._without_ends(instruction)
        caller = instruction.called_by("async-start") if instruction.is_root else None
        return cost + _ends(caller) if caller is not None else cost

    def _without_ends(self, instruction: Instruction) -> Cost:
        opcode = instruction.opcode
        if opcode in _FREE or (opcode == "transpose" and transpose_is_bitcast(instruction)):
            return NOTHING
        if opcode == "fusion":
            if instruction.fusion_kind == "kCustom":
                # A library's gather or scatter is costed as that operation alone.
                for inner in instruction.fused_computation:
                    if inner.opcode in ("gather", "scatter"):
                        return self._cost(inner)
            work = self._callee(instruction)
            read, written = fusion_bytes(instruction)
            return Cost(work.flops, work.transcendentals, read, written, work.unknown)
        if opcode in ("call", "async-start"):
            return self._callee(instruction)
        if opcode == "while":
            return self._callee(instruction) + self._callee(instruction, 1)
        if opcode == "conditional":
            return _greatest([self._computations.get(c, NOTHING) for c in instruction.called_computations])
        if opcode == "custom-call":
            return NOTHING if is_annotation(instruction) else Cost(unknown=1)
        if is_async_end(opcode) and start_of(instruction) is not None:
            return NOTHING  # part of its start
        if (operation := wrapped_operation(instruction)) is not None:
            return self._cost(operation) + _ends(instruction)
        if opcode.endswith("-start") or opcode in ("send", "recv"):
            return self._operation(instruction) + _ends(instruction)
        return self._operation(instruction)

    def _operation(self, instruction: Instruction) -> Cost:
        read, written = _bytes(instruction)
        flops, transcendentals, _, _, unknown = self._work(instruction)
        return Cost(flops, transcendentals, read, written, unknown)

    def _work(self, instruction: Instruction) -> Cost:
        opcode = instruction.opcode
        shape = instruction.shape
        if opcode in count.ELEMENTWISE:
            return Cost(count.elements(shape))
        if opcode in count.TRANSCENDENTAL or opcode == "rng":
            return Cost(0, count.elements(shape))
        if opcode == "rng-bit-generator":
            return Cost(0, sum(count.elements(leaf) for leaf in shape.leaf_shapes))
        if opcode in ("all-reduce", "all-reduce-start"):
            return Cost(sum(count.elements(leaf) for leaf in shape.leaf_shapes))
        if not instruction.operands:
            return NOTHING
        if opcode in _FLOPS:
            return Cost(_FLOPS[opcode](instruction))
        applied = enumerate(count.applications(instruction))
        return sum((self._callee(instruction, k).work(times) for k, times in applied), NOTHING)


_FLOPS = count.FLOPS | {
    "triangular-solve": count.triangular_solve_flops,
    "cholesky": count.cholesky_flops,
}


def _ends(start: Instruction) -> Cost:
    """The traffic of updates and dones, which XLA counts as copies."""
    return sum((Cost(0, 0, *_bytes(end)) for end in ends_of(start)), NOTHING)


def _bytes(instruction: Instruction) -> tuple[int, int]:
    opcode, operands, shape = instruction.opcode, instruction.operands, instruction.shape
    sizes, result = [o.shape.buffer_size for o in operands], shape.buffer_size
    if opcode == "tuple":
        return 0, result
    if opcode == "gather" and len(sizes) > 1 and (slices := count.padded_slices(instruction)):
        return slices + sizes[1], result
    if opcode in ("dynamic-slice", "gather") and len(sizes) > 1:
        return result + sizes[1], result
    if opcode in ("slice", "dynamic-slice"):
        return result, result
    if opcode == "dynamic-update-slice" and len(sizes) > 1:
        return sum(sizes[1:3]), sizes[1]
    if opcode == "scatter" and len(sizes) > 2:
        n = len(sizes) // 2
        updates = sum(sizes[n + 1 :])
        if tiles := count.padded_updates(instruction):
            return tiles + updates + sizes[n], tiles
        return 2 * updates + sizes[n], updates
    if opcode == "infeed":
        return 0, shape.leaves_size
    if opcode == "outfeed":
        return sum(o.shape.leaves_size for o in operands), 0
    if opcode == "triangular-solve" and len(sizes) > 1:
        return sizes[0] // 2 + sizes[1], result
    if opcode == "cholesky" and operands:
        return sizes[0] // 2, -(-sizes[0] // 2)
    return sum(sizes), shape.leaves_size


def _greatest(costs: list[Cost]) -> Cost:
    """The greatest of each figure, bytes together (XLA takes the maximum property by property)."""
    if not costs:
        return NOTHING
    by_bytes = max(costs, key=lambda c: c.bytes_accessed)
    return Cost(
        max(c.flops for c in costs),
        max(c.transcendentals for c in costs),
        by_bytes.bytes_read,
        by_bytes.bytes_written,
        max(c.unknown for c in costs),
    )
