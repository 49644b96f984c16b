"""Prints a module as HLO text (`HloModule::Print`, `HloComputation::Print`, `HloInstruction::Print`)."""

from collections.abc import Iterator

from hlofuse.ir.attributes.metadata import StackFrames, quote
from hlofuse.ir.graph import Computation, Computations, Instruction, Instructions, Module
from hlofuse.ir.grouping import grouped
from hlofuse.ir.opcodes import PrintOptions

_DEFAULT = PrintOptions()
# Attributes XLA prints after the control predecessors.
_LAST = tuple("statistics result_accuracy origin metadata backend_config".split())
# A constant of more elements is large (`HloConstantInstruction::PrintOperandsWithCanonicalNameMap`).
_SMALL_CONSTANT = 10


def print_module(module: Module, options: PrintOptions | None = None) -> str:
    """The module as text, as it was read; in XLA's printing order with `options`, or new computations."""
    chosen = options if options is not None else module.print_options
    computations = module.computations
    if options is not None or not _callees_come_first(computations):
        computations = module.printed_order()
    out = [f"HloModule {module.name}{module.attributes.text}"]
    if chosen.metadata and module.stack_frames:
        out.append("\n\n" + print_stack_frames(module.stack_frames))
    out.append("\n\n")
    for computation in computations:
        out += _lines(computation, chosen)
        out.append("\n\n")
    return "".join(out)


def _callees_come_first(computations: Computations) -> bool:
    seen = set()
    for computation in computations:
        for instruction in computation:
            for _, callee in instruction.called:
                if callee not in seen:
                    return False
        seen.add(computation)
    return True


def print_computation(computation: Computation, options: PrintOptions | None = None) -> str:
    """The text of one computation, without the line end after its brace."""
    return "".join(_lines(computation, options or _options_of(computation)))


def print_instruction(instruction: Instruction, options: PrintOptions | None = None) -> str:
    """The text of one instruction, without ROOT."""
    chosen = options
    if chosen is None:
        chosen = _DEFAULT if instruction.computation is None else _options_of(instruction.computation)
    return _InstructionPrinter(chosen).text(instruction)


def print_stack_frames(frames: StackFrames) -> str:
    """The text of the source tables (`HloModule::PrintStackFrameIndex`)."""
    out = []
    for title, strings in (("FileNames", frames.files), ("FunctionNames", frames.functions)):
        out.append(f"{title}\n" + "".join(f"{n} {quote(s)}\n" for n, s in strings.items()))
    for title, records in (("FileLocations", frames.locations), ("StackFrames", frames.frames)):
        rows = ((n, " ".join(f"{k}={v}" for k, v in record.items())) for n, record in records.items())
        out.append(f"{title}\n" + "".join(f"{n} {{{row}}}\n" for n, row in rows))
    return "\n".join(out)


def _options_of(computation: Computation) -> PrintOptions:
    return computation.module.print_options if computation.module is not None else _DEFAULT


def _lines(computation: Computation, options: PrintOptions) -> Iterator[str]:
    """Parts of the text of a computation, without a line end after the closing brace."""
    yield f"{'ENTRY ' if computation.is_entry else ''}{'%' * options.percent}{computation.name} "
    root = computation.root
    if options.signatures:
        parameters = ", ".join(f"{p.name}: {p.shape.text_without_layout}" for p in computation.parameters)
        yield f"({parameters}) -> {root.shape.text_without_layout} "
    yield "{\n"
    printer = _InstructionPrinter(options)
    order = _order(computation)
    for instruction in order:
        if options.compact_elements and instruction.is_get_tuple_element and instruction is not root:
            continue
        yield f"  {'ROOT ' if instruction is root else ''}{printer.text(instruction)}\n"
    yield "}" + computation.attributes_text
    if options.names_after_braces and len(order) > 5:
        yield f" // {computation.name}"


def _order(computation: Computation) -> Instructions:
    module = computation.module
    if module is not None and module.is_scheduled and _is_schedule(computation):
        return computation.instructions  # those of a scheduled module stand in the schedule's order
    return computation.post_order()


def _is_schedule(computation: Computation) -> bool:
    """True if the instructions stand in an order that can run, which a pass may have changed."""
    seen = set[Instruction]()
    for x in computation:
        if not seen.issuperset(x.operands) or not seen.issuperset(x.control_predecessors):
            return False
        seen.add(x)
    return True


class _InstructionPrinter:
    def __init__(self, options: PrintOptions) -> None:
        self.options = options
        self.percent = "%" if options.percent else ""
        self.simple = not (options.operand_shapes or options.compact_elements)

    def text(self, x: Instruction) -> str:
        """`name = shape opcode(operands), attributes`."""
        inner = self._payload(x) if x.payload is not None and not x.is_opaque else self._operands(x)
        opcode = x.payload if x.is_opaque else x.opcode
        return f"{self.percent}{x.name} = {x.shape} {opcode}({inner}){self._attributes(x)}"

    def _payload(self, x: Instruction) -> str:
        text = x.payload or ""
        if x.is_constant and not self.options.large_constants:
            shape = x.shape
            if not shape.is_array or shape.element_count > _SMALL_CONSTANT:
                return "{...}"
        return text

    def _operands(self, x: Instruction) -> str:
        operands = x.operands
        interval = self.options.operand_numbers
        if self.simple:
            percent = self.percent
            names = [percent + o.name for o in operands]
        else:
            names = [self._operand(o) for o in operands]
        if interval:
            for number in range(interval, len(names), interval):
                names[number] = f"/*index={number}*/{names[number]}"
        return ", ".join(names)

    def _operand(self, x: Instruction) -> str:
        options = self.options
        shape = f"{x.shape} " if options.operand_shapes else ""
        if not options.compact_elements:
            return f"{shape}{self.percent}{x.name}"
        path = ""
        while x.is_get_tuple_element:
            path = f"#{x.tuple_index}{path}"
            x = x.operand
        return f"{shape}{self.percent}{x.name}{path}"

    def _attributes(self, x: Instruction) -> str:
        options = self.options
        attributes = x.written_attributes if x.is_opaque else x.attributes
        plain = options.percent and options.metadata and options.backend_config
        if plain and not x.called and x._control is None and "control-predecessors" not in attributes.text:
            return attributes.text
        called = grouped(x.called)
        parts = []
        control = self._control(x)
        for name, value in attributes.raw_items.items():
            if name == "control-predecessors":
                continue
            if control and name in _LAST:
                parts.append(control)
                control = ""
            if (name == "metadata" and not options.metadata) or (
                name == "backend_config" and not options.backend_config
            ):
                continue
            if name in called:
                names = ", ".join(self.percent + c.name for c in called[name])
                value = f"{{{names}}}" if value.startswith("{") else names
            parts.append(f", {name}={value}")
        return "".join(parts) + control

    def _control(self, x: Instruction) -> str:
        predecessors = x.control_predecessors
        if not predecessors:
            return ""
        return f", control-predecessors={{{', '.join(self.percent + p.name for p in predecessors)}}}"
