"""Reads a dump: the fast path where its patterns fit, the grammar for the rest."""

from functools import partial

from hlofuse.ir.errors import HloParseError
from hlofuse.ir.graph import Module
from hlofuse.ir.native import no_collection
from hlofuse.ir.shape import Shape
from hlofuse.ir.text.computation_reader import Body
from hlofuse.ir.text.errors import Rejected
from hlofuse.ir.text.fast import read_fast
from hlofuse.ir.text.grammar import parse_attributes, parse_rule, parse_shape
from hlofuse.ir.text.newer import read_newer
from hlofuse.ir.text.patterns import FastPathMiss
from hlofuse.ir.text.signatures import COMMON
from hlofuse.ir.text.text import bare


class GrammarFallback:
    """The grammar for single parts of a text, called by the fast path; counts the characters it reads."""

    def __init__(self) -> None:
        self.characters = 0
        self._checked: set[str] = set()

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

    def instructions(self, body: Body, text: str, start: int, end: int) -> None:
        """Read lines into `body`; raises `FastPathMiss` for errors about the whole text."""
        # lark is slow to import, and an ordinary text does without.
        from hlofuse.ir.text.build import Builder
        from hlofuse.ir.text.operands import Scope

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


@no_collection()
def parse_module(text: str, filename: str | None = None, *, strict: bool = True) -> Module:
    """Read a dump; raises `HloParseError` for text that is not HLO (`ParseAndReturnUnverifiedModule`).

    Without `strict`, parts that the grammar does not know stay as written; `module.unknown` lists them.
    """
    try:
        module = read_fast(text, GrammarFallback())
    except FastPathMiss:
        newer = None if strict else read_newer(text, partial(parse_module, filename=filename), filename)
        if newer is not None:
            return newer
        # lark is slow to import, and an ordinary text does without.
        from hlofuse.ir.text.build import parse_by_grammar

        return parse_by_grammar(text, filename)
    module.filename = filename
    return module
