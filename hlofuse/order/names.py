"""What the name of an instruction tells of where it came from."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.order.named_calls import named_calls

_NUMBER_BEHIND = re.compile(r"(\.\d+)+$")
_NUMBER = re.compile(r"(.*)\.(\d+)", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_KEPT_NAMES = frozenset({"parameter", "fusion", "custom-call"})
ENTRY_OF_OLDER = "jit(main)"
_OPCODES = {
    "add_any": "add",
    "cos": "cosine",
    "div": "divide",
    "eq": "compare",
    "exp": "exponential",
    "expm1": "exponential-minus-one",
    "ge": "compare",
    "gt": "compare",
    "le": "compare",
    "log1p": "log-plus-one",
    "lt": "compare",
    "max": "maximum",
    "min": "minimum",
    "mul": "multiply",
    "ne": "compare",
    "neg": "negate",
    "pow": "power",
    "rem": "remainder",
    "select_n": "select",
    "sin": "sine",
    "sub": "subtract",
}
"""What is element-wise, after which older releases name nothing: names are opcodes there."""
_OF_FRAMEWORK = frozenset({*_OPCODES, "convert_element_type", "integer_pow", "square"})
"""What the framework calls element-wise operations that XLA has other names for."""
_REMEMBERED = 1 << 15
"""Names and paths are asked about again and again, and of those no more than a module has."""


class Name(NamedTuple):
    """A name taken apart."""

    root: str
    number: int


def name_before_renaming(instruction: Instruction) -> Name:
    """Root and number before `rename-instructions` appended .0."""
    return _before_renaming(instruction.name, instruction.opcode not in _KEPT_NAMES)


def number_in_name(instruction: Instruction) -> int:
    """The number of that name; 0 if it has none."""
    return name_before_renaming(instruction).number


@lru_cache(maxsize=_REMEMBERED)
def _before_renaming(text: str, renamed: bool) -> Name:
    numbered = not renamed
    if renamed and text.endswith(".0"):
        text, numbered = text[:-2], True
    match = _NUMBER.fullmatch(text)
    if match is None:
        return Name(text, 0)
    # Where nothing was appended the number is the renaming's own, and there was none before.
    return Name(match[1], int(match[2]) if numbered else 0)


def is_of_several(x: Instruction) -> bool:
    """Did a pass make it of several operations, of which it has the names of all?"""
    return ";" in (x.op_name or "")


def is_one_missing(before: Instruction, behind: Instruction) -> bool:
    """Is there a number of the same root between theirs, of what is gone?"""
    first, last = name_before_renaming(before), name_before_renaming(behind)
    return first.root == last.root and last.number - first.number == 2


def is_without_op_name(x: Instruction) -> bool:
    """Did it have no op_name when the compiler was given it? Its own name is no other."""
    name = x.op_name or ""
    return not name or ("/" not in name and _operation(name) == name_before_renaming(x).root != name)


def operation(x: Instruction) -> str:
    """What the framework calls the operation that it comes of, such as `dot_general`; "" for nothing.

    Of a text without metadata XLA notes the name of an instruction instead, number and all.
    """
    return _operation(x.op_name or "")


@lru_cache(maxsize=_REMEMBERED)
def _operation(op_name: str) -> str:
    name = op_name.rpartition("/")[2]
    return _NUMBER_BEHIND.sub("", name) if name[-1:].isdigit() else name


def opcode_of(name: str) -> str:
    """Of what the framework calls so, if it is element-wise."""
    return _OPCODES.get(name, name)


def stack_frame(x: Instruction) -> int:
    """The number of the place in the source that it comes of; 0 for none."""
    metadata = x.attributes.get("metadata")
    return (metadata.stack_frame_id or 0) if metadata is not None else 0


def is_of_program(x: Instruction) -> bool:
    """Is it named after the framework's operation, rather than by a pass after its opcode?

    In a text without metadata an element-wise operation that is named otherwise is.
    """
    op_name, opcode = x.op_name, x.opcode
    if op_name:
        return opcode != "parameter" and _is_named_after(x.name, op_name, opcode)
    return opcode in ELEMENTWISE_OPCODES and name_before_renaming(x).root in _OF_FRAMEWORK


def is_told_of_program(x: Instruction) -> bool:
    """The same where the metadata has to tell: ids are guessed of all operations alike, or of none."""
    op_name, opcode = x.op_name, x.opcode
    if not op_name or opcode == "parameter":
        return False
    return _is_named_after(x.name, op_name, opcode)


def is_of_older_release(x: Instruction) -> bool:
    """Does its op_name tell of the entry, as those of older releases of JAX do?"""
    return _names_entry(x.op_name or "")


@lru_cache(maxsize=_REMEMBERED)
def _names_entry(op_name: str) -> bool:
    _, *parts = op_name.split("/")[len(named_calls(op_name)) :]
    return len(parts) > 1 and parts[0] == ENTRY_OF_OLDER


@lru_cache(maxsize=_REMEMBERED)
def _is_named_after(name: str, op_name: str, opcode: str) -> bool:
    root = _before_renaming(name, opcode not in _KEPT_NAMES).root
    last = _NOT_IN_NAMES.sub("_", op_name.rpartition("/")[2])
    if root == opcode == _OPCODES.get(last):
        return _names_entry(op_name)
    return root == last or (last.startswith(root) and root != opcode)
