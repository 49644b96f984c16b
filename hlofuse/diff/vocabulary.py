"""What an instruction says by itself, as small numbers that are equal where the meaning is equal.

Both modules of a comparison share one `Vocabulary`, so a number stands for the same thing on both
sides and comparing subgraphs is comparing integers. There are three levels of strictness:

- exact: everything but names and metadata, called computations by what they compute;
- kind: opcode and the attributes that say *which* operation it is; no literal, no annotation;
- opcode: the opcode alone.
"""

import json
import re
from collections.abc import Hashable, Sequence
from typing import Any

from hlofuse.ir import Attributes, Instruction, Shape
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES

# Notes for later passes and the runtime: they can differ while the operation is the same one.
ANNOTATIONS = frozenset(
    "backend_config channel_id frontend_attributes original_value origin sharding statistics".split()
)
# Compared elsewhere: where it came from, what it calls, what must run before it.
_NOT_ATTRIBUTES = frozenset({"metadata", "control-predecessors", *CALLED_COMPUTATION_ATTRIBUTES})

# Two of these with the same operands are still two.
_SIDE_EFFECTS = frozenset(
    (
        "all-gather-start all-reduce-start async-done async-start async-update collective-permute-start"
        " copy-start domain infeed outfeed recv recv-done rng rng-get-and-update-state send send-done"
    ).split()
)

Pairs = tuple[tuple[str, str], ...]


def must_run_once(instruction: Instruction) -> bool:
    """True where computing a value once or twice is not the same."""
    if instruction.opcode == "custom-call":
        return instruction.attributes.raw("custom_call_has_side_effect") == "true"
    return instruction.opcode in _SIDE_EFFECTS


def canonical_attribute(name: str, text: str) -> str:
    """An attribute's text, equal wherever the value is."""
    if name == "backend_config":
        return _canonical_config(text)
    return text if '"' in text else "".join(text.split())


def _canonical_config(text: str) -> str:
    """A JSON backend_config with its keys sorted and its defaults left out; other text as it is.

    In a protocol buffer a field that is absent has its default, and XLA releases differ in which
    defaults they write out.
    """
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


class Vocabulary:
    """Numbers for things: the same number for equal things, of either module."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._shapes: dict[Shape, int] = {}
        self._attributes: dict[int, tuple[Attributes, Pairs, Pairs]] = {}

    def number(self, thing: Hashable) -> int:
        """The number of `thing`."""
        numbers = self._numbers
        found = numbers.get(thing)
        if found is None:
            found = numbers[thing] = len(numbers)
        return found

    def shape(self, shape: Shape) -> int:
        """The number of a shape; an absent layout is the row-major one."""
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = self.number(("shape", shape.key))
        return found

    def attributes(self, attributes: Attributes) -> tuple[Pairs, Pairs]:
        """What says which operation it is, and the annotations; each sorted by name."""
        # Keyed by identity: the reader shares one object among all instructions with the same text.
        # The object is kept so that its id stays its own.
        found = self._attributes.get(id(attributes))
        if found is None:
            content: list[tuple[str, str]] = []
            notes: list[tuple[str, str]] = []
            for name, text in attributes.raw_items.items():
                if name not in _NOT_ATTRIBUTES:
                    (notes if name in ANNOTATIONS else content).append(
                        (name, canonical_attribute(name, text))
                    )
            found = self._attributes[id(attributes)] = (
                attributes,
                tuple(sorted(content)),
                tuple(sorted(notes)),
            )
        return found[1], found[2]

    def exact(self, instruction: Instruction, callees: Sequence[int]) -> int:
        """The number of all it says, shape included; `callees` are the numbers of what it calls."""
        content, notes = self.attributes(instruction.attributes)
        payload = instruction.payload
        if payload is not None and instruction.opcode == "constant":
            payload = "".join(re.sub(r"/\*.*?\*/", "", payload, flags=re.DOTALL).split())
        shape = self.shape(instruction.shape)
        return self.number((instruction.opcode, content, notes, payload, tuple(callees), shape))

    def kind(self, instruction: Instruction) -> int:
        """The number of opcode and attributes."""
        content, _ = self.attributes(instruction.attributes)
        return self.number((instruction.opcode, content))
