"""Moving instructions into fusions (`HloFusionInstruction`, `HloCallableInstruction`).

Everything XLA's passes do to a graph when they fuse is here: making a fusion, appending a
producer, appending it as a further output, merging one fusion into another. Names and the order of
operands, parameters and users come out as XLA's, because later decisions and names depend on them.
"""

from __future__ import annotations

from collections.abc import Callable

from hlofuse.ir.attributes import Attributes
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.removing import remove_parameter
from hlofuse.ir.replacing import replace_instruction
from hlofuse.ir.shape import Shape


def create_fusion(consumer: Instruction, kind: str, prefix: str = "") -> Instruction:
    """A fusion holding a clone of `consumer`, added to its computation (`HloInstruction::CreateFusion`).

    `consumer` keeps its uses; `fuse_in_place_of` moves them. The name is `<prefix>fusion`.
    """
    computation = _computation_of(consumer)
    module = _module_of(computation)
    body = Computation("fused_computation")
    clone = _clone(consumer)
    body.append_parsed(clone)
    body.root = clone
    module.add_computation(body)

    raw = {"kind": kind, "calls": f"%{body.name}"}
    for name in ("frontend_attributes", "metadata"):
        value = consumer.attributes.raw(name)
        if value is not None:
            raw[name] = value
    fusion = Instruction(
        f"{prefix}fusion", consumer.shape, "fusion", (), Attributes(raw=raw), called=[("calls", body)]
    )
    _connect_operands(fusion, clone)
    return computation.add_instruction(fusion)


def fuse_in_place_of(
    consumer: Instruction, kind: str, has_side_effect: Callable[[Instruction], bool], prefix: str = ""
) -> Instruction:
    """A fusion that takes `consumer`'s place, or `consumer` itself if it is one, set to `kind`.

    Mirrors `InstructionFusion::AddFusionInstruction`.
    """
    if consumer.opcode == "fusion":
        set_fusion_kind(consumer, kind)
        return consumer
    fusion = create_fusion(consumer, kind, prefix)
    replace_instruction(consumer, fusion, has_side_effect, relay_control_dependencies=True)
    return fusion


def set_fusion_kind(fusion: Instruction, kind: str) -> None:
    """Make it kLoop, kInput or kOutput (`set_fusion_kind`)."""
    if fusion.fusion_kind != kind:
        fusion.attributes = fusion.attributes.updated(kind=kind)


def append_producer(fusion: Instruction, producer: Instruction, *, add_output: bool = False) -> Instruction:
    """Clone `producer` into the fusion; the clone is returned.

    With `add_output` the producer's other users get its value from the fusion, which becomes a
    multi-output one; without it the fusion must be a user. The producer stays where it is.
    Mirrors `HloCallableInstruction::CloneAndAppendInstructionIntoCalledComputation`.
    """
    body = fusion.fused_computation
    # A tuple that is only taken apart again is not cloned: its elements become the outputs.
    keep = producer.opcode == "tuple" and all(u.opcode == "get-tuple-element" for u in producer.users)
    clone = producer if keep else body.add_instruction(_clone(producer))
    if producer in fusion.operands:
        number = fusion.operands.index(producer)
        body.parameters[number].replace_all_uses_with(clone)
        remove_parameter(body, number)
        fusion.remove_operand(number)
        if not producer.users:
            add_output = False
    _connect_operands(fusion, clone)
    if add_output:
        _add_output(fusion, producer, clone)
    return clone


def merge_fusion(fusion: Instruction, producer: Instruction) -> list[Instruction]:
    """Move clones of a producer fusion's instructions into `fusion`, one by one, root first.

    The producer stays for its other users. As in XLA the whole producer is cloned first and its clones
    read the outer operands themselves until they are moved: both shows in names and in users' order.
    Mirrors `HloFusionInstruction::MergeFusionInstruction`.
    """
    names = _module_of(_computation_of(fusion)).instruction_names
    body = producer.fused_computation
    whole = Instruction("", producer.shape, "fusion", producer.operands)
    order = body.post_order()
    order.reverse()
    # XLA clones twice, for the producer and for the fusion. One object stands for both here: it takes
    # the clone's place among the users of outer operands, and its inner users come when it is moved.
    clones: dict[Instruction, Instruction] = {}
    for inner in body:
        clones[inner] = clone = _clone(inner, [])
        clone.name = names.unique(inner.name)
    readers = _readers(body)
    for parameter in order:
        if parameter.opcode == "parameter":
            outer = clones[parameter] = producer.operands[parameter.parameter_number]
            for user in readers[parameter]:
                outer.add_user(clones[user])
    root = clones[body.root]
    producer.replace_use_with(fusion, root)
    if body.root.opcode != "parameter":
        names.unique("constant")  # a root to stand in while the clones are moved
    moved = []
    for inner in order:
        if inner.opcode != "parameter":
            clone = clones[inner]
            clone.operands = [clones[o] for o in inner.operands]
            _move_in(fusion, clone)
            moved.append(clone)
    _detach(whole)
    return moved


def _move_in(fusion: Instruction, clone: Instruction) -> None:
    """Put `clone`, which is in no computation, into the fusion, as `append_producer` would its own clone."""
    body = fusion.fused_computation
    body.add_instruction(clone)
    clone.users.clear()  # the fusion, if anything: all inside the producer have moved before
    operands = fusion.operands
    if clone in operands:
        number = operands.index(clone)
        body.parameters[number].replace_all_uses_with(clone)
        remove_parameter(body, number)
        del operands[number]
    outer = clone.operands
    clone.operands = []
    for operand in outer:
        clone.append_operand(_parameter_for(fusion, operand))
    for operand in dict.fromkeys(outer):
        if operand.computation is not None:  # otherwise one that is yet to be moved
            operand.remove_user(clone)


def _readers(body: Computation) -> dict[Instruction, list[Instruction]]:
    """The users of each parameter, in the order in which clones of them would be made."""
    readers = {p: p.users for p in body.parameters}
    if any(len(users) > 1 for users in readers.values()):
        place = {inner: k for k, inner in enumerate(_cloning_order(body))}
        for parameter, users in readers.items():
            if len(users) > 1:
                readers[parameter] = sorted(users, key=place.__getitem__)
    return readers


def _cloning_order(body: Computation) -> list[Instruction]:
    """Operands first, the last of them first of all (`HloComputation::CloneInContext`)."""
    order: list[Instruction] = []
    done: set[Instruction] = set()
    visiting: set[Instruction] = set()
    for start in body:
        stack = [start]
        while stack:
            current = stack[-1]
            if current in done:
                stack.pop()
            elif current in visiting:
                stack.pop()
                done.add(current)
                order.append(current)
            else:
                visiting.add(current)
                stack += current.operands
    return order


def _detach(instruction: Instruction) -> None:
    """Let go of the operands of an instruction that is in no computation."""
    for operand in dict.fromkeys(instruction.operands):
        operand.remove_user(instruction)
    instruction.operands = []


def merge_fusion_into_multi_output(fusion: Instruction, other: Instruction) -> None:
    """Take in a whole fusion, its outputs becoming further outputs; `other` is removed.

    Mirrors `HloFusionInstruction::MergeFusionInstructionIntoMultiOutput`.
    """
    parent = _computation_of(fusion)
    body = other.fused_computation
    clones: dict[Instruction, Instruction] = {}
    pending: list[Instruction] = []
    outputs: set[Instruction] = set()
    elements: list[tuple[Instruction, int]] = []
    for inner in body.post_order():
        if inner.opcode == "parameter":
            clones[inner] = other.operands[inner.parameter_number]
        elif inner is body.root and inner.opcode == "tuple":
            for element in other.users:
                source = inner.operands[element.tuple_index]
                elements.append((source, element.tuple_index))
                if element.is_root or any(u is not fusion for u in element.users):
                    outputs.add(clones[source])
        else:
            clone = _clone(inner, [clones[o] for o in inner.operands], f"{inner.name}.clone")
            clones[inner] = parent.add_instruction(clone)
            pending.append(clone)
    if body.root.opcode == "tuple":
        for source, index in elements:
            for element in list(other.users):
                if element.tuple_index == index:
                    element.replace_all_uses_with(clones[source])
                    parent.remove_instruction(element)
    else:
        root = pending[-1] if pending else clones[body.root]
        outputs.add(root)
        other.replace_all_uses_with(root)
    parent.remove_instruction(other)
    if not body.callers:
        _module_of(parent).remove_computation(body)
    for clone in reversed(pending):
        append_producer(fusion, clone, add_output=clone in outputs)
        parent.remove_instruction(clone)


def merge_extra_output(fusion: Instruction, producer: Instruction) -> None:
    """Take in another instruction, which becomes a further output where others use it; it is removed."""
    if producer.opcode == "fusion":
        merge_fusion_into_multi_output(fusion, producer)
    else:
        append_producer(fusion, producer, add_output=True)
        _computation_of(producer).remove_instruction(producer)


def get_tuple_element(source: Instruction, index: int, shape: Shape) -> Instruction:
    """A new `get-tuple-element` of `source`, added to its computation."""
    element = Instruction(
        "get-tuple-element", shape, "get-tuple-element", [source], Attributes(raw={"index": str(index)})
    )
    return _computation_of(source).add_instruction(element)


def set_tuple_index(element: Instruction, index: int) -> None:
    """Make a `get-tuple-element` take another element."""
    element.attributes = element.attributes.updated(index=str(index))


def _connect_operands(fusion: Instruction, clone: Instruction) -> None:
    """Make the clone read the fusion's parameters, new operands going to the end."""
    for number, operand in enumerate(list(clone.operands)):
        clone.replace_operand(number, _parameter_for(fusion, operand))


def _parameter_for(fusion: Instruction, operand: Instruction) -> Instruction:
    """The parameter by which the inside of the fusion reads an operand, a new one if there is none."""
    body, operands = fusion.fused_computation, fusion.operands
    if operand in operands:
        return body.parameters[operands.index(operand)]
    k = len(operands)
    parameter = Instruction(f"param_{k}", operand.shape, "parameter", payload=str(k))
    body.add_instruction(parameter)
    fusion.append_operand(operand)
    return parameter


def _add_output(fusion: Instruction, producer: Instruction, clone: Instruction) -> None:
    body, root = fusion.fused_computation, fusion.fused_root
    if root.opcode == "tuple" and clone in root.operands:
        index = root.operands.index(clone)
        producer.replace_all_uses_with(get_tuple_element(fusion, index, clone.shape))
        return
    was_tuple = root.opcode == "tuple"
    elements = list(root.operands) if was_tuple else [root]
    elements += clone.operands if clone.opcode == "tuple" else [clone]
    shape = Shape.tuple_of([e.shape for e in elements])
    body.root = body.add_instruction(Instruction("tuple", shape, "tuple", elements))
    fusion.shape = shape
    if fusion.attributes.raw("sharding") is not None:
        fusion.attributes = fusion.attributes.without("sharding")
    if was_tuple:
        body.remove_instruction(root)
    else:
        fusion.replace_all_uses_with(get_tuple_element(fusion, 0, root.shape))
    if clone is not producer:
        producer.replace_all_uses_with(get_tuple_element(fusion, len(elements) - 1, clone.shape))
        return
    first = len(elements) - len(producer.operands)
    for element in list(producer.users):
        new = get_tuple_element(fusion, first + element.tuple_index, element.shape)
        element.replace_all_uses_with(new)
        _computation_of(element).remove_instruction(element)


def _clone(
    instruction: Instruction, operands: list[Instruction] | None = None, name: str | None = None
) -> Instruction:
    clone = instruction.clone(operands, name=name)
    # What must run before an instruction does not hold for its copy.
    if "control-predecessors" in clone.attributes:
        clone.attributes = clone.attributes.without("control-predecessors")
    return clone


def _computation_of(instruction: Instruction) -> Computation:
    if instruction.computation is None:
        raise ValueError(f"{instruction.name} is in no computation")
    return instruction.computation


def _module_of(computation: Computation) -> Module:
    if computation.module is None:
        raise ValueError(f"{computation.name} is in no module")
    return computation.module
