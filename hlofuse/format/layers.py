"""Which layer of a model an operation is from, out of the framework's name for it (`op_name`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

# `jvp(…)`, `vmap(…)`: what JAX's transformations write around the name of a scope.
_AROUND = re.compile(r"([A-Za-z_]\w*)\((.*)\)", re.DOTALL)
# Names of functions, of the computations of control flow, einsum's formulas: no scopes of the program.
_FUNCTIONS = frozenset(("jit", "pjit", "core_call", "closed_call", "custom_jvp", "custom_vjp"))
_NO_SCOPE = re.compile(
    r"while|body|cond|branch_\d+_fun|closed_call|core_call|checkpoint|remat2?|rematted_computation|"
    r"custom_[jv][vj]p_call|eval_jaxpr|shard_map|pjit|jit|.*<(?:locals|lambda)>.*|.*->.*|"
)


@lru_cache(maxsize=4096)
def layer_of(op_name: str | None) -> str:
    """`jit(f)/transpose(jvp(Net))/layer_0/Dense_1/dot_general` → `Net/layer_0/Dense_1, backward`.

    The scopes that a framework's modules, or `jax.named_scope`, open around an operation; empty without.
    """
    *around, _ = _segments((op_name or "").split(";", 1)[0])
    shown: list[str] = []
    backward = False
    for segment in around:
        while (match := _AROUND.fullmatch(segment)) is not None:
            if match[1] in _FUNCTIONS:
                segment = ""
            else:
                backward |= match[1] == "transpose"
                segment = match[2]
        # Rematerialization names the way in twice.
        if not _NO_SCOPE.fullmatch(segment) and segment not in shown[-1:]:
            shown.append(segment)
    return "/".join(shown) + (", backward" if shown and backward else "")


def _segments(name: str) -> Iterator[str]:
    """What stands between slashes that are in no parentheses."""
    depth = start = 0
    for n, c in enumerate(name):
        depth += (c == "(") - (c == ")")
        if c == "/" and depth <= 0:
            yield name[start:n]
            start = n + 1
    yield name[start:]
