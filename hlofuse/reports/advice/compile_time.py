"""Operations that XLA evaluates while it compiles, and that take long."""

import math
from collections.abc import Iterator

from hlofuse.analysis.kernels import kernel_source
from hlofuse.format.escape import printable
from hlofuse.format.paths import source_text
from hlofuse.format.units import quantity
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.opcodes import with_trait
from hlofuse.passes.algebraic.constant_folding import MOST_FOLDED
from hlofuse.passes.common.shapes import window_of

_STEPS = 1_000_000
"""About 2 s: XLA's evaluator took 2 to 3 µs for each function of a window's element (jaxlib 0.11.1, CPU).

Sums, products, scatters and elementwise operations on 1,000,000 elements compiled in less than 0.6 s.
"""


def compile_time_notes(module: Module) -> Iterator[str]:
    """A sentence for each slow evaluation of a constant in a module before optimizations.

    Mirrors the conditions of `HloConstantFolding` (`xla/hlo/transforms/simplifiers/hlo_constant_folding.cc`).
    """
    constants: set[Instruction] = set()
    for x in (x for c in reversed(module.computations) for x in c.post_order()):
        if not _is_constant(x, constants):
            continue
        constants.add(x)
        steps = _steps(x)
        if steps >= _STEPS and x.shape.element_count <= MOST_FOLDED:
            source = kernel_source(x, module)
            where = f" ({printable(source_text(source))})" if source is not None else ""
            text = f"{x.opcode} of a constant, {quantity(steps).strip()} steps{where}"
            yield f"Compile time: {text}; compute it outside jit"


def _is_constant(x: Instruction, constants: set[Instruction]) -> bool:
    if x.opcode in ("constant", "iota"):
        return True
    is_computed = x.opcode in ("reduce-window", "broadcast", "reshape") or x.opcode in with_trait(
        "elementwise"
    )
    return is_computed and bool(x.operands) and all(o in constants for o in x.operands)


def _steps(x: Instruction) -> int:
    """Applications of a function to an element of a window."""
    if x.opcode != "reduce-window" or not x.shape.is_array:
        return 0
    return x.shape.element_count * math.prod(d.size for d in window_of(x))
