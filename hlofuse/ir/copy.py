"""A second module just like the first (`HloModule::Clone`, without its renaming), and whether two are."""

from .graph import Computation, Instruction, InstructionMap, Module


def copy_module(module: Module) -> Module:
    """A deep copy that passes treat like the original. Names, ids (with the holes that removed instructions
    left), the order of users and of callers and the state of both name uniquers carry over, because XLA's
    decisions depend on all of them. Shapes and attributes are immutable and shared."""
    new = Module(module.name, module.attributes)
    for name in "filename lowered_from text_note unknown order_source devices print_options".split():
        setattr(new, name, getattr(module, name))
    frames = module._stack_frames
    new._stack_frames = frames if callable(frames) else frames.copy()
    new.instruction_names = module.instruction_names.copy()
    new.computation_names = module.computation_names.copy()

    computations = {c: Computation(c.name) for c in module.computations}
    copies = InstructionMap()
    for old, computation in computations.items():
        computation.module = new
        computation.attributes_text = old.attributes_text
        slots = computation._slots
        for instruction in old._slots:
            if instruction is None:
                slots.append(None)
                continue
            copied = copies[instruction] = _bare_copy(instruction)
            copied.computation = computation
            slots.append(copied)
        new.computations.append(computation)

    for old, computation in computations.items():
        for instruction in filter(None, old._slots):
            copied = copies[instruction]
            copied.operands = [copies[o] for o in instruction.operands]
            copied.users = [copies[u] for u in instruction.users]
            called, control = instruction.called, instruction._control
            copied.called = [(name, computations[c]) for name, c in called] if called else ()
            copied._control = control and ([copies[p] for p in control[0]], [copies[s] for s in control[1]])
        computation.parameters = [copies[p] for p in old.parameters]
        computation.root = copies[old.root]
        computation.callers = {copies[caller]: times for caller, times in old.callers.items()}
    new.entry = computations[module.entry]
    for c, order in module.schedules.items():
        new.schedules[computations[c]] = [copies[x] for x in order if x in copies]
    # Passes may have removed some.
    new.processing_order = [computations[c] for c in module.processing_order if c in computations]
    if module.computation_order is not None:
        new.computation_order = module.computation_order.copy(computations)
    return new


def same_module(a: Module, b: Module) -> bool:
    """True if a pass does the same to both: names, order, uses and all that instructions say are equal."""
    return len(a.computations) == len(b.computations) and all(
        x.name == y.name
        and len(x) == len(y)
        and x.root.name == y.root.name
        and all(map(_same_instruction, x, y))
        for x, y in zip(a.computations, b.computations, strict=True)
    )


def _same_instruction(a: Instruction, b: Instruction) -> bool:
    return (
        a.name == b.name
        and a.opcode == b.opcode
        and a.shape == b.shape
        and a.payload == b.payload
        and a.attributes == b.attributes
        and [x.name for x in a.operands] == [x.name for x in b.operands]
        and [x.name for x in a.users] == [x.name for x in b.users]
        and [c.name for _, c in a.called] == [c.name for _, c in b.called]
    )


def _bare_copy(instruction: Instruction) -> Instruction:
    copied = Instruction.__new__(Instruction)
    copied.name = instruction.name
    copied.shape = instruction.shape
    copied.opcode = instruction.opcode
    copied.attributes = instruction.attributes
    copied.payload = instruction.payload
    copied.origin = instruction.origin
    copied.id = instruction.id
    copied._places = None
    return copied
