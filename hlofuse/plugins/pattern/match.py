"""Pattern matching at one root: the root first, then operands, commutative ones in both orders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.plugins.pattern.nodes import Alias, Definition, Graph, Hole, Operation, Pattern, Sizes, fit
from hlofuse.plugins.pattern.values import Value, candidates, origin

COMMUTATIVE = frozenset("add multiply maximum minimum and or xor".split())
"""Operations whose two operands may be exchanged (`HloOpcodeIsBinaryCommutative`)."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the names of a pattern stand for."""

    names: Mapping[str, Value] = field(default_factory=dict)
    holes: Mapping[str, Instruction] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    matched: tuple[Value, ...] = ()
    """Every operation that is part of it, those passed over included."""


class Matcher:
    """One pattern; `through` are operations of one operand that may stand between any two of its own."""

    def __init__(self, pattern: Pattern, through: Collection[str] = ()) -> None:
        self.pattern = pattern
        self.through = frozenset(through)
        self._roots = _opcodes(pattern.graph, pattern.graph.root)

    def at(self, root: Instruction) -> Iterator[Found]:
        """All ways in which the pattern stands with its root here."""
        return self.search()(root)

    def search(self) -> Callable[[Instruction], Iterator[Found]]:
        """`at` for many roots of a graph that stays as it is: what is learnt at one serves the others."""
        matcher = _Matcher(self.pattern.graph, self.pattern.called, self.through)

        def at(root: Instruction) -> Iterator[Found]:
            # An operation that is passed over is no root: the same match stands without it.
            if root.opcode in self._roots or root.opcode == "fusion":
                yield from matcher.named(self.pattern.graph.root, Value(root), Found())

        return at


@dataclass(frozen=True, slots=True)
class _Matcher:
    graph: Graph
    called: Mapping[str, Graph]
    through: frozenset[str]
    applied: bool = False
    """The computation is called by an instruction: its parameters are what they are."""
    impossible: dict[tuple[str, Value], bool] = field(default_factory=dict)

    def named(self, name: str, value: Value, found: Found) -> Iterator[Found]:
        bound = found.names.get(name)
        if bound is not None:
            if name in found.holes:
                same = self._external_value(value)[0] == bound
            else:
                same = bound == value or origin(bound, self.through) == origin(value, self.through)
            if same:
                yield found
            return
        if not self._possible(name, value):
            return
        for definition in self.graph.definitions[name]:
            if isinstance(definition, Alias):
                for more in self.named(definition.other, value, found):
                    yield replace(more, names={**more.names, name: value})
            elif isinstance(definition, Hole):
                yield from self._hole(name, definition, value, found)
            else:
                yield from self._operation(name, definition, value, found)

    def _hole(self, name: str, hole: Hole, value: Value, found: Found) -> Iterator[Found]:
        if self.applied:
            instruction = value.instruction
            if instruction.opcode != "parameter" or instruction.parameter_number != hole.number:
                return
            sizes = fit(hole.shape, instruction.shape, found.sizes)
            if sizes is not None:
                yield replace(found, names={**found.names, name: value}, sizes=sizes)
            return
        place, passed = self._external_value(value)
        sizes = fit(hole.shape, place.instruction.shape, found.sizes) if place is not None else None
        if place is not None and sizes is not None:
            yield Found(
                {**found.names, name: place},
                {**found.holes, name: place.instruction},
                sizes,
                (*found.matched, *passed),
            )

    def _external_value(self, value: Value) -> tuple[Value | None, tuple[Value, ...]]:
        """The array a kernel would read for it: what another kernel only has inside is none."""
        for place, passed in candidates(value, self.through):
            if not place.fusions:
                return place, passed
        return None, ()

    def _operation(self, name: str, wanted: Operation, value: Value, found: Found) -> Iterator[Found]:
        for place, passed in self._places(wanted, value):
            sizes = fit(wanted.shape, place.instruction.shape, found.sizes)
            if sizes is None:
                continue
            here = replace(
                found,
                names={**found.names, name: place},
                sizes=sizes,
                matched=(*found.matched, *passed, place),
            )
            for order in _orders(wanted):
                yield from self._operands(wanted.operands, place, order, here)

    def _places(self, wanted: Operation, value: Value) -> Iterator[tuple[Value, tuple[Value, ...]]]:
        """What may be meant by an operation, its operands and named sizes aside."""
        for place, passed in candidates(value, self.through):
            instruction = place.instruction
            if instruction.opcode != wanted.opcode or not _same_constant(wanted, instruction):
                continue
            if wanted.opcode != "constant" and len(instruction.operands) != len(wanted.operands):
                continue
            if self._attributes(wanted, instruction):
                yield place, passed

    def _operands(
        self, names: tuple[str, ...], place: Value, order: tuple[int, ...], found: Found
    ) -> Iterator[Found]:
        if not names:
            yield found
            return
        for more in self.named(names[0], place.operand(order[0]), found):
            yield from self._operands(names[1:], place, order[1:], more)

    def _possible(self, name: str, value: Value) -> bool:
        """False where no choice of anything else would make it fit: asked once for each name and value.

        Without this, trying both orders of nested operations takes exponential time.
        """
        key = (name, value)
        bound = self.impossible.get(key)
        if bound is None:
            bound = True
            for definition in self.graph.definitions[name]:
                if self._may_be(definition, value):
                    bound = False
                    break
            self.impossible[key] = bound
        return not bound

    def _may_be(self, definition: Definition, value: Value) -> bool:
        # Loops, not generators: this goes as deep as the pattern, and each would be another frame.
        if isinstance(definition, Alias):
            return self._possible(definition.other, value)
        if isinstance(definition, Hole):
            place = value if self.applied else self._external_value(value)[0]
            return place is not None and fit(definition.shape, place.instruction.shape, {}) is not None
        for place, _ in self._places(definition, value):
            if fit(definition.shape, place.instruction.shape, {}) is None:
                continue
            for order in _orders(definition):
                for name, number in zip(definition.operands, order, strict=True):
                    if not self._possible(name, place.operand(number)):
                        break
                else:
                    return True
        return False

    def _attributes(self, wanted: Operation, instruction: Instruction) -> bool:
        computations = dict(instruction.called)
        return all(
            self._calls(text, computations[name])
            if name in computations
            else attribute_fits(name, text, instruction)
            for name, text in wanted.attributes.items()
        )

    def _calls(self, name: str, computation: Computation) -> bool:
        """A computation of the text, or an operation on the two parameters (`to_apply=maximum`)."""
        graph = self.called.get(name)
        if graph is not None:
            matcher = _Matcher(graph, self.called, frozenset(), applied=True)
            return any(True for _ in matcher.named(graph.root, Value(computation.root), Found()))
        root = computation.root
        numbers = [o.parameter_number for o in root.operands if o.opcode == "parameter"]
        if root.opcode != name or len(numbers) != len(root.operands):
            return False
        return numbers == [0, 1] or (name in COMMUTATIVE and numbers == [1, 0])


def _orders(wanted: Operation) -> tuple[tuple[int, ...], ...]:
    """The orders in which an operation's operands may stand."""
    if wanted.opcode in COMMUTATIVE and len(wanted.operands) == 2:
        return (0, 1), (1, 0)
    return (tuple(range(len(wanted.operands))),)


def _same_constant(wanted: Operation, instruction: Instruction) -> bool:
    if wanted.opcode != "constant" or wanted.constant is None:
        return True
    text, found = wanted.constant, instruction.payload or ""
    try:
        return float(text) == float(found) or text.lower() == found.lower() == "nan"
    except ValueError:
        return "".join(text.split()) == "".join(found.split())


def _opcodes(graph: Graph, name: str) -> frozenset[str]:
    found: set[str] = set()
    for definition in graph.definitions[name]:
        if isinstance(definition, Alias):
            found |= _opcodes(graph, definition.other)
        elif isinstance(definition, Operation):
            found.add(definition.opcode)
    return frozenset(found)


_NUMBERS = re.compile(r"\{([-\d:,]*)\}")
_BLANK = re.compile(r"\s+|%")


def attribute_fits(name: str, wanted: str, instruction: Instruction) -> bool:
    """Equal texts, dimensions counted from either end; a backend config needs only hold what is written."""
    found = instruction.attributes.raw(name)
    if name == "backend_config":
        return _contains(_json(found), _json(wanted))
    numbers = _NUMBERS.fullmatch(wanted)
    if numbers:
        listed = _NUMBERS.fullmatch(_BLANK.sub("", found)) if found is not None else _NUMBERS.fullmatch("{}")
        if listed is not None:
            rank = _rank(name, instruction)
            return _dimensions(numbers[1], rank) == _dimensions(listed[1], rank)
    return found is not None and _BLANK.sub("", found) == wanted


def _rank(name: str, instruction: Instruction) -> int:
    """The rank that the dimensions of an attribute count in."""
    operands = instruction.operands
    if instruction.opcode == "broadcast" or not operands:
        return instruction.shape.rank
    return operands[1 if name.startswith("rhs_") and len(operands) > 1 else 0].shape.rank


def _dimensions(text: str, rank: int) -> list[int] | None:
    """`0,-1` and `:-1` as plain dimensions; None where there is no such dimension."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        try:
            if ":" in part:
                first, _, last = part.partition(":")
                ends = slice(int(first) if first else None, int(last) if last else None)
                found += range(rank)[ends]
            else:
                number = int(part)
                found.append(number + rank if number < 0 else number)
        except ValueError:
            return None
    return found


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            k in found and _contains(found[k], v) for k, v in wanted.items()
        )
    return bool(found == wanted)
