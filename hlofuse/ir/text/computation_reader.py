"""The loop over instructions: from matched lines to a connected graph; the grammar reads single parts."""

from msgspec import Struct

from hlofuse.ir.errors import HloParseError
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.names import NO_ORIGIN
from hlofuse.ir.shape import Shape
from .attribute_cache import AT_LEAST_ONE, CALLING, CONSTANT, PARAMETER, AttributeCache, form
from .checks import Check, Written
from .errors import Rejected
from .grammar import parse_attributes, parse_rule, parse_shape
from .literals import implied_element, is_plain
from .patterns import CALLED_NAME, OPERAND, FastPathMiss, ShapeCache
from .signatures import COMMON
from .text import bare

Row = tuple[str, str, str, str, str, str]
"""ROOT, name, shape, opcode, text between the parentheses, attributes."""
Opcode = tuple[str, int, int, Check | None, AttributeCache]
"""The opcode's interned name, kind, operand count, check and attribute cache."""


_FEW = tuple(map(str, range(64)))


class ReadCache:
    """State shared by the computations of one module during reading."""

    def __init__(self, fallback: "GrammarFallback") -> None:
        self.fallback = fallback
        self.shapes = ShapeCache(fallback.shape)
        self.attributes_of = dict[tuple[object, ...], AttributeCache]()
        self.computations = dict[str, Computation]()
        self.constants = set[tuple[str, str]]()
        self.opcodes = dict[str, Opcode]()
        self.has_control = False
        """True once control dependencies have to be connected."""
        # How the text is written, for printing it alike.
        self.has_percent = True
        self.has_signatures = True
        self.has_names_after_braces = False
        self.has_operand_shapes = False
        self.has_elements = False
        self.has_operand_numbers = True

    def opcode(self, text: str) -> Opcode:
        """The reading rule of an opcode, cached."""
        how = form(text)
        if how is None:
            raise FastPathMiss
        attributes_of = self.attributes_of.get(how.attributes_key)
        if attributes_of is None:
            attributes_of = self.attributes_of[how.attributes_key] = AttributeCache(
                how, self.computations, self.shapes, self.fallback.common_attributes
            )
        entry = self.opcodes[text] = (text, how.kind, how.operands, how.check, attributes_of)
        return entry


class Body(Struct, eq=False):
    """A computation while its instructions are read."""

    computation: Computation
    cache: ReadCache
    by_name: dict[str, Instruction] = {}
    """Every instruction by name, or by path: `x#1` is the element made by such an operand."""
    calling: list[Instruction] = []
    """Instructions with called computations; callers are registered once the whole body is accepted."""
    parameters: dict[str, Instruction] = {}
    root: Instruction | None = None

    def add_rows(self, rows: list[Row]) -> int:
        """Append the instructions of `rows`; returns the number accepted by the fast path."""
        cache = self.cache
        computation = self.computation
        slots = computation._slots
        by_name = self.by_name
        instruction_at = by_name.__getitem__
        shapes = cache.shapes
        opcodes = cache.opcodes
        constants = cache.constants
        parameters = self.parameters
        percent = cache.has_percent
        percent_sign = "%" if percent else ""
        shaped = cache.has_operand_shapes and percent
        append = slots.append
        new = Instruction.__new__
        # What never has operands shares an empty list: a tenth of the memory.
        nothing: list[Instruction] = []
        number = len(slots)
        taken = 0
        try:
            for root, name, shape_text, opcode_text, inner, attributes_text in rows:
                x = new(Instruction)
                x.name = name
                x.shape = shape = shapes[shape_text]
                try:
                    x.opcode, kind, arity, check, attributes_of = opcodes[opcode_text]
                except KeyError:
                    x.opcode, kind, arity, check, attributes_of = cache.opcode(opcode_text)
                x.attributes = attributes_of[attributes_text]
                x.users = []
                x.called = ()
                x.origin = NO_ORIGIN
                x.computation = computation
                x._control = None
                x._places = None
                if root and self.root is not None:
                    raise FastPathMiss
                if kind == PARAMETER:
                    x.operands = nothing
                    x.payload = inner
                    if inner in parameters:
                        raise FastPathMiss
                    parameters[inner] = x
                elif kind == CONSTANT:
                    x.operands = nothing
                    x.payload = inner
                    if (shape_text, inner) not in constants:
                        if not is_plain(shape, inner):
                            raise FastPathMiss
                        constants.add((shape_text, inner))
                else:
                    x.payload = None
                    if inner:
                        # List displays, not list(): they take no more room than they need.
                        try:
                            if arity == 1 and inner[0] == percent_sign:
                                operands = [by_name[inner[1:]]]
                            elif shaped:
                                operands = self._shaped_operands(inner)
                            else:
                                names = inner.removeprefix("%").split(", %") if percent else inner.split(", ")
                                if len(names) == 2:
                                    operands = [by_name[names[0]], by_name[names[1]]]
                                elif len(names) == 1:
                                    operands = [by_name[names[0]]]
                                else:
                                    operands = [*map(instruction_at, names)]
                                    if len(names) > 5:
                                        cache.has_operand_numbers = False
                        except KeyError:
                            operands = self._operands(inner)
                            number = len(slots)
                            shaped = cache.has_operand_shapes and percent
                        if len(operands) != arity and arity >= 0:
                            raise FastPathMiss
                    else:
                        if arity > 0 or arity == AT_LEAST_ONE:
                            raise FastPathMiss
                        operands = []
                    x.operands = operands
                    if kind:
                        if check is not None and check(Written(operands, {}, shape)) is not None:
                            raise FastPathMiss
                        if kind == CALLING:
                            self._add_called(x, attributes_of, attributes_text)
                    # From here on nothing is declined: both ends of an edge know each other.
                    if len(operands) == 1:
                        operands[0].users.append(x)
                    else:
                        for operand in operands:
                            users = operand.users
                            if not users or users[-1] is not x:
                                users.append(x)
                if root:
                    self.root = x
                x.id = number
                number += 1
                by_name[name] = x
                append(x)
                taken += 1
        except FastPathMiss:
            pass
        return taken

    def _shaped_operands(self, text: str) -> list[Instruction]:
        """Operands `f32[8]{0} %a, /*index=5*/f32[] %b`; KeyError for those in another form."""
        shapes, by_name = self.cache.shapes, self.by_name
        shape_text, *others = text.split(" %")
        out = []
        for other in others:
            name, _, following = other.partition(", ")
            operand = by_name[name]
            if shape_text.startswith("/*index="):
                shape_text = shape_text[shape_text.index("*/") + 2 :]
            if shapes.get(shape_text) is not operand.shape:
                raise KeyError
            out.append(operand)
            shape_text = following
        if shape_text:
            raise KeyError
        return out

    def _operands(self, text: str) -> list[Instruction]:
        """Operands in any common form: with shapes, element paths, position comments."""
        out = []
        pos, end = 0, len(text)
        while pos < end:
            match = OPERAND.match(text, pos)
            if match is None:
                raise FastPathMiss
            shape_text, name, path = match.groups()
            operand = self.by_name.get(name)
            if operand is None:
                raise FastPathMiss
            if path:
                operand = self._element(operand, name, path)
            if shape_text is not None:
                self.cache.has_operand_shapes = True
                expected = self.cache.shapes[shape_text]
                actual = operand.shape
                if expected is not actual and expected.key_ignoring_layout != actual.key_ignoring_layout:
                    raise FastPathMiss
            out.append(operand)
            pos = match.end()
        return out

    def _element(self, operand: Instruction, name: str, path: str) -> Instruction:
        """The get-tuple-element that `name#1#0` stands for; one for each path in a computation."""
        self.cache.has_elements = True
        for index in map(int, path[1:].split("#")):
            if not operand.shape.has_index([index]):
                raise FastPathMiss
            name = f"{name}#{index}"
            element = self.by_name.get(name)
            if element is None:
                element = self.by_name[name] = implied_element(self.computation, operand, index, name)
            operand = element
        return operand

    def _add_called(self, x: Instruction, attributes_of: AttributeCache, attributes_text: str) -> None:
        called = attributes_of.called[attributes_text]
        constraints = attributes_of.constraints.get(attributes_text)
        if constraints is not None and [s.key_ignoring_layout for s in constraints] != [
            o.shape.key_ignoring_layout for o in x.operands
        ]:
            raise FastPathMiss
        if x.opcode == "conditional" and len(x.operands) != len(called) + 1:
            raise FastPathMiss
        if called:
            x.called = called
            self.calling.append(x)

    def register_callers(self) -> None:
        for x in self.calling:
            for _, callee in x.called:
                callee.add_caller(x)
        self.calling.clear()

    def add_control(self, start: int) -> None:
        """Connect control predecessors of the instructions from slot `start` on."""
        for x in self.computation._slots[start:]:
            assert x is not None
            if "control-predecessors=" not in x.attributes.text:
                continue
            value = x.raw("control-predecessors")
            for name in CALLED_NAME.findall(value or ""):
                predecessor = self.by_name.get(name)
                if predecessor is None or predecessor.id >= x.id:
                    raise FastPathMiss
                predecessor.add_control_dependency_to(x)

    def finish(self) -> None:
        computation = self.computation
        slots = computation._slots
        parameters = self.parameters
        if len(self.by_name) != len(slots) or not slots:
            raise FastPathMiss  # a name comes twice, or there is no instruction
        try:
            count = len(parameters)
            numbers = _FEW[:count] if count <= len(_FEW) else map(str, range(count))
            computation.parameters = [*map(parameters.__getitem__, numbers)]
        except KeyError:
            raise FastPathMiss from None
        computation.root = self.root or slots[-1]  # type: ignore[assignment]
        self.register_callers()


class GrammarFallback:
    """The grammar for single parts of a text, called by the fast path; counts the characters it reads."""

    def __init__(self) -> None:
        self.characters = 0
        self._checked = set[str]()

    def shape(self, text: str) -> Shape:
        """The shape written by the whole text; `FastPathMiss` where it is none."""
        self.characters += len(text)
        if "//" in text:
            raise FastPathMiss  # a comment that continues after the shape
        try:
            return parse_shape(text)
        except HloParseError:
            raise FastPathMiss from None

    def common_attributes(self, text: str) -> None:
        """Raises `FastPathMiss` unless these are attributes that any instruction may have."""
        if text in self._checked:
            return
        self.characters += len(text)
        try:
            names = parse_attributes(text).keys()
        except HloParseError:
            raise FastPathMiss from None
        if not names <= COMMON or "parameter_replication" in names:
            raise FastPathMiss
        self._checked.add(text)

    def instructions(
        self,
        body: Body,
        text: str,
        start: int,
        end: int,
    ) -> None:
        """Read lines into `body`; raises `FastPathMiss` for errors about the whole text."""
        # lark is slow to import, and an ordinary text does without.
        from .build import Builder
        from .operands import Scope

        if not all(number.isdigit() and number.isascii() for number in body.parameters):
            raise FastPathMiss
        part = f"x {{{text[start:end]}\n}}"
        self.characters += len(part)
        builder = Builder(part)
        builder.pool = body.cache.computations
        scope = Scope("x")
        scope.computation = body.computation
        scope.names = body.by_name
        if "parameter(" in part:
            scope.parameters = {int(number): x for number, x in body.parameters.items()}
        # The grammar's builder tells called computations at once; those waiting come first.
        body.register_callers()
        try:
            for node in parse_rule(part, "plain_computation").instructions:
                # What is written in place of a name gets a name that depends on the whole text.
                if node.call.depth > 1 or (node.root is not None and body.root is not None):
                    raise FastPathMiss
                instruction = builder.instruction(node, scope)
                if node.root is not None:
                    body.root = instruction
                if instruction.opcode == "parameter":
                    body.parameters[instruction.payload or ""] = instruction
        except Rejected:
            raise FastPathMiss from None
        if builder.finished or builder.in_place:
            raise FastPathMiss
        if "#" in part:
            body.cache.has_elements = True

    def heading(self, text: str, start: int, end: int) -> tuple[bool, str, Shape | None]:
        """True for the entry, the name, and the result or None, from the first line of a computation."""
        part = text[start:end] + "x = token[] after-all()}"
        self.characters += len(part)
        for rule in ("plain_computation", "entry_computation"):
            try:
                node = parse_rule(part, rule)
            except Rejected:
                continue
            if len(node.instructions) == 1:
                return rule == "entry_computation", bare(node.name), node.result
        raise FastPathMiss
