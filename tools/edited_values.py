"""Sources that compute the value of an edit next to that of the text, to find tests in which they differ.

A test in which both values are equal whenever the expression is evaluated cannot notice the edit. Compared
are edits in the bodies of functions. The values are those of the largest expression around the edit that
only computes: names, attributes, numbers, operators and a few functions without effects.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants import Mutant

DIFFERS = "__edited_value__"
"""The name of a function of a key, a value and a function of the edit's value; it returns the value."""
_PURE = (
    ast.Name,
    ast.Attribute,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.Set,
    ast.List,
    ast.Call,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
_SELECTIONS = {"min", "max"}
_FUNCTIONS = _SELECTIONS | {"len", "abs", "isinstance", "bool", "int", "float", "round", "ceil", "floor"}


def comparing(source: str, edits: Sequence[Mutant]) -> tuple[ast.Module, set[Mutant]]:
    """The source's tree with comparisons, and the edits that it compares."""
    tree, starts = ast.parse(source), [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    wanted: dict[tuple[int, int], list[Mutant]] = {}
    for edit in edits:
        wanted.setdefault((edit.start, edit.stop), []).append(edit)
    compared: set[Mutant] = set()
    places: dict[int, tuple[list[ast.AST], list[tuple[ast.AST, Mutant]]]] = {}
    for path in _paths(tree, []):
        node = path[-1]
        if not isinstance(node, ast.expr):
            continue
        start = starts[node.lineno - 1] + node.col_offset
        stop = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        for edit in wanted.get((start, stop), []):
            if (place := _place(path, edit)) is not None and edit not in compared:
                places.setdefault(id(place[-1]), (place, []))[1].append((node, edit))
                compared.add(edit)
    for place, found in places.values():
        _compare(place, found)
    return ast.fix_missing_locations(tree), compared


def _paths(node: ast.AST, above: list[ast.AST]) -> Iterator[list[ast.AST]]:
    """Each node with all that hold it, outermost first."""
    path = [*above, node]
    yield path
    for child in ast.iter_child_nodes(node):
        yield from _paths(child, path)


def _place(path: list[ast.AST], edit: Mutant) -> list[ast.AST] | None:
    """The path of the largest pure expression that holds the edit; None where there is none to replace."""
    if not (_in_function_body(path) and _pure(path[-1])):
        return None
    try:
        new = ast.parse(edit.new, mode="eval").body
    except SyntaxError:
        return None
    end = len(path)
    while _pure(path[end - 2]):
        end -= 1
    place = path[end - 1]
    slices = any(isinstance(part, ast.Slice) for part in (place, *getattr(place, "elts", ())))
    unfit = slices or isinstance(path[end - 2], (ast.pattern, ast.FormattedValue)) or not _pure(new)
    return None if unfit else path[:end]


def _in_function_body(path: list[ast.AST]) -> bool:
    """True if the innermost scope is a function and the node is in its body."""
    for outer, inner in zip(reversed(path[:-1]), reversed(path), strict=False):
        if isinstance(outer, ast.ClassDef):
            return False
        if isinstance(outer, ast.Lambda):
            return inner is outer.body
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(inner is statement for statement in outer.body)
    return False


def _pure(node: ast.AST) -> bool:
    """True if evaluating the expression once more changes nothing."""
    if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        return False
    for part in ast.walk(node):
        if not isinstance(part, _PURE):
            return False
        if isinstance(part, ast.Call) and not _pure_call(part):
            return False
    return True


def _pure_call(call: ast.Call) -> bool:
    name = ast.unparse(call.func).removeprefix("math.")
    plain = not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)
    return plain and name in _FUNCTIONS and (name not in _SELECTIONS or len(call.args) > 1)


def _compare(path: list[ast.AST], found: list[tuple[ast.AST, Mutant]]) -> None:
    """Replace the last node of the path by one that compares each edit."""
    holder, place = path[-2], path[-1]
    condition = any(place is t for t in (getattr(holder, "test", None), *getattr(holder, "ifs", ())))
    form = "bool({})" if condition else "({})"
    assert isinstance(place, ast.expr)
    text = form.format(ast.unparse(place))
    for node, edit in found:
        other = form.format(ast.unparse(_replaced(place, node, edit)))
        text = f"{DIFFERS}({edit.key!r}, {text}, lambda: {other})"
    new = ast.parse(text, mode="eval").body
    for part in ast.walk(new):
        ast.copy_location(part, place)
    for name, value in ast.iter_fields(holder):
        if value is place:
            setattr(holder, name, new)
        elif isinstance(value, list):
            value[:] = [new if v is place else v for v in value]


def _replaced(place: ast.expr, node: ast.AST, edit: Mutant) -> ast.expr:
    """A copy of the place with the edit instead of the node."""
    new = ast.parse(edit.new, mode="eval").body
    return copy.deepcopy(place, {id(node): new})
