"""Reading the text of a pattern; what is wrong with it is said with line and column.

The text is HLO's with less obligation and a few liberties (docs/extending.md), so it has a reader of
its own: HLO's grammar stays what XLA accepts.
"""

import re

from hlofuse.ir.opcodes import OPCODES
from hlofuse.ir.text.errors import Rejected, located, suggestion
from hlofuse.plugins.pattern.nodes import (
    Alias,
    Definition,
    Graph,
    Hole,
    Operation,
    Pattern,
    ShapePattern,
    ShapeReader,
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADER = re.compile(r"\s*HloModule[^\n]*\n")
_OPEN = re.compile(r"\s*(ENTRY\s+)?%?([\w.\-]+)\s*(\([^{}]*?\)(?:\s*->[^\n]*?)?)?\s*\{[ \t]*\n")
_NAME = re.compile(r"\s*%?([A-Za-z_][\w.\-]*)")
_OPCODE = re.compile(r"\s*([a-z][a-z0-9\-]*)\s*\(")
_ATTRIBUTE = re.compile(r"\s*,\s*([A-Za-z_][\w\-]*)\s*=\s*")
_DIGITS = re.compile(r"\d+")
_DEEPEST = 200  # matching goes down a pattern by recursion
_BRACKETS = {"{": "}", "[": "]", "(": ")"}
# Said about an instruction, but not part of what it computes.
_IGNORED = frozenset("metadata frontend_attributes sharding origin original_value statistics".split())


def parse_pattern(text: str, name: str = "<pattern>") -> Pattern:
    """The pattern written in `text`; HloParseError with line and column where it is none."""
    try:
        return _Reader(text).pattern()
    except Rejected as error:
        raise located(text, error, name) from None


class _Reader:
    def __init__(self, text: str) -> None:
        self.length = len(text)
        # Blanks in place of comments keep every position.
        self.text = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        self.at = 0
        self.shapes = ShapeReader(self.text)

    def pattern(self) -> Pattern:
        header = _HEADER.match(self.text)
        if header:
            self.at = header.end()
        called: dict[str, Graph] = {}
        main: Graph | None = None
        while not self._finished():
            opened = _OPEN.match(self.text, self.at)
            if opened is None:
                if main is not None or called:
                    raise Rejected(self._here(), "expected a computation: name { … }")
                return Pattern(self._graph(end=""))
            self.at = opened.end()
            graph = self._graph(end="}")
            called[opened[2]] = graph
            if opened[1] or main is None or not self._has_entry():
                main = graph
        if main is None:
            raise Rejected(0, "a pattern has at least one instruction")
        return Pattern(main, {k: g for k, g in called.items() if g is not main})

    def _has_entry(self) -> bool:
        return re.search(r"^\s*ENTRY\b", self.text, re.MULTILINE) is not None

    def _graph(self, end: str) -> Graph:
        start = self._here()
        definitions: dict[str, list[Definition]] = {}
        uses: list[tuple[str, int]] = []
        root: str | None = None
        name = ""
        while not self._finished():
            if end and self.text[self._here()] == end:
                self.at = self._here() + 1
                break
            is_root, where, name, definition = self._definition(uses)
            earlier = definitions.setdefault(name, [])
            self._agrees(name, definition, earlier, definitions, where)
            earlier.append(definition)
            if is_root:
                if root not in (None, name):
                    raise Rejected(where, f"{root} is the root already")
                root = name
        else:
            if end:
                raise Rejected(self.length, "expected '}' to end the computation")
        if not definitions:
            raise Rejected(start, "a pattern has at least one instruction")
        graph = Graph(root or name, {k: tuple(d) for k, d in definitions.items()})
        self._check(graph, uses, start)
        return graph

    def _agrees(
        self,
        name: str,
        new: Definition,
        earlier: list[Definition],
        others: dict[str, list[Definition]],
        where: int,
    ) -> None:
        """Definitions of one name are alternatives, but a parameter has one number and one name."""
        if not isinstance(new, Hole):
            if any(isinstance(d, Hole) for d in earlier):
                raise Rejected(where, f"{name} is a parameter already, and a parameter matches anything")
            return
        if any(not isinstance(d, Hole) or d.number != new.number for d in earlier):
            raise Rejected(where, f"{name} is something else already; a parameter keeps its number")
        for other, ds in others.items():
            if other != name and any(isinstance(d, Hole) and d.number == new.number for d in ds):
                raise Rejected(where, f"parameter({new.number}) is {other} already")

    def _check(self, graph: Graph, uses: list[tuple[str, int]], start: int) -> None:
        for name, where in uses:
            if name not in graph.definitions:
                raise Rejected(where, f"there is no {name} here{suggestion(name, graph.definitions)}")
        reached: set[str] = set()
        self._traverse(graph, graph.root, reached, (), start)
        for name in graph.definitions:
            if name not in reached:
                raise Rejected(self._place_of(name, start), f"nothing uses {name}")
        numbers = list(graph.holes.values())
        if numbers != list(range(len(numbers))):
            raise Rejected(start, f"parameters are numbered from 0 without gaps; here they are {numbers}")
        if all(isinstance(d, Hole) for d in graph.definitions[graph.root]):
            raise Rejected(start, "the root is a parameter: such a pattern matches everything")

    def _traverse(self, graph: Graph, name: str, done: set[str], above: tuple[str, ...], start: int) -> None:
        if name in above:
            raise Rejected(self._place_of(name, start), f"{name} depends on itself")
        if name in done:
            return
        if len(above) >= _DEEPEST:
            where = self._place_of(name, start)
            raise Rejected(where, f"a pattern is at most {_DEEPEST} operations deep, counted from its root")
        for definition in graph.definitions[name]:
            below = definition.operands if isinstance(definition, Operation) else ()
            if isinstance(definition, Alias):
                below = (definition.other,)
            for other in below:
                self._traverse(graph, other, done, (*above, name), start)
        done.add(name)

    def _place_of(self, name: str, start: int) -> int:
        found = re.compile(rf"%?{re.escape(name)}\s*=").search(self.text, start)
        return found.start() if found else start

    def _definition(self, uses: list[tuple[str, int]]) -> tuple[bool, int, str, Definition]:
        m = re.compile(r"\s*ROOT\b").match(self.text, self.at)
        if m:
            self.at = m.end()
        where = self._here()
        name = self._name("an instruction, for example x = f32[?] add(a, b)")
        self._expect("=")
        shape = self.shapes.read(self._here())
        if shape is not None:
            self.at = self.shapes.end
        opcode = _OPCODE.match(self.text, self.at)
        if opcode is None:
            if shape is not None:
                raise Rejected(self._here(), "expected an opcode and its operands after the shape")
            place = self._here()
            other = self._name("a shape, an opcode or another name")
            uses.append((other, place))
            return m is not None, where, name, Alias(other)
        if opcode[1] not in OPCODES:
            message = f"there is no operation {opcode[1]}{suggestion(opcode[1], OPCODES)}"
            raise Rejected(opcode.start(1), message)
        self.at = opcode.end()
        return m is not None, where, name, self._operation(opcode[1], shape, uses)

    def _operation(self, opcode: str, shape: ShapePattern | None, uses: list[tuple[str, int]]) -> Definition:
        if opcode in ("parameter", "constant"):
            place = self._here()
            payload = self._until(")").strip()
            self.at += 1
            if opcode == "parameter":
                if not _DIGITS.fullmatch(payload):
                    raise Rejected(place, "expected the parameter's number")
                self._attributes()
                return Hole(int(payload), shape)
            self._attributes()
            return Operation("constant", (), shape, {}, None if payload in ("", "?") else payload)
        operands: list[str] = []
        while self._peek() != ")":
            if operands:
                self._expect(",")
            self._skip_operand_shape()
            place = self._here()
            operands.append(self._name("an operand"))
            uses.append((operands[-1], place))
        self.at = self._here() + 1
        return Operation(opcode, tuple(operands), shape, self._attributes())

    def _skip_operand_shape(self) -> None:
        """Some dumps write an operand's shape before its name; the operand's own line says it, too."""
        if self.shapes.read(self._here()) is not None:
            self.at = self.shapes.end

    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while (m := _ATTRIBUTE.match(self.text, self.at)) is not None:
            self.at = m.end()
            place = self.at
            value = self._value()
            if not value:
                raise Rejected(place, f"expected a value for {m[1]}")
            if m[1] in found:
                raise Rejected(m.start(1), f"{m[1]} is said already")
            if m[1] not in _IGNORED:
                found[m[1]] = value if m[1] == "backend_config" else re.sub(r"\s+|%", "", value)
        rest = re.compile(r"[ \t]*([^\s}])").match(self.text, self.at)
        if rest:
            raise Rejected(rest.start(1), "expected ', name=value' or the end of the line")
        return found

    def _value(self) -> str:
        """Up to the comma or line end that is inside no bracket and no quotes."""
        start = self.at
        open_: list[str] = []
        while self.at < self.length:
            c = self.text[self.at]
            if c == '"':
                self._quoted()
                continue
            if c in _BRACKETS:
                open_.append(_BRACKETS[c])
            elif open_ and c == open_[-1]:
                open_.pop()
            elif not open_ and c in ",\n})]":
                break
            self.at += 1
        if open_:
            raise Rejected(start, f"expected '{open_[-1]}' to close what is opened here")
        return self.text[start : self.at].strip()

    def _quoted(self) -> None:
        m = re.compile(r'"(?:[^"\\\n]|\\.)*"').match(self.text, self.at)
        if m is None:
            raise Rejected(self.at, "expected a closing quote")
        self.at = m.end()

    def _here(self) -> int:
        """The next position that is not blank."""
        at = self.at
        while at < self.length and self.text[at].isspace():
            at += 1
        return at

    def _finished(self) -> bool:
        return self._here() >= self.length

    def _peek(self) -> str:
        at = self._here()
        if at >= self.length:
            raise Rejected(at, "expected ')' to end the operands")
        return self.text[at]

    def _expect(self, character: str) -> None:
        at = self._here()
        if self.text[at : at + 1] != character:
            raise Rejected(at, f"expected '{character}'")
        self.at = at + 1

    def _name(self, what: str) -> str:
        m = _NAME.match(self.text, self.at)
        if m is None:
            raise Rejected(self._here(), f"expected {what}")
        self.at = m.end()
        return m[1]

    def _until(self, character: str) -> str:
        end = self.text.find(character, self.at)
        if end < 0:
            raise Rejected(self.at, f"expected '{character}'")
        found, self.at = self.text[self.at : end], end
        return found
