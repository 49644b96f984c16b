"""What a fusion reads and writes (`HloCostAnalysis::HandleFusion` and what it calls).

Values inside a fusion never reach memory, so it touches its parameters, as far as they are really
read, its results, and constants too large to be immediates.
"""

from __future__ import annotations

from hlofuse.analysis.bitcasts import shape_size
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape


def fusion_bytes(fusion: Instruction) -> tuple[int, int]:
    """Bytes read and written by one run of `fusion`."""
    computation = fusion.fused_computation
    read = sum(_parameter_bytes(p) for p in dict.fromkeys(computation.parameters))
    for i in computation:
        if i.opcode == "constant" and i.shape.is_array and i.shape.element_count > 1:
            read += shape_size(i.shape)
    return read, _written(fusion)


def _written(fusion: Instruction) -> int:
    root = fusion.fused_root
    if not fusion.shape.is_tuple:
        return _result_bytes(root, fusion.shape)
    total = 0
    for index, shape in fusion.shape.leaves():
        if not shape.is_array:
            continue
        source = root
        if len(index) == 1 and root.opcode == "tuple" and index[0] < len(root.operands):
            source = root.operands[index[0]]
        total += _result_bytes(source, shape)
    return total


def _result_bytes(root: Instruction, shape: Shape) -> int:
    # An update in place writes the update alone.
    if root.opcode == "dynamic-update-slice" and len(root.operands) > 1:
        return shape_size(root.operands[1].shape)
    return shape_size(shape) if shape.is_array else 0


def _parameter_bytes(parameter: Instruction) -> int:
    if not parameter.shape.is_tuple:
        return read_bytes(parameter)
    total = 0
    for index, _ in parameter.shape.leaves():
        element = parameter
        for i in index:
            element = next(
                (u for u in element.users if u.opcode == "get-tuple-element" and u.tuple_index == i), element
            )
        total += read_bytes(element)
    return total


def read_bytes(value: Instruction, depth: int = 0) -> int:
    """How much of a fusion's parameter is read (`FusionParameterReadBytes`).

    A slice reads its own size; other users share one read of the whole.
    """
    size = shape_size(value.shape)
    total = 0
    shared = False
    for user in value.users:
        opcode = user.opcode
        if opcode == "slice" or (opcode == "dynamic-slice" and user.operands[0] is value):
            total += shape_size(user.shape)
        elif opcode == "dynamic-update-slice" and user.operands[0] is value:
            pass  # shares its memory with the result
        elif opcode in ("broadcast", "reshape"):
            total += size
        elif opcode == "fusion" and depth < 64:
            total += sum(
                _read_through(user, number, depth) for number, o in enumerate(user.operands) if o is value
            )
        elif not shared:
            shared = True
            total += size
    return total


def _read_through(fusion: Instruction, number: int, depth: int) -> int:
    """What a fusion nested in a fusion reads of its operand, by what becomes of its result."""
    parameters = fusion.fused_computation.parameters
    if number >= len(parameters):
        return 0
    parameter, root = parameters[number], fusion.fused_root
    simple = not root.operands or parameter is root.operands[0]
    total = 0
    seen = False
    for user in fusion.users:
        opcode = user.opcode
        sliced = opcode == "slice" or (opcode == "dynamic-slice" and user.operands[0] is fusion)
        if simple and sliced:
            total += shape_size(user.shape)
        elif simple and opcode in ("dynamic-slice", "dynamic-update-slice"):
            if not seen and user.operands[0] is not fusion:
                seen = True
                total += shape_size(fusion.shape)
        elif not seen:
            seen = True
            total += read_bytes(parameter, depth + 1)
    return total
