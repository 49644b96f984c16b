"""Shapes of arguments as a user writes them: `f32[128,512], {"w": bf16[8]}, 3`; and meshes, `data=2,model=4`.
The notation is a Python expression in which `DTYPE[DIMENSIONS]` is an array, by HLO's or numpy's name for the
type. `128@data` is a dimension divided by the axis `data` of the mesh, `128@(data,model)` one divided by
both. It is parsed, never run."""

import ast
import re
from collections.abc import Sequence
from contextlib import suppress

from hlofuse.format import printable
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir import HlofuseError, Json, packaged
from .model import Mesh

_NUMPY = {name: dtype for dtype, names in packaged(__file__, "arguments").items() for name in names.split()}
_SCALAR = re.compile(r"(\w)\[\s*\]")
_EXAMPLE = 'expected shapes such as "f32[128,512], s32[]", also in lists, tuples and dictionaries'


def parse_arguments(text: str) -> list[Json]:
    """The arguments as plain data for the compiling process; raises `HlofuseError` for invalid ones.
    `{"array": {"dtype", "shape"}}`, by dimension with the names of `axes` if any is divided, `{"dict": [[key,
    value], …]}`, `{"list": […]}`, `{"tuple": […]}` or `{"value": a number, text, boolean or null}`."""
    if not text.strip():
        return []
    # `f32[]` is no Python, and separators may be left out: "f32[2] s32[]".
    separated = re.sub(r"([\]})])(\s+)(?=[\w{(])", r"\1,\2", _SCALAR.sub(r"\1[()]", text))
    try:
        parsed = ast.parse(f"({separated},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise HlofuseError(f"--args {printable(text)!r}: {_EXAMPLE}") from None
    assert isinstance(parsed, ast.Tuple)
    try:
        return [_argument(node) for node in parsed.elts]
    except RecursionError:
        raise HlofuseError(f"--args is nested too deeply; {_EXAMPLE}") from None


def check_axes(arguments: Sequence[Json], mesh: Mesh) -> None:
    """Raise `HlofuseError` where an argument is divided by an axis missing in the mesh."""
    for spec in arguments:
        kind, value = next(iter(spec.items()))
        if kind == "array":
            for name in (name for names in value.get("axes", []) for name in names):
                if name not in dict(mesh):
                    raise HlofuseError(f"--args: the mesh has no axis {name}; define it with --mesh {name}=2")
        elif kind == "dict":
            check_axes([v for _, v in value], mesh)
        elif kind in ("list", "tuple"):
            check_axes(value, mesh)


def _argument(node: ast.expr) -> Json:
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return {"array": {"dtype": _dtype(node.value.id), **_dimensions(node.slice)}}
    if isinstance(node, ast.Dict) and all(
        isinstance(k, ast.Constant) and isinstance(k.value, str | int) for k in node.keys
    ):
        keys = [k.value for k in node.keys if isinstance(k, ast.Constant)]
        return {"dict": [[k, _argument(v)] for k, v in zip(keys, node.values, strict=True)]}
    if isinstance(node, ast.List):
        return {"list": [_argument(v) for v in node.elts]}
    if isinstance(node, ast.Tuple):
        return {"tuple": [_argument(v) for v in node.elts]}
    with suppress(ValueError):
        value = ast.literal_eval(node)
        if isinstance(value, int | float | str | None):
            return {"value": value}
    raise HlofuseError(
        f"--args: {printable(ast.unparse(node)[:80])} is neither a shape nor a plain value; {_EXAMPLE}"
    )


def _dtype(name: str) -> str:
    if name not in _NUMPY:
        raise HlofuseError(
            f"--args: no element type {printable(name)}{did_you_mean(name, _NUMPY)}; {_EXAMPLE}"
        )
    return _NUMPY[name]


def _dimensions(node: ast.expr) -> Json:
    items = [_dimension(i) for i in (node.elts if isinstance(node, ast.Tuple) else [node])]
    sizes = [i.value for i, _ in items if isinstance(i, ast.Constant) and type(i.value) is int]
    if len(sizes) != len(items):
        raise HlofuseError(
            f"--args: expected an integer dimension, found {printable(ast.unparse(node)[:80])}"
        )
    axes = [names for _, names in items]
    return {"shape": sizes, "axes": axes} if any(axes) else {"shape": sizes}


def _dimension(node: ast.expr) -> tuple[ast.expr, list[str]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, _axes(node.right)
    return node, []


def _axes(node: ast.expr) -> list[str]:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    names = [i.id for i in items if isinstance(i, ast.Name)]
    if len(names) != len(items):
        raise HlofuseError(
            '--args: expected the name of a mesh axis, as in "f32[1024@data,512]", found'
            f" {printable(ast.unparse(node)[:80])}"
        )
    return names


def parse_mesh(text: str) -> Mesh:
    """The axes of a mesh, each with name and size, from the user's text: `4` or `data=2,model=4`."""
    axes = []
    for part in text.split(","):
        name, equals, size = part.strip().rpartition("=")
        if not size.strip().isdecimal() or int(size) < 1 or (equals and not name.strip().isidentifier()):
            raise HlofuseError(
                f"--mesh {printable(text)!r}: expected a number of devices, or axes such as data=2,model=4"
            )
        axes.append((name.strip() or None, int(size)))
    names = [name for name, _ in axes]
    if len(axes) > 1 and (None in names or len(set(names)) < len(names)):
        raise HlofuseError(f"--mesh {printable(text)!r}: axis names must be distinct")
    return tuple(axes)
