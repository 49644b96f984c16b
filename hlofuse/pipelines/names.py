"""What the name of an instruction tells of where it came from."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from hlofuse.ir.instruction import Instruction

_NUMBER = re.compile(r"(.*)\.(\d+)", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_KEPT_NAMES = frozenset({"parameter", "fusion", "custom-call"})


class Name(NamedTuple):
    """A name taken apart."""

    root: str
    number: int


def name_before_renaming(instruction: Instruction) -> Name:
    """Root and number before `rename-instructions` appended .0."""
    text = instruction.name
    renamed = instruction.opcode not in _KEPT_NAMES
    numbered = not renamed
    if renamed and text.endswith(".0"):
        text, numbered = text[:-2], True
    match = _NUMBER.fullmatch(text)
    if match is None:
        return Name(text, 0)
    # Where nothing was appended the number is the renaming's own, and there was none before.
    return Name(match[1], int(match[2]) if numbered else 0)


def operation(x: Instruction) -> str:
    """What the framework calls the operation that it comes of, such as `dot_general`; "" for nothing."""
    return (x.op_name or "").rpartition("/")[2]


def stack_frame(x: Instruction) -> int:
    """The number of the place in the source that it comes of; 0 for none."""
    metadata = x.attributes.get("metadata")
    return (metadata.stack_frame_id or 0) if metadata is not None else 0


def is_of_program(x: Instruction) -> bool:
    """Is it named after the framework's operation, rather than by a pass after its opcode?"""
    if not x.op_name or x.opcode == "parameter":
        return False
    root, last = name_before_renaming(x).root, _NOT_IN_NAMES.sub("_", operation(x))
    return root == last or (last.startswith(root) and root != x.opcode)


def is_made_by_pass(x: Instruction) -> bool:
    """Is it younger than the root, outside of inlined calls? Ids have to be XLA's.

    The framework makes the root last; what calls bring in when they are inlined comes behind it, and then
    what passes make.
    """
    return x.computation is not None and x.id > x.computation.root.id and not scope(x)


_CALLED = ("/body/", "/branch_", "/eval_jaxpr")


def is_cloned_by_pass(x: Instruction) -> bool:
    """Did a pass clone an operation of the program, outside of what is called? Then it is young.

    The framework counts from 1, so that the first clone is the first to get 0. A broadcast of a clone was
    made anew with it.
    """
    if not is_of_program(x):
        return False
    if x.opcode == "broadcast":
        source = x.operands[0]
        source = source.operands[0] if source.opcode == "bitcast" else source
        return source.opcode != "broadcast" and is_cloned_by_pass(source)
    return x.name.endswith(".0.0") and not is_of_call(x)


def is_of_call(x: Instruction) -> bool:
    """Is it, or may it be, of the body of a call or of a loop?"""
    return bool(scope(x)) or any(part in (x.op_name or "") for part in _CALLED)


def scope(x: Instruction) -> str | None:
    """The call the instruction was inlined from, as its op_name tells: `jvp(jit(silu))`; "" for none.

    None if there is no op_name.
    """
    if not x.op_name:
        return None
    parts = x.op_name.partition(";")[0].split("/")[1:]
    last = max((k for k, part in enumerate(parts) if "jit(" in part), default=-1)
    return "/".join(parts[: last + 1])


def outermost_call(x: Instruction) -> str:
    """The call in its computation that the instruction came out of, whatever that called; "" for none.

    What a loop's body calls is called there, whatever called the loop.
    """
    return _outermost_call(x.op_name) if x.op_name else ""


@lru_cache(maxsize=4096)
def _outermost_call(op_name: str) -> str:
    parts = op_name.partition(";")[0].split("/")[1:]
    start = max((k + 1 for k, part in enumerate(parts) if _is_body(part)), default=0)
    first = next((k for k in range(start, len(parts)) if "jit(" in parts[k]), None)
    return "" if first is None else "/".join(parts[: first + 1])


def _is_body(part: str) -> bool:
    return part in {"body", "cond"} or part.startswith("branch_")
