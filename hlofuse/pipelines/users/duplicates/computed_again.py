"""Values that what a scan does, or a derivative in it, computes again: what reads them tells."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_called_once
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.duplicates.normalized_again import Gone
from hlofuse.pipelines.users.duplicates.source_expressions import readers_of_twin


def computed_again(x: Instruction, uses: Uses) -> list[Gone]:
    """Those equal to `x` that are gone: HloCSE (`xla/service/hlo_cse.cc`) keeps what its walk meets first."""
    if not is_called_once(x):
        return []
    if is_inverse_square(x):
        again = _readers_elsewhere(x, uses)
        return [Gone(x, reader.id, uses[x, reader]) for reader in again]
    again = readers_of_twin(x)
    if not again:
        return []
    return [Gone(x, min(reader.id for reader in again), min(uses[x, reader] for reader in again))]


def is_inverse_square(x: Instruction) -> bool:
    """Is it what the derivative of a quotient multiplies by, 1 / (y * y)?"""
    if x.opcode != "divide" or x.operands[1].opcode != "multiply":
        return False
    square = x.operands[1]
    return square.operands[0] is square.operands[1] and stack_frame(square) == stack_frame(x)


def _readers_elsewhere(x: Instruction, uses: Uses) -> list[Instruction]:
    """What reads `x` where another quotient by the same value is, as met: each had its own."""
    divisor = x.operands[1].operands[0]
    places = {stack_frame(u) for u in divisor.users if u.opcode == "divide" and u.operands[1] is divisor}
    readers: dict[int, Instruction] = {}
    for reader in sorted(x.users, key=lambda u: uses[x, u]):
        if operation(reader) == "mul" and stack_frame(reader) in places:
            readers.setdefault(stack_frame(reader), reader)
    return [*readers.values()][1:]
