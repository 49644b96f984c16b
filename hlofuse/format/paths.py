"""Files of the user's program relative to the project, and layers of the model in an `op_name`."""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from hlofuse.ir import Strings, values
from hlofuse.ir.attributes.metadata import SourceLocation

_PACKAGES = re.compile(r"(?:site|dist)-packages")
Direction: TypeAlias = Literal["forward", "backward", "recomputed", "other"]
"""The place of an operation in a program that JAX differentiates; `other` outside of the derivative."""


@lru_cache(maxsize=4096)
def portable(file: str, root: Path) -> str:
    """A file's path relative to `root`. The part after `site-packages`; else the longest end of the path that
    is a file below `root`; else, for an absolute path, the name alone: others are private."""
    path = PurePosixPath(file.replace("\\", "/"))
    parts = [p for p in path.parts if p not in ("/", "..", ".")]
    packages = [k for k, part in enumerate(parts) if _PACKAGES.fullmatch(part)]
    if packages:
        return "/".join(parts[packages[-1] + 1 :])
    for k in range(len(parts)):
        candidate = "/".join(parts[k:])
        if is_file(root, candidate):
            return candidate
    absolute = path.is_absolute() or file[1:2] == ":"
    return parts[-1] if absolute and parts else "/".join(parts)


def is_file(root: Path, relative: str) -> bool:
    """True for a file below `root`, which can be annotated."""
    try:
        return bool(relative) and (root / relative).is_file()
    except (OSError, ValueError):
        return False


def shown_file(file: str) -> str:
    """The path relative to the working directory, assumed to be the project."""
    try:
        return portable(file, Path.cwd())
    except OSError:  # the directory was removed
        return file


def source_text(source: SourceLocation | None) -> str:
    """`model.py:35`; empty for None."""
    if source is None:
        return ""
    file = shown_file(source.file)
    return f"{file}:{source.line}" if source.line else file


def source_in_function(source: SourceLocation | None) -> str:
    """`model.py:35 forward`; the line alone where the dump lacks a function, empty for None."""
    return f"{source_text(source)} {(source and source.function) or ''}".rstrip()


# `jvp(…)`, `vmap(…)`: what JAX's transformations write around the name of a scope.
_AROUND = re.compile(r"([A-Za-z_]\w*)\((.*)\)", re.DOTALL)
# Names of functions, of the computations of control flow, einsum's formulas: no scopes of the program.
_FUNCTIONS = values("jit pjit core_call closed_call custom_jvp custom_vjp")
_NO_SCOPE = re.compile(
    r"while|body|cond|branch_\d+_fun|closed_call|core_call|checkpoint|remat2?|rematted_computation|"
    r"custom_[jv][vj]p_call|eval_jaxpr|shard_map|pjit|jit|.*<(?:locals|lambda)>.*|.*->.*|"
)


@lru_cache(maxsize=4096)
def layer_of(op_name: str | None) -> str:
    """`jit(f)/transpose(jvp(Net))/layer_0/Dense_1/dot_general` → `Net/layer_0/Dense_1, backward`. The scopes
    that a framework's modules, or `jax.named_scope`, open around an operation; empty without."""
    shown, direction = scopes_of(op_name)
    return "/".join(shown) + (", backward" if shown and direction in ("backward", "recomputed") else "")


@lru_cache(maxsize=4096)
def scopes_of(op_name: str | None) -> tuple[Strings, Direction]:
    """The scopes around an operation, outermost first, and its place in the derivative of the program."""
    *around, _ = _segments((op_name or "").split(";", 1)[0])
    shown: list[str] = []
    found = set()
    for n, segment in enumerate(around):
        if n > 1 and around[0] == f"jit({segment})" and around[n - 1].startswith("jit("):
            continue  # A function that is traced once for several calls begins with the program's name.
        if segment == "rematted_computation":
            found.add(segment)
        while (match := _AROUND.fullmatch(segment)) is not None:
            if match[1] in _FUNCTIONS:
                segment = ""
            else:
                found.add(match[1])
                segment = match[2]
        # Rematerialization names the way in twice.
        if not _NO_SCOPE.fullmatch(segment) and segment not in shown[-1:]:
            shown.append(segment)
    if "transpose" in found:
        return tuple(shown), "recomputed" if "rematted_computation" in found else "backward"
    return tuple(shown), "forward" if "jvp" in found else "other"


def is_gradient(op_name: str | None) -> bool:
    return scopes_of(op_name)[1] in ("backward", "recomputed")


def has_part(op_name: str, part: str) -> bool:
    """True if the components of `part` are consecutive in `op_name`. `softmax` also matches
    `transpose(jvp(softmax))`. XLA joins the names of merged operations with `;`."""
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
    depth = start = 0
    for n, c in enumerate(name):
        depth += (c == "(") - (c == ")")
        if c == "/" and depth <= 0:
            yield name[start:n]
            start = n + 1
    yield name[start:]
