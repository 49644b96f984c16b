"""Computations of two scalars, for what reduces."""

from __future__ import annotations

from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.passes.common.shapes import array


def reducer(
    at: Instruction, name: str, opcode: str, element_type: str, parameters: tuple[str, str] = ("lhs", "rhs")
) -> Computation:
    """A new one in the module of `at`, of parameters of these names."""
    body = Computation(name)
    shape = array(element_type)
    sides = [Instruction(n, shape, "parameter", payload=str(k)) for k, n in enumerate(parameters)]
    body.root = Instruction(opcode, shape, opcode, sides)
    for i in (*sides, body.root):
        body.append_parsed(i)
    return module_of(computation_of(at)).add_computation(body)
