"""Calls that an op_name tells by their own names: those of a text in which calls have no metadata.

XLA's parser notes the name of such an instruction as its op_name, and CallInliner puts that in front of what
the call brought in (`UpdateOpName`, `xla/hlo/transforms/propagate_call_metadata.cc`):
`call.7/call.3/jit(f)/mul`. Older releases of JAX wrote no metadata for calls, and a text may come without
any, `jit__where_.3/select_n.1`.
"""

from __future__ import annotations

import re
from functools import lru_cache

_CALL = re.compile(r"(?:call|closed_call|jit_\w*_)(?:\.\d+)?")
_REMEMBERED = 1 << 15


def is_name_of_call(part: str) -> bool:
    """Is a part of an op_name what the framework or an older XLA calls the instruction of a call?"""
    return _CALL.fullmatch(part) is not None and (part[-1].isdigit() or part[-1] == "_")


def function_in_name(call: str) -> str:
    """The function that the name of a call tells, `jit(_where)` of `jit__where_.3`; "" if it tells none."""
    root = call.partition(".")[0]
    return f"jit({root[4:-1]})" if root.startswith("jit_") else ""


@lru_cache(maxsize=_REMEMBERED)
def named_calls(op_name: str) -> tuple[str, ...]:
    """The calls that come first in an `op_name`, from the outermost on: they were put in front last.

    A number that was inlined has nothing behind them.
    """
    parts = op_name.partition(";")[0].split("/")
    count = next((k for k, part in enumerate(parts) if not is_name_of_call(part)), len(parts))
    return tuple(parts[:count])


def calls_shared(some: tuple[str, ...], others: tuple[str, ...]) -> int:
    """How many calls two things were inlined in together, counted from the outermost."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(some), len(others)))
