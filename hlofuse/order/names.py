"""Operation, call and loop of an instruction, read from its name and metadata."""

import re
from functools import lru_cache
from typing import NamedTuple

from hlofuse.ir import Instruction, values

_NUMBER = re.compile(r"(.*)\.(\d+)", re.DOTALL)
_NUMBERS_AT_END = re.compile(r"(\.\d+)+$")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_BODIES = re.compile(r"body|cond|branch_\d+_fun")  # the computations of loops and conditionals
_FUNCTIONS_OF_SCAN = values("eval_jaxpr closed_call")
"""Functions that the framework creates for parts of a program without jit."""
_NOT_RENAMED = values("parameter fusion custom-call")
_NAMED = """
    add_any=add cos=cosine div=divide exp=exponential expm1=exponential-minus-one log1p=log-plus-one
    max=maximum min=minimum mul=multiply neg=negate pow=power rem=remainder select_n=select sin=sine
    sub=subtract eq=compare ge=compare gt=compare le=compare lt=compare ne=compare
"""
_OPCODES = dict(pair.split("=") for pair in _NAMED.split())
"""Element-wise operations of the framework with another name than XLA's."""
_AS_NAMED = """
    convert_element_type dynamic_slice dynamic_update_slice reduce_precision shift_left shift_right_arithmetic
    shift_right_logical
""".split()
LOWERED = _OPCODES | {n: n.replace("_", "-") for n in _AS_NAMED} | {"convert_element_type": "convert"}
"""The opcode to which an operation of the framework is lowered."""
_CACHED = 1 << 15  # the limit of distinct names and paths of a module; each is read many times


class Name(NamedTuple):
    stem: str
    number: int


def name_before_renaming(x: Instruction) -> Name:
    """Stem and number before `rename-instructions` appended .0."""
    return _strip_renaming(x.name, x.opcode not in _NOT_RENAMED)


@lru_cache(maxsize=_CACHED)
def _strip_renaming(text: str, renamed: bool) -> Name:
    numbered = not renamed
    if renamed and text.endswith(".0"):
        text, numbered = text[:-2], True
    match = _NUMBER.fullmatch(text)
    if match is None:
        return Name(text, 0)
    # Where nothing was appended the number is the renaming's own, and there was none before.
    return Name(match[1], int(match[2]) if numbered else 0)


def stem(x: Instruction) -> str:
    return name_before_renaming(x).stem


def number(x: Instruction) -> int:
    """The number of the name; 0 if it has none."""
    return name_before_renaming(x).number


def operation(x: Instruction) -> str:
    """The framework's operation, such as `dot_general`; "" for none."""
    return _operation(x.op_name or "")


@lru_cache(maxsize=_CACHED)
def _operation(op_name: str) -> str:
    name = op_name.rpartition("/")[2]
    return _NUMBERS_AT_END.sub("", name) if name[-1:].isdigit() else name


def is_without_op_name(x: Instruction) -> bool:
    """True if the front end gave it no op_name: XLA has added its own since."""
    name = x.op_name or ""
    return not name or ("/" not in name and _operation(name) == stem(x) != name)


def is_of_program(x: Instruction) -> bool:
    """True if it has the name of the framework's operation, not one from a pass and its opcode."""
    op_name = x.op_name
    return bool(op_name) and not x.is_parameter and _is_named_after(x.name, op_name or "", x.opcode)


@lru_cache(maxsize=_CACHED)
def _is_named_after(name: str, op_name: str, opcode: str) -> bool:
    stem = _strip_renaming(name, opcode not in _NOT_RENAMED).stem
    last = _NOT_IN_NAMES.sub("_", op_name.rpartition("/")[2])
    if stem == opcode == _OPCODES.get(last):
        return False
    return stem == last or (last.startswith(stem) and stem != opcode)


def is_of_call(x: Instruction) -> bool:
    """True if it was inlined from a computation that its own computation called."""
    in_body, call = _innermost(x.op_name or "")
    if in_body:
        return bool(x.computation is not None and x.computation.is_entry)
    return call


@lru_cache(maxsize=_CACHED)
def _innermost(op_name: str) -> tuple[bool, bool]:
    """True for the body of a loop or branch, and True for a call, as the innermost scope."""
    of_program, _, _ = op_name.partition(";")  # of several names the first counts
    for part in reversed(of_program.split("/")[1:]):
        if _BODIES.fullmatch(part):
            return True, False
        if "jit(" in part or part in _FUNCTIONS_OF_SCAN:
            return False, True
    return False, False
