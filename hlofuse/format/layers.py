"""The framework's name of an operation (`op_name`): the layer of the model in it, and parts of it."""

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


def has_part(op_name: str, part: str) -> bool:
    """True if the components of `part` stand in a row in `op_name`.

    `softmax` is also that of `transpose(jvp(softmax))`. XLA joins the names of merged operations with `;`.
    """
    wanted = [c for c in _segments(part) if c]
    if not wanted or wanted[-1] not in op_name:
        return False
    for name in op_name.split(";"):
        components = [c for c in _segments(name) if c]
        for start in range(len(components) - len(wanted) + 1):
            if all(_names(components[start + k], w) for k, w in enumerate(wanted)):
                return True
    return False


def _names(component: str, wanted: str) -> bool:
    while component != wanted:
        around = _AROUND.fullmatch(component)
        if around is None:
            return False
        component = around[2]
    return True


def _segments(name: str) -> Iterator[str]:
    """What stands between slashes that are in no parentheses."""
    depth = start = 0
    for n, c in enumerate(name):
        depth += (c == "(") - (c == ")")
        if c == "/" and depth <= 0:
            yield name[start:n]
            start = n + 1
    yield name[start:]
