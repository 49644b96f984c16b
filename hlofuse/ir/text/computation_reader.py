"""The loop over instructions: from matched lines to a connected graph; the grammar reads single parts. Opcode
forms and attribute texts of the fast path are each checked once for an opcode and shared. An opcode or
attribute that is missing here is left to the grammar. All is a subset of the grammar, with its meaning."""

from collections.abc import Callable

from msgspec import Struct

from hlofuse.ir.attributes.attributes import UNREAD, Attributes
from hlofuse.ir.errors import HloParseError
from hlofuse.ir.graph import Computation, Instruction, Instructions
from hlofuse.ir.names import NO_ORIGIN
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES, OPCODES, values
from hlofuse.ir.record import Record
from hlofuse.ir.shape import Shape
from .checks import CHECKS, ONE_DIMENSION, Check, Written
from .errors import Rejected
from .grammar import parse_attributes, parse_rule, parse_shape
from .literals import implied_element, is_plain
from .patterns import (
    CALLED_NAME,
    COMMON_ATTRIBUTES,
    OPERAND,
    OWN,
    SHARDING,
    FastPathMiss,
    ShapeCache,
    common_form,
    split_tuple,
)
from .signatures import COMMON, VARIADIC, signature
from .text import bare

Row = tuple[str, str, str, str, str, str]
"""ROOT, name, shape, opcode, text between the parentheses, attributes."""
AT_LEAST_ONE = -2

# How the loop over instructions treats an opcode.
PLAIN, PARAMETER, CONSTANT, CALLING, OTHER = range(5)
_KINDS = {
    "parameter": PARAMETER,
    "constant": CONSTANT,
    **dict.fromkeys(
        "fusion call while map reduce reduce-window select-and-scatter sort scatter all-reduce"
        " all-reduce-start reduce-scatter custom-call conditional".split(),
        CALLING,
    ),
}
_MAY_LACK_OPERANDS = values("after-all tuple fusion call map custom-call")
# What makes other instructions on the way, or is checked for more than operand counts and attributes.
_GRAMMAR_ONLY = frozenset(
    "async-start async-update async-done scan domain ragged-dot scaled-dot"
    " topk infeed outfeed send send-done recv recv-done dynamic-reshape collective-permute-start".split()
)


class Form(Record):
    """The fast path's rule for an opcode: kind, operand count (or one of the two above), attributes. `check`
    compares operands and result as XLA does (`HloParserImpl::CreateInstruction`)."""

    opcode: str
    kind: int
    operands: int
    required: frozenset[str]
    allowed: frozenset[str]
    check: Check | None
    one_dimension: bool

    @property
    def attributes_key(self) -> tuple[object, ...]:
        """A key equal for forms that read the same attributes in the same way."""
        return self.kind == CALLING, self.required, self.allowed, self.one_dimension


def form(opcode: str) -> Form | None:
    takes = signature(opcode) if opcode in OPCODES and opcode not in _GRAMMAR_ONLY else None
    if takes is None:
        return None
    operands = 2 if opcode == "dot" else takes.operands
    if operands == VARIADIC and opcode not in _MAY_LACK_OPERANDS:
        operands = AT_LEAST_ONE
    check = _CHECKS.get(opcode)
    kind = _KINDS.get(opcode, OTHER if check else PLAIN)
    required, allowed = takes.required, takes.allowed
    if opcode == "broadcast":
        required = required | {"dimensions"}
    if opcode == "conditional":
        required = required | {"branch_computations"}
        allowed = allowed - {"true_computation", "false_computation"}
    if opcode == "collective-permute":
        allowed = allowed - {"slice_sizes"}
    return Form(opcode, kind, operands, required, allowed, check, opcode in ONE_DIMENSION)


def _chooses_by_number(x: Written) -> str | None:
    index = x.operands[0].shape
    return None if index.element_type == "s32" and not index.dimensions else "chooses by another value"


_BY_OPERANDS = "tuple reshape reduce reduce-window scatter dynamic-slice dynamic-update-slice"
"""Opcodes whose checks ask for operands and result alone."""
_CHECKS = {opcode: CHECKS[opcode] for opcode in _BY_OPERANDS.split()} | {"conditional": _chooses_by_number}
Called = tuple[tuple[str, Computation], ...]
_NEW = Attributes.__new__
_CALL_ORDER = {name: place for place, name in enumerate(CALLED_COMPUTATION_ATTRIBUTES)}


class AttributeCache(dict[str, Attributes]):
    """Text to attributes, for opcodes that take the same ones. A new text is checked as by the grammar;
    `FastPathMiss` where there is no pattern for it. `called` has the computations that a text names."""

    def __init__(
        self,
        form: Form,
        computations: dict[str, Computation],
        shapes: ShapeCache,
        check_common: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.called = dict[str, Called]()
        self.constraints = dict[str, list[Shape]]()
        self._form = form
        self._calls = form.kind == CALLING
        self._computations = computations
        self._shapes = shapes
        self._check_common = check_common
        self._checked = set[str]()
        self._checked_calls = dict[str, str]()
        """Texts before the called computation, where that is last: `, kind=kLoop, calls`."""

    def __missing__(self, text: str) -> Attributes:
        match = COMMON_ATTRIBUTES.fullmatch(text)
        own = match[1] if match is not None else self._own_before_others(text)
        # Most texts differ only in their metadata or the computation called: the rest has been seen before.
        if self._calls:
            start, _, name = own.rpartition("=")
            key = self._checked_calls.get(start)
            callee = self._computations.get(name.removeprefix("%"))
            if key is not None and callee is not None:
                self.called[text] = ((key, callee),)
            else:
                self.called[text] = self._check(own, text)
        elif own not in self._checked:
            self._check(own, text)
            self._checked.add(own)
        # As Attributes(text), which would take three times as long.
        attributes = self[text] = _NEW(Attributes)
        attributes._text = text
        attributes._raw = attributes._typed = None
        attributes.op_name = UNREAD
        return attributes

    def _own_before_others(self, text: str) -> str:
        """The opcode's own attributes in a text whose others only the grammar reads."""
        match = COMMON_ATTRIBUTES.match(text)
        assert match is not None  # it matches the empty text too
        others = text[match.end(1) :]
        # A sharding is often the only uncommon part, and the same before ever other metadata.
        sharding = SHARDING.match(others)
        if sharding is not None and not others.startswith(", sharding=", sharding.end()):
            rest = COMMON_ATTRIBUTES.fullmatch(others, sharding.end())
            if rest is not None and not rest[1]:
                others = sharding[0]
        self._check_common(others)
        return match[1]

    def _check(self, own: str, text: str) -> Called:
        """Names and values of the opcode's own attributes; the computations they name."""
        pairs = OWN.findall(own)
        values = dict(pairs)
        form = self._form
        if len(values) != len(pairs) or not form.required <= values.keys() <= form.allowed:
            raise FastPathMiss
        for name, value in pairs:
            pattern = common_form(name)
            if pattern is None or pattern.fullmatch(value) is None:
                raise FastPathMiss
            consistent = _CONSISTENT.get(name)
            if consistent is not None and not consistent(value):
                raise FastPathMiss
        if form.one_dimension and ("," in values.get("dimensions", "") or values.get("dimensions") == "{}"):
            raise FastPathMiss
        if values.get("use_global_device_ids") == "true" and "channel_id" not in values:
            raise FastPathMiss
        constraints = values.get("operand_layout_constraints")
        if constraints is not None:
            parts = split_tuple(f"({constraints[1:-1]})")
            if parts is None:
                raise FastPathMiss
            self.constraints[text] = [self._shapes[p] for p in parts]
        if not self._calls:
            return ()
        called = self._find_called(pairs)
        if (
            constraints is None
            and len(called) == 1
            and pairs[-1][0] == called[0][0]
            and pairs[-1][1][0] != "{"
        ):
            self._checked_calls[own.rpartition("=")[0]] = called[0][0]
        return called

    def _find_called(self, pairs: list[tuple[str, str]]) -> Called:
        """The computations named, in XLA's order; all of them stand earlier in the text."""
        out = []
        for key, value in pairs:
            if key in _CALL_ORDER:
                for name in CALLED_NAME.findall(value):
                    callee = self._computations.get(name)
                    if callee is None:
                        raise FastPathMiss
                    out.append((key, callee))
        if len(out) > 1:
            out.sort(key=lambda c: _CALL_ORDER[c[0]])
        return tuple(out)


def _window_is_consistent(text: str) -> bool:
    return len({field.count("x", field.index("=")) for field in text[1:-1].split()}) == 1


def _labels_are_consistent(text: str) -> bool:
    """True if each part has its two letters and every dimension once."""
    inputs, _, rest = text.partition("_")
    kernel, _, output = rest.partition("->")
    count = len(inputs) - 2
    digits = [str(n) for n in range(count)]
    return count <= 10 and all(
        sorted(part) == sorted([*digits, *letters])
        for part, letters in ((inputs, "bf"), (kernel, "io"), (output, "bf"))
    )


_CONSISTENT: dict[str, Callable[[str], bool]] = {
    "window": _window_is_consistent,
    "dim_labels": _labels_are_consistent,
}
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
        self.has_control = False  # True once control dependencies have to be connected
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
    calling: Instructions = []
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
        nothing: Instructions = []
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

    def _shaped_operands(self, text: str) -> Instructions:
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

    def _operands(self, text: str) -> Instructions:
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
        if x.opcode == "conditional" and x.operand_count != len(called) + 1:
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
            for name in CALLED_NAME.findall(x.raw("control-predecessors") or ""):
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


class GrammarFallback(Struct):
    """The grammar for single parts of a text, called by the fast path; counts the characters it reads."""

    characters: int = 0
    _checked: set[str] = set()

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
                if instruction.is_parameter:
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
