"""Moving instructions into fusions (`HloFusionInstruction`, `HloCallableInstruction`). Everything XLA's
passes do to a graph when they fuse is here: making a fusion, appending a producer, appending it as a
further output, merging one fusion into another as further outputs or in place. Names and the order of
operands, parameters and users come out as XLA's, because later decisions and names depend on them."""

from collections.abc import Iterable

from hlofuse.ir.attributes.attributes import Attributes
from .errors import HlofuseError
from .graph import Computation, Instruction, Instructions, InstructionSequence, Module, Predicate
from .names import NameUniquer
from .removing import move_control_dependencies, replace_instruction, set_attribute
from .shape import Shape


def create_fusion(consumer: Instruction, kind: str, prefix: str = "") -> Instruction:
    """A fusion holding a clone of `consumer`, added to its computation (`HloInstruction::CreateFusion`).
    `consumer` keeps its uses; `fuse_in_place_of` moves them. The name is `<prefix>fusion`."""
    computation = consumer.parent
    body = _body_around(consumer)
    attributes, called = _attributes_around(consumer, kind, body), [("calls", body)]
    fusion = Instruction(f"{prefix}fusion", consumer.shape, "fusion", (), attributes, called=called)
    _read_through_parameters(fusion, body.root, consumer.operands)
    return computation.add_instruction(fusion)


def convert_to_fusion(instruction: Instruction, kind: str) -> None:
    """Make it a fusion of what it is, as `fuse_in_place_of` does, without a new instruction. Who uses what
    stays as it is: the new one would take the place of the old one in every list of users."""
    computation, operands, called = instruction.parent, instruction.operands, instruction.called
    body = _body_around(instruction)
    attributes, sharding = _attributes_around(instruction, kind, body), instruction.raw("sharding")
    clone = body.root
    instruction.opcode, instruction.payload, instruction.attributes = "fusion", None, attributes
    if sharding is not None:
        set_attribute(instruction, "sharding", sharding)
    if len(operands) > 1 and len(set(operands)) < len(operands):
        instruction.operands = list(dict.fromkeys(operands))
    for number, operand in enumerate(instruction.operands):
        parameter = body.add_parameter(operand.shape, number)
        body.parameters.append(parameter)
        parameter.users.append(clone)
    numbers = map(instruction.operands.index, operands)
    clone.operands = [body.parameters[number] for number in numbers]
    for _, callee in called:
        callee.callers.pop(instruction, None)
    instruction.called = [("calls", body)]
    computation.vacate(instruction)
    computation.add_instruction(instruction, "fusion")
    if instruction._control is not None:
        move_control_dependencies(instruction, instruction)


def _body_around(instruction: Instruction) -> Computation:
    """A fused computation, in the module, of a clone of the instruction that reads nothing yet."""
    body = Computation("fused_computation")
    clone = instruction.bare_copy()
    body.append_parsed(clone)
    body.root = clone
    return instruction.parent.parent.add_computation(body)


def _attributes_around(instruction: Instruction, kind: str, body: Computation) -> Attributes:
    raw = {"kind": kind, "calls": f"%{body.name}"}
    given = instruction.attributes.raw_items
    for name in ("frontend_attributes", "metadata"):
        if (value := given.get(name)) is not None:
            raw[name] = value
    return Attributes(raw=raw)


def fuse_in_place_of(consumer: Instruction, kind: str, prefix: str = "") -> Instruction:
    """A fusion for `consumer`, or that itself, of `kind` (`InstructionFusion::AddFusionInstruction`)."""
    if consumer.is_fusion:
        set_fusion_kind(consumer, kind)
        return consumer
    fusion = create_fusion(consumer, kind, prefix)
    replace_instruction(consumer, fusion, relay_control_dependencies=True)
    return fusion


def set_fusion_kind(fusion: Instruction, kind: str) -> None:
    """Make it kLoop, kInput or kOutput (`set_fusion_kind`)."""
    if fusion.raw("kind") != kind:
        fusion.attributes = fusion.attributes.updated(kind=kind)


def append_producer(fusion: Instruction, producer: Instruction, *, add_output: bool = False) -> Instruction:
    """Clone `producer` into the fusion; the clone is returned. With `add_output` the producer's other users
    get its value from the fusion, which becomes a multi-output one; without it the fusion must be a user. The
    producer stays where it is. Mirrors
    `HloCallableInstruction::CloneAndAppendInstructionIntoCalledComputation`."""
    body = fusion.fused_computation
    try:
        number = fusion.operands.index(producer)
    except ValueError:
        clone = body.add_instruction(producer.bare_copy())
    else:
        clone = body.fill_parameter(number, producer)
        fusion.remove_operand(number)
        if not producer.users:
            add_output = False
    # XLA's clone reads the producer's operands first; nothing of that is left among their users.
    _read_through_parameters(fusion, clone, producer.operands)
    if add_output:
        root = fusion.fused_root
        if root.opcode == "tuple" and clone in root.operands:
            index = root.operands.index(clone)
        else:
            index = len(root.outputs)
            if append_outputs(fusion, [clone]):
                fusion.replace_all_uses_with(get_tuple_element(fusion, 0, root.shape))
        producer.replace_all_uses_with(get_tuple_element(fusion, index, clone.shape))
    return clone


def merge_fusion_into_multi_output(fusion: Instruction, other: Instruction) -> None:
    """Take in `other` and its outputs; it is removed (`MergeFusionInstructionIntoMultiOutput`)."""
    parent = fusion.parent
    body = other.fused_computation
    clones = {}
    pending = Instructions()
    outputs = set[Instruction]()
    elements = []
    for inner in body.post_order():
        if inner.is_parameter:
            clones[inner] = other.operands[inner.parameter_number]
        elif inner is body.root and inner.opcode == "tuple":
            for element in other.users:
                source = inner.operands[element.tuple_index]
                elements.append((source, element.tuple_index))
                if element.is_root or any(u is not fusion for u in element.users):
                    outputs.add(clones[source])
        else:
            clone = inner.clone([clones[o] for o in inner.operands], name=f"{inner.name}.clone")
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
        parent.parent.remove_computation(body)
    for clone in reversed(pending):
        append_producer(fusion, clone, add_output=clone in outputs)
        parent.remove_instruction(clone)


def merge_extra_output(fusion: Instruction, producer: Instruction) -> None:
    """Take in another instruction, which becomes a further output where others use it; it is removed."""
    if producer.is_fusion:
        merge_fusion_into_multi_output(fusion, producer)
    else:
        append_producer(fusion, producer, add_output=True)
        producer.parent.remove_instruction(producer)


def get_tuple_element(source: Instruction, index: int, shape: Shape) -> Instruction:
    """A new `get-tuple-element` of `source`, added to its computation."""
    element = Instruction(
        "get-tuple-element", shape, "get-tuple-element", [source], Attributes(raw={"index": str(index)})
    )
    return source.parent.add_instruction(element)


def set_tuple_index(element: Instruction, index: int) -> None:
    """Make a `get-tuple-element` take another element."""
    element.attributes = element.attributes.updated(index=str(index))


def _read_through_parameters(fusion: Instruction, clone: Instruction, operands: Instructions) -> None:
    """Make the clone read the operands by the fusion's parameters, new ones going to the end."""
    body, outer, inner = fusion.fused_computation, fusion.operands, clone.operands
    parameters = body.parameters
    for operand in operands:
        if operand in outer:
            parameter = parameters[outer.index(operand)]
        else:
            parameter = body.add_parameter(operand.shape, len(outer))
            parameters.append(parameter)
            outer.append(operand)
            operand.add_user(fusion)
        inner.append(parameter)
        users = parameter.users
        if not users or users[-1] is not clone:  # a new one can only be the last of them
            users.append(clone)


def append_outputs(fusion: Instruction, outputs: InstructionSequence) -> bool:
    """Make instructions in the fusion further outputs. True if it had one so far, now read from the tuple."""
    body, root = fusion.fused_computation, fusion.fused_root
    body.root = body.add_instruction(tuple_of([*root.outputs, *outputs]))
    fusion.shape = body.root.shape
    if fusion.raw("sharding") is not None:
        fusion.attributes = fusion.attributes.without("sharding")
    if root.opcode == "tuple":
        body.remove_instruction(root)
    return root.opcode != "tuple"


def tuple_of(elements: Instructions) -> Instruction:
    return Instruction("tuple", Shape.tuple_of([e.shape for e in elements]), "tuple", elements)


def instruction_limit(module: Module) -> int:
    """The limit of instructions after inlining: bodies with many callers multiply."""
    return 20 * module.instruction_count + 100_000


def check_growth(module: Module, most: int) -> None:
    """Raise `HlofuseError` for a module with more than `most` instructions."""
    if module.instruction_count > most:
        raise HlofuseError(
            f"{module.name} has computations called so often that, each call put in place, it would have"
            f" more than {most:,} instructions"
        )


def unfuse(caller: Instruction) -> None:
    """Replace a fusion or a call by its instructions, which keep their names. Inlining does not undo all of
    fusing: copies in several fusions stay, and use lists follow the order of inlining."""
    body = caller.called_computations[0]
    computation = caller.parent
    module = computation.parent
    only_caller = sum(body.callers.values()) == 1
    outer = {}
    for inner in body.post_order():
        if inner.is_parameter:
            outer[inner] = caller.operands[inner.parameter_number]
            module.note_replacement(inner, outer[inner])
            continue
        clone = inner.clone([outer[o] for o in inner.operands])
        outer[inner] = computation.add_instruction(clone)
        if only_caller:
            clone.name = inner.name  # which is about to go
    root = outer[body.root]
    if body.root.opcode == "tuple":
        for user in list(caller.users):
            if user.is_get_tuple_element:
                user.replace_all_uses_with(root.operands[user.tuple_index])
                if not user.is_root and not user.users:
                    user.drop_all_control_dependencies()
                    computation.remove_instruction(user)
    caller.replace_all_uses_with(root)
    caller.drop_all_control_dependencies()
    computation.remove_instruction(caller)
    if body.root.opcode == "tuple" and not root.users and not root.is_root:
        computation.remove_instruction(root)
    if not body.callers:
        module.remove_computation(body)


def inline_calls(module: Module, chosen: Predicate) -> bool:
    """Inline all `chosen` calls, nested ones too; True if any. `HlofuseError` for excessive growth."""
    most = instruction_limit(module)
    changed, pending = False, True
    while pending:
        pending = False
        for computation in list(module.computations):
            for i in list(computation) if computation.module is not None else ():
                if i.computation is computation and chosen(i):
                    unfuse(i)
                    changed = pending = True
            check_growth(module, most)
    return changed


# Merging a producer fusion into its consumer (`HloFusionInstruction::MergeFusionInstruction`).
#
# XLA clones the whole producer and moves the clones into the consumer one by one, root first. A clone that is
# yet to be moved is an operand of the consumer for a while, read through a parameter that goes when the clone
# comes. What stays of all that are names, ids and the order of operands and users: they are kept as if it had
# happened, but clones are linked to each other at once, with no parameter between.
class Inside:
    """The content of a fusion, for merging it into several consumers in turn."""

    __slots__ = ("inner", "names", "order")

    def __init__(self, producer: Instruction) -> None:
        body = producer.fused_computation
        instructions = body.instructions
        self.names = [inner.name for inner in instructions]
        self.inner = [inner for inner in instructions if not inner.is_parameter and inner is not body.root]
        """Without the root, for which there is the parameter by which the consumer reads the fusion."""
        self.order = body.post_order(but_for=body.parameters, starts=(body.root,))
        if len(self.order) <= len(self.inner):  # it has dead code
            self.order = body.post_order(but_for=body.parameters)
        """Of those that are no parameters, what reads an instruction before it."""
        self.order.reverse()


def merge_fusion(fusion: Instruction, producer: Instruction, inside: Inside | None = None) -> None:
    """Move clones of a producer fusion's instructions into `fusion`, which reads it. The producer stays for
    its other users. As in XLA the whole producer is cloned first, which shows in names. What the clones do to
    the users of outer operands until they are moved undoes itself: finally `fusion` is the last of them."""
    names = fusion.parent.parent.instruction_names
    body = producer.fused_computation
    if inside is None:
        inside = Inside(producer)
    # XLA clones twice, for the producer and for the fusion. One object stands for both here; the first
    # clones' names are taken, but never visible.
    names.skip(inside.names)
    clones = {inner: inner.bare_copy() for inner in inside.inner}
    clones.update(zip(body.parameters, producer.operands, strict=True))
    merge = _Merge(fusion, names)
    root = body.root
    if root.is_parameter:
        merge.replace(producer, clones[root])
    else:
        clones[root] = merge.fill(producer, root)
        names.skip(("constant",))  # a root to stand in while the clones are moved
    merge.move_in(inside.order, clones)


class _Merge:
    """A fusion into which clones are being moved."""

    def __init__(self, fusion: Instruction, names: NameUniquer) -> None:
        self._fusion = fusion
        self._operands = fusion.operands
        self._body = body = fusion.fused_computation
        self._names = names
        # None stands for the parameter of a clone that is yet to be moved.
        self._parameters: list[Instruction | None] = list(body.parameters)
        # From the last one on: an operand given twice is read by its first parameter.
        self._inner = dict(zip(reversed(self._operands), reversed(body.parameters), strict=True))
        """The parameter or clone by which the inside reads each operand."""

    def replace(self, producer: Instruction, operand: Instruction) -> None:
        producer.replace_use_with(self._fusion, operand)
        del self._inner[producer]
        self._inner[operand] = self._body.parameters[self._operands.index(operand)]

    def fill(self, producer: Instruction, root: Instruction) -> Instruction:
        """The fusion reads the clone of the producer's root in its place: what was its parameter."""
        clone = self._inner.pop(producer)
        producer.remove_user(self._fusion)
        self._operands[:] = [clone if operand is producer else operand for operand in self._operands]
        self._body.vacate(clone)
        clone.become(root)
        self._inner[clone] = clone
        return clone

    def move_in(self, order: Iterable[Instruction], clones: dict[Instruction, Instruction]) -> None:
        """Put in the clones of those in `order`, which has what reads an instruction before it."""
        fusion, body, inner, names = self._fusion, self._body, self._inner, self._names
        unique = names.unique
        operands, parameters = self._operands, self._parameters
        for original in order:
            clone = clones[original]
            clone.name = unique(clone.name)
            body.append_unnumbered(clone)
            if inner.pop(clone, None) is not None:
                number = operands.index(clone)
                del operands[number], parameters[number]
                if number < len(parameters):  # later ones get a new number, name and id (`RemoveParameter`)
                    body.renew_parameters(parameters, number)
            sources = clone.operands
            for operand in original.operands:
                operand = clones[operand]
                source = inner.get(operand)
                if source is None:  # a further operand: what the inside reads in its place
                    source = operand
                    if operand.computation is None:
                        names.skip_parameter(len(operands))
                        parameters.append(None)
                    else:
                        source = body.add_parameter(operand.shape, len(operands))
                        parameters.append(source)
                        operand.add_user(fusion)
                    operands.append(operand)
                    inner[operand] = source
                sources.append(source)
                users = source.users
                if not users or users[-1] is not clone:  # a new one can only be the last of them
                    users.append(clone)
        body.parameters = [p for p in parameters if p is not None]
