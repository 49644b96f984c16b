"""Joining fusions that do not depend on each other into one (`HorizontalLoopFusionImpl::Fuse`)."""

from collections.abc import Sequence

from .attributes.attributes import Attributes
from .fusing import computation_of, get_tuple_element, module_of, tuple_of
from .graph import Computation, Instruction
from .record import replace
from .removing import remove_parameter, replace_instruction
from .shape import Layout, Shape

_PREFIX = "horizontally_fused_computation"


def join_fusions(fusions: Sequence[Instruction], *, sliced: bool) -> Instruction:
    """One fusion that replaces several with equally many results each. With `sliced`, results are flattened
    and concatenated, and users read slices; otherwise they stay separate."""
    computation = computation_of(fusions[0])
    module = module_of(computation)
    body = _joined_body(fusions, sliced)
    module.add_computation(body)
    raw = {"kind": "kInput" if sliced else "kLoop", "calls": f"%{body.name}"}
    operands = [o for f in fusions for o in f.operands]
    joined = Instruction(
        "fusion", body.root.shape, "fusion", operands, Attributes(raw=raw), called=[("calls", body)]
    )
    computation.add_instruction(joined)
    index = 0
    for fusion in fusions:
        results = []
        for output in fusion.fused_root.outputs:
            element = get_tuple_element(joined, index, joined.shape.tuple_shapes[index])
            index += 1
            if output.shape.rank != 1:
                element = computation.add_instruction(
                    Instruction("bitcast", output.shape, "bitcast", [element])
                )
            results.append(element)
        result = results[0]
        if len(results) > 1:
            result = computation.add_instruction(tuple_of(results))
        old_body = fusion.fused_computation
        replace_instruction(fusion, result)
        module.remove_computation(old_body)
    _share_operands(joined)
    return joined


def _joined_body(fusions: Sequence[Instruction], sliced: bool) -> Computation:
    """`CreateFusedComputation`."""
    body = Computation(_PREFIX)
    clones = {}
    for i, fusion in enumerate(fusions):
        for j, old in enumerate(fusion.fused_computation.parameters):
            clones[old] = body.append_parameter(f"param_{i}_{j}", old.shape)
    for fusion in fusions:
        for old in fusion.fused_computation.post_order():
            if old.opcode == "parameter" or (sliced and old.opcode == "tuple" and old is fusion.fused_root):
                continue
            clones[old] = body.append_parsed(old.clone([clones[o] for o in old.operands]))
    outputs = [[clones[o] for o in fusion.fused_root.outputs] for fusion in fusions]
    if sliced:
        columns = [_slices(body, column) for column in zip(*outputs, strict=True)]
        outputs = [list(row) for row in zip(*columns, strict=True)]
    elements = [o for row in outputs for o in row]
    body.root = body.append_parsed(tuple_of(elements))
    return body


def _slices(body: Computation, results: Sequence[Instruction]) -> list[Instruction]:
    flat = []
    for result in results:
        if result.shape.rank != 1:
            result = Instruction(
                "reshape",
                Shape(result.element_type, (result.shape.element_count,), Layout((0,))),
                "reshape",
                [result],
            )
            body.append_parsed(result)
        flat.append(result)
    total = sum(r.shape.element_count for r in flat)
    whole = replace(flat[0].shape, dimensions=(total,))
    concatenate = Instruction(
        "concatenate", whole, "concatenate", flat, Attributes(raw={"dimensions": "{0}"})
    )
    body.append_parsed(concatenate)
    slices, start = [], 0
    for result in flat:
        limit = start + result.shape.element_count
        slice_ = Instruction(
            "slice",
            replace(whole, dimensions=(limit - start,)),
            "slice",
            [concatenate],
            Attributes(raw={"slice": f"{{[{start}:{limit}]}}"}),
        )
        body.append_parsed(slice_)
        slices.append(slice_)
        start = limit
    return slices


def _share_operands(fusion: Instruction) -> None:
    """Parameters for the same operand become one (`HloFusionInstruction::DeduplicateFusionOperands`)."""
    body = fusion.fused_computation
    first = dict[Instruction, int]()
    repeated = []
    for number, operand in enumerate(fusion.operands):
        if operand in first:
            body.parameters[number].replace_all_uses_with(body.parameters[first[operand]])
            repeated.append(number)
        else:
            first[operand] = number
    for number in reversed(repeated):
        remove_parameter(body, number)
        fusion.remove_operand(number)
