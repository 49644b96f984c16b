"""The key of an instruction: equal for instructions that are the same at a strictness, names aside."""

import json
import re
from collections.abc import Hashable
from enum import IntEnum
from functools import lru_cache
from typing import Any

from hlofuse.ir import Attributes, Computation, Dims, Instruction, Shape
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES


class Strictness(IntEnum):
    """The attributes that count. A higher number ignores more."""

    WRITTEN = 0  # All but metadata. Called computations and control predecessors are compared as edges
    PROGRAM = 1  # Without the origin of values
    IDENTICAL = 2  # Without annotations (`HloInstruction::Identical`)
    COMPUTED = 3  # Without the configuration of the backend and the memory that a library call works in
    OPERATION = 4  # Without numbers of channels


_IGNORED_FROM: dict[str, Strictness] = {
    **dict.fromkeys((*CALLED_COMPUTATION_ATTRIBUTES, "metadata", "control-predecessors"), Strictness.WRITTEN),
    **dict.fromkeys(("origin", "original_value"), Strictness.PROGRAM),
    **dict.fromkeys(("frontend_attributes", "sharding", "statistics"), Strictness.IDENTICAL),
    "backend_config": Strictness.COMPUTED,
    "channel_id": Strictness.OPERATION,
}
"""The strictness from which an attribute does not count. Others always do."""
ANNOTATIONS = frozenset(name for name, level in _IGNORED_FROM.items() if level > Strictness.WRITTEN)
"""Attributes for later passes and the runtime: they can differ while the operation is the same."""
_FINGERPRINT = re.compile(r'fingerprint_before_lhs="\w*",? *')  # XLA's hash of all the rest
AttributeTexts = tuple[tuple[str, str], ...]


def canonical_attribute(name: str, text: str) -> str:
    """An attribute's text, equal wherever the value is."""
    if name == "backend_config":
        return _canonical_config(text)
    return _FINGERPRINT.sub("", text) if '"' in text else "".join(text.split())


@lru_cache(maxsize=4096)
def _canonical_config(text: str) -> str:
    """A JSON backend_config with its keys sorted and its defaults left out; other text as it is. An absent
    field of a protocol buffer has its default, and releases differ in which they write."""
    body = text
    if body.startswith('"'):
        try:
            body = json.loads(body)
        except ValueError:
            return text
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict):
        return text
    return json.dumps(_without_defaults(value), sort_keys=True, separators=(",", ":"))


_DEFAULTS: tuple[Any, ...] = (False, None, "", "0", [], {})


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        compared = {k: _without_defaults(v) for k, v in value.items()}
        return {k: v for k, v in compared.items() if v not in _DEFAULTS and not str(v).endswith("_INVALID")}
    if isinstance(value, list):
        return [_without_defaults(v) for v in value]
    return value


def payload(x: Instruction) -> str:
    """The text between the parentheses that is no operand; empty without one."""
    if x.payload is None:
        return ""
    return x.literal.canonical_text if x.is_constant else x.payload.strip()


def result(x: Instruction) -> Shape:
    """The shape without the bytes that a library call works in."""
    shape = x.shape
    if x.opcode != "custom-call" or not shape.is_tuple or len(shape.tuple_shapes) < 2:
        return shape
    last = shape.tuple_shapes[-1]
    is_scratch = last.element_type in ("s8", "u8") and last.rank == 1
    return Shape.tuple_of(shape.tuple_shapes[:-1]) if is_scratch else shape


def signature(x: Instruction) -> tuple[str, tuple[Dims, ...]]:
    """Opcode and dimensions of the results: they differ where a name means another operation."""
    return x.opcode, tuple([tuple(leaf.dimensions) for leaf in x.shape.leaf_shapes])


class Keys:
    """Numbers that are equal for equal instructions, as long as called computations do not change."""

    def __init__(self, strictness: Strictness = Strictness.IDENTICAL) -> None:
        self.strictness = strictness
        self._numbers = dict[Hashable, int]()
        self._shapes = dict[Shape, int]()
        self._of = dict[Computation, int]()
        self._attributes: list[dict[int, tuple[Attributes, AttributeTexts, int]]] = [{} for _ in Strictness]

    def number(self, thing: Hashable) -> int:
        """The number of `thing`; equal for equal things of all modules."""
        return self._numbers.setdefault(thing, len(self._numbers))

    def shape(self, shape: Shape) -> int:
        """The number of a shape; an absent layout is the row-major one."""
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = self.number(("shape", shape.key))
        return found

    def attributes(self, attributes: Attributes) -> AttributeTexts:
        """The attributes that count, sorted by name."""
        return self._counted(attributes, self.strictness)[1]

    def attributes_number(self, attributes: Attributes, strictness: Strictness) -> int:
        found = self._attributes[strictness].get(id(attributes))
        return (found if found is not None else self._counted(attributes, strictness))[2]

    def _counted(
        self, attributes: Attributes, strictness: Strictness
    ) -> tuple[Attributes, AttributeTexts, int]:
        # Keyed by identity: the reader shares one object among all instructions with the same text.
        # The object is kept so that its id stays its own.
        found = self._attributes[strictness].get(id(attributes))
        if found is None:
            texts = tuple(
                sorted(
                    # XLA compares the instructions of one module as they are.
                    (name, text if strictness is Strictness.IDENTICAL else canonical_attribute(name, text))
                    for name, text in attributes.raw_items.items()
                    if name not in _IGNORED_FROM or _IGNORED_FROM[name] > strictness
                )
            )
            found = self._attributes[strictness][id(attributes)] = (attributes, texts, self.number(texts))
        return found

    def operation(self, x: Instruction) -> Hashable:
        """Opcode, attributes and called computations (`HloInstruction::SameOp`)."""
        attributes = self.attributes(x.attributes)
        if not x.called:
            return (x.opcode, attributes)
        return (x.opcode, attributes, tuple([(name, self.computation(c)) for name, c in x.called]))

    def instruction(self, x: Instruction, *, layouts: bool = True) -> Hashable:
        """The operation and its shape. Operands are left out."""
        shape = x.shape.key if layouts else x.shape.key_ignoring_layout
        return (shape, self.operation(x))

    def computation(self, computation: Computation) -> int:
        """Equal numbers: the same operations on the same operands, root included."""
        cached = self._of.get(computation)
        if cached is None:
            values = dict[Instruction, int]()
            for x in computation.post_order():
                key = (self.instruction(x), x.payload, tuple(values[o] for o in x.operands))
                values[x] = self.number(key)
            cached = self._of[computation] = values[computation.root]
        return cached

    def forget(self, computation: Computation) -> None:
        if self._of.pop(computation, None) is not None:
            for caller in computation.callers:
                if caller.computation is not None:
                    self.forget(caller.computation)
