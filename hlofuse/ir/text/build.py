"""Builds a graph from parsed nodes: names are resolved, computations linked (`HloParserImpl`). As in XLA
computations stand before their callers, instructions before their users."""

from lark import Token

from hlofuse.ir.attributes.attributes import NO_ATTRIBUTES, Attributes
from hlofuse.ir.graph import Computation, Computations, Instruction, Module
from hlofuse.ir.names import NameUniquer
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES
from hlofuse.ir.shape import ARRAY_TYPES, Shape, compatible
from ..record import Json
from .checks import check_attributes, check_instruction, signature_or_error
from .errors import Place, Rejected, foreign, locate, suggestion
from .grammar import parse_rule
from .infer import infer_shape
from .literals import check_literal
from .operands import Operands, Scope, disagreement
from .signatures import MODULE_ATTRIBUTES, split_async
from .text import bare
from .tree.nodes import AttributeNode, ComputationNode, InstructionNode, ModuleNode

# XLA counts levels of instructions and of operand lists, and stops at 8192 of both.
MAX_NESTED_CALLS = 4096
# Computations written inside one another, far more than any printer makes.
MAX_NESTED_COMPUTATIONS = 100


def parse_by_grammar(text: str, filename: str | None = None) -> Module:
    """The module of a text, read by the grammar alone (`ParseAndReturnUnverifiedModule`)."""
    try:
        module = Builder(text).module(parse_rule(text, "text"))
    except Rejected as error:
        error.message += foreign(text)
        raise locate(text, error, filename) from None
    module.filename = filename
    return module


class Builder(Operands):
    """Builds the graph from nodes; raises `Rejected`, with the place, for inconsistencies."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pool = dict[str, Computation]()
        self.finished = Computations()
        self.in_place = list[tuple[Instruction, Json]]()
        self.uniquer = NameUniquer()
        self.nesting = 0
        self.shared = dict[tuple[tuple[str, str], ...], Attributes]()

    def module(self, node: ModuleNode) -> Module:
        entry: Computation | None = None
        for written in node.computations:
            done = self.computation(written)
            if written.entry is not None:
                if entry is not None:
                    raise Rejected(written.entry, "a second ENTRY: a module has one entry")
                entry = done
        if node.single is not None:
            entry = self.single(node.single)
        entry = entry or self.finished[-1]
        name = bare(node.name) if node.name else "_" if node.single else f"module_{entry.name}"
        module = Module(name, self.header(node.attributes, entry))
        if node.single is not None:
            module.attributes = Attributes(", is_scheduled=true")
        if node.tables:
            frames = module.stack_frames
            frames.files, frames.functions, frames.locations, frames.frames = node.tables
        module.entry = entry
        for computation in self.finished:
            module.add_computation(computation)
        for instruction, raw in self.in_place:
            for attribute, callees in raw.items():
                if isinstance(callees, list):
                    names = ", ".join("%" + c.name for c in callees)
                    raw[attribute] = f"{{{names}}}" if attribute.endswith("computations") else names
            instruction.attributes = Attributes(raw=raw)
        return module

    def header(self, nodes: list[AttributeNode], entry: Computation) -> Attributes:
        """The module's own attributes, checked against its entry."""
        raw = {}
        for node in nodes:
            name, where = node.name, node.key
            if name in raw:
                raise Rejected(where, f"the attribute {name} is given twice")
            if name not in MODULE_ATTRIBUTES:
                hint = suggestion(name, MODULE_ATTRIBUTES)
                raise Rejected(where, f"a module has no attribute {name}{hint}")
            raw[name] = self.text[node.start : node.end]
            if name == "input_output_alias":
                result = next(
                    (n.value[1] for n in nodes if n.name == "entry_computation_layout"), entry.root.shape
                )
                for alias in node.value:
                    if not result.has_index(alias.output_index):
                        raise Rejected(
                            node.start, f"the result {result} has no element {list(alias.output_index)}"
                        )
        return Attributes(raw=raw) if raw else NO_ATTRIBUTES

    def single(self, node: InstructionNode) -> Computation:
        """The computation of a single instruction: operands with shapes become parameters."""
        scope = Scope("_", implicit_parameters=True)
        # XLA adds the entry before the computations written inside it.
        self.finished.insert(0, scope.computation)
        self.instruction(node, scope, "_" if node.name is None else None)
        scope.close(None, node.start)
        return scope.computation

    def computation(self, node: ComputationNode) -> Computation:
        name = bare(node.name)
        where = node.name
        computation = self.body(node.instructions, _sanitize(name), where)
        if node.result is not None and not compatible(computation.root.shape, node.result):
            raise Rejected(
                node.result_start,
                f"{name} is said to return {node.result.text_without_layout}, but its root"
                f" {computation.root.name} is {computation.root.shape.text_without_layout}",
            )
        seen = set()
        for attribute in node.attributes:
            if attribute.name != "execution_thread":
                raise Rejected(attribute.key, f"a computation has no attribute {attribute.name}")
            if attribute.name in seen:
                raise Rejected(attribute.key, f"the attribute {attribute.name} is given twice")
            seen.add(attribute.name)
            computation.attributes_text = f", execution_thread={self.text[attribute.start : attribute.end]}"
        if name in self.pool:
            raise Rejected(where, f"there already is a computation {name}")
        self.pool[name] = computation
        return computation

    def body(self, nodes: list[InstructionNode], name: str, where: Place) -> Computation:
        """A computation of these instructions; `where` is the place for errors about the whole."""
        scope = Scope(name)
        root: Instruction | None = None
        for node in nodes:
            if node.root is not None and root is not None:
                raise Rejected(node.root, "a second ROOT: a computation has one root")
            instruction = self.instruction(node, scope)
            if node.root is not None:
                root = instruction
        scope.close(root, where)
        self.finished.append(scope.computation)
        return scope.computation

    def instruction(
        self, node: InstructionNode, scope: Scope, default_name: str | None = None
    ) -> Instruction:
        given = bare(node.name) if node.name is not None else default_name
        where = node.name if node.name is not None else node.start
        opcode = str(node.call.opcode)
        spec = signature_or_error(node.call.opcode)
        if node.shape is None and not spec.infers_shape:
            raise Rejected(
                node.call.opcode,
                f"missing shape: the result of {opcode} cannot be inferred; write it before the opcode",
            )
        if node.call.depth > MAX_NESTED_CALLS:
            raise Rejected(where, f"instructions nested more than {MAX_NESTED_CALLS} deep")
        operands = self.operands(node.call, scope)
        check_attributes(opcode, spec, node.attributes, node.end)
        check_instruction(node, spec, operands)
        called, raw = self.attributes(node)
        differs = disagreement(opcode, operands, [c for _, c in called], raw.get("async_execution_thread"))
        if differs is not None:
            raise Rejected(node.call.opcode, differs)
        if opcode == "scan" and len(called[0][1].parameters) != len(operands):
            raise Rejected(
                where, f"scan has {len(operands)} operands, its computation another number of parameters"
            )
        shape = node.shape if node.shape is not None else infer_shape(node, operands, dict(called))
        payload = self.payload(node, shape, scope)
        in_place = any(isinstance(v, list) for v in raw.values())
        instruction = Instruction(
            "",
            shape,
            opcode,
            operands,
            NO_ATTRIBUTES if in_place else self.shared_attributes(raw),
            called=called or (),
            payload=payload,
        )
        if in_place:
            self.in_place.append((instruction, raw))
        self.add(instruction, given, where, scope)
        for attribute in node.attributes:
            if attribute.name == "control-predecessors":
                for token in attribute.value:
                    self.find(token, scope).add_control_dependency_to(instruction)
            elif attribute.name == "parameter_replication":
                leaves = sum(1 for _ in shape.leaves())
                if leaves != len(attribute.value):
                    raise Rejected(
                        attribute.start, f"{leaves} leaves in {shape}, {len(attribute.value)} values"
                    )
        scope.names[instruction.name] = instruction
        return instruction

    def add(
        self,
        instruction: Instruction,
        given: str | None,
        where: Place,
        scope: Scope,
    ) -> None:
        """Add the instruction under its given name, or XLA's."""
        if given is None:
            stage = split_async(instruction.opcode)[1]
            kind = instruction.opcode if stage is None else f"async-{stage}"
            instruction.name = self.uniquer.unique(f"{kind}.anon")
        else:
            instruction.name = given
            self.uniquer.unique(given)
            if given in scope.names:
                raise Rejected(where, f"there already is an instruction {given} in this computation")
            if _sanitize(given) != given:
                raise Rejected(where, f"{given} cannot name an instruction; {_sanitize(given)} could")
        scope.computation.append_parsed(instruction)

    def shared_attributes(self, raw: Json) -> Attributes:
        """One object for each distinct list of attributes."""
        key = tuple(raw.items())
        spec = self.shared.get(key)
        if spec is None:
            spec = self.shared[key] = Attributes(raw=raw) if raw else NO_ATTRIBUTES
        return spec

    def attributes(self, node: InstructionNode) -> tuple[list[tuple[str, Computation]], Json]:
        """Called computations in XLA's order, and raw texts; a list for a computation written in place."""
        raw = Json()
        callees = {}
        for attribute in node.attributes:
            name = attribute.name
            raw[name] = self.text[attribute.start : attribute.end]
            if attribute.key.type in ("KEY_COMPUTATION", "KEY_COMPUTATIONS"):
                one = attribute.key.type == "KEY_COMPUTATION"
                written = [attribute.value] if one else attribute.value
                callees[name] = [self.callee(v, attribute.start) for v in written]
                if any(isinstance(v, list) for v in written):
                    raw[name] = callees[name]
            elif name == "literal":
                for shape, span in attribute.value:
                    check_literal(shape, self.text[span.start : span.end], span.start)
        called = [(k, c) for k in CALLED_COMPUTATION_ATTRIBUTES for c in callees.get(k, ())]
        return called, raw

    def callee(self, value: Token | list[InstructionNode], where: Place) -> Computation:
        if isinstance(value, list):
            self.nesting += 1
            if self.nesting > MAX_NESTED_COMPUTATIONS:
                raise Rejected(where, f"computations nested more than {MAX_NESTED_COMPUTATIONS} deep")
            computation = self.body(value, "_", where)
            self.nesting -= 1
            return computation
        name = bare(value)
        spec = self.pool.get(name)
        if spec is None:
            hint = suggestion(name, self.pool)
            raise Rejected(value, f"there is no computation {name} before this place{hint}")
        return spec

    def payload(self, node: InstructionNode, shape: Shape, scope: Scope) -> str | None:
        """A constant's literal or a parameter's number, as text; None for other operations."""
        span = node.call.payload
        if span is None:
            return None
        text = self.text[span.start : span.end]
        if node.call.opcode == "constant":
            check_literal(shape, text, span.start)
            return text.strip()
        number: int = span.value
        if number < 0:
            raise Rejected(span.start, "a parameter's number counts from 0")
        if number in scope.parameters:
            raise Rejected(span.start, f"there already is a parameter {number} in this computation")
        scope.parameters[number] = None  # type: ignore[assignment]  # only the number matters
        return str(number)


def _sanitize(name: str) -> str:
    """`NameUniquer::GetSanitizedName`, for names that the grammar let through."""
    if name in ARRAY_TYPES or name in ("token", "opaque"):
        return name + "_"
    if name.startswith("__") and not name.startswith("__xla_"):
        return "a" + name[1:]
    return name
