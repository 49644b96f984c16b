"""Single edits of a Python source that its tests should notice, found in the syntax tree.

Edited are comparisons, numbers, terms of sums and products, arguments, conditions and statements that update
a value. Not edited, because nothing would differ or no test should look: docstrings, types and their aliases,
decorators, `__repr__`, texts, messages of exceptions, assertions (`strict` of `zip` is one), sizes of caches,
the order of the arguments of a `gcd` or a union, and blocks for type checkers.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_SELECTIONS = {"max", "min"}
_SYMMETRIC = {"gcd", "lcm", "hypot", "isclose", "union", "intersection"}
_UNTESTED_KEYWORDS = {"strict", "repr", "maxsize", "stacklevel"}
_UNTESTED_FUNCTIONS = {"__repr__", "__str__"}
_GENERICS = {"dict", "list", "set", "frozenset", "tuple", "Callable", "defaultdict"}
_TYPES = {"str", "int", "float", "bool", "bytes"} | _GENERICS
_UNTESTED_BASES = {"Protocol", "TypedDict"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of a file: the text from `start` to `stop`, in bytes, becomes `new`."""

    path: str
    line: int
    start: int
    stop: int
    old: str
    new: str

    @property
    def edit(self) -> str:
        """The edit on one line."""
        return f"{_one_line(self.old)} → {_one_line(self.new)}"

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def key(self) -> str:
        """A name that no other edit of the same text has."""
        return f"{self.path}:{self.start}:{self.stop}:{self.new}"

    def applied_to(self, source: str) -> str:
        """The source with the edit; ValueError if it no longer has the text."""
        text = source.encode()
        if text[self.start : self.stop].decode() != self.old:
            raise ValueError(f"{self.path}:{self.line}: the source has changed")
        return (text[: self.start] + self.new.encode() + text[self.stop :]).decode()


def mutants(source: str, path: str) -> list[Mutant]:
    """All edits of a source, in the order of the text; each compiles and differs from the source."""
    return [m for m in _possible(source, path) if _counts(m, source)]


def sample(files: Iterable[Path], root: Path, count: int, seed: int) -> list[Mutant]:
    """`count` mutants of the files, at most one at each place, chosen by the seed."""
    sources = {f.relative_to(root).as_posix(): f.read_text(encoding="utf-8") for f in files}
    places: dict[tuple[str, int, int], list[Mutant]] = {}
    for path, source in sorted(sources.items()):
        for mutant in _possible(source, path):
            places.setdefault((path, mutant.start, mutant.stop), []).append(mutant)
    choice, order = random.Random(seed), sorted(places)
    choice.shuffle(order)
    found = []
    for place in order:
        if len(found) == count:
            break
        mutant = choice.choice(places[place])
        if _counts(mutant, sources[mutant.path]):
            found.append(mutant)
    return sorted(found, key=lambda m: (m.path, m.start))


def _possible(source: str, path: str) -> list[Mutant]:
    """Edits of which some may not compile."""
    lines, text = [0], source.encode()
    for line in text.split(b"\n"):
        lines.append(lines[-1] + len(line) + 1)
    found = []
    for node, new in _edits(ast.parse(source)):
        start = lines[node.lineno - 1] + node.col_offset
        stop = lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        found.append(Mutant(path, node.lineno, start, stop, text[start:stop].decode(), new))
    return sorted(dict.fromkeys(found), key=lambda m: (m.start, m.stop, m.new))


def _counts(mutant: Mutant, source: str) -> bool:
    """True if the edited source compiles and is another program."""
    try:
        changed = ast.parse(mutant.applied_to(source))
        compile(changed, mutant.path, "exec")
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(source))


def _edits(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Nodes that may be replaced, each with a text."""
    for node in _tested(tree):
        if isinstance(node, ast.stmt):
            yield from _statement(node)
        elif isinstance(node, ast.expr):
            for new in _expression(node):
                yield node, f"({ast.unparse(new)})" if _needs_parentheses(new) else ast.unparse(new)
        for test in _conditions(node):
            if not isinstance(test, (ast.Compare, ast.UnaryOp)):
                yield test, f"(not ({ast.unparse(test)}))"


def _tested(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is below it, without the parts that no test should look at."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases", "keywords") and (
            not isinstance(node, ast.Call)
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _untested(child):
                yield from _tested(child)


def _untested(node: ast.AST) -> bool:
    if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.TypeAlias)):
        return True
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.annotation).endswith("TypeAlias")
    if isinstance(node, ast.keyword):
        return node.arg in _UNTESTED_KEYWORDS
    if isinstance(node, ast.FunctionDef):
        return node.name in _UNTESTED_FUNCTIONS or any(
            "overload" in ast.unparse(d) for d in node.decorator_list
        )
    if isinstance(node, ast.ClassDef):
        return any(ast.unparse(b).partition("[")[0] in _UNTESTED_BASES for b in node.bases)
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.BinOp):  # `Type | None`
        return isinstance(node.right, ast.Constant) and node.right.value is None
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value) in _GENERICS
    if isinstance(node, ast.Assign):
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        return names in (["__all__"], ["__slots__"]) or (bool(names) and _is_type(node.value))
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "TypeVar", "logging", "warn")


def _statement(node: ast.stmt) -> Iterator[tuple[ast.stmt, str]]:
    """The statement dropped, if it only updates a value."""
    if isinstance(node, ast.AugAssign):
        yield node, "pass"
        if type(node.op) in _OPERATORS and not _is_text(node.value):
            op = _OPERATORS[type(node.op)]()
            yield node, ast.unparse(ast.AugAssign(target=node.target, op=op, value=node.value))
    elif isinstance(node, ast.Assign):
        if isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
            yield node, "pass"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and not isinstance(function.value, ast.Call):  # no super()
            yield node, "pass"
    elif isinstance(node, ast.Continue):
        yield node, "break"


def _expression(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            for new in _COMPARISONS[type(op)]:
                ops = [*node.ops[:at], new(), *node.ops[at + 1 :]]
                yield ast.Compare(left=node.left, ops=ops, comparators=node.comparators)
        for at, other in enumerate(node.comparators):
            if isinstance(other, ast.Constant) and isinstance(other.value, str) and other.value:
                changed = ast.Constant(other.value + "?")
                others = [*node.comparators[:at], changed, *node.comparators[at + 1 :]]
                yield ast.Compare(left=node.left, ops=node.ops, comparators=others)
    elif isinstance(node, ast.BoolOp):
        for at in range(len(node.values)):
            rest = node.values[:at] + node.values[at + 1 :]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
        yield ast.BoolOp(op=ast.Or() if isinstance(node.op, ast.And) else ast.And(), values=node.values)
    elif isinstance(node, ast.BinOp):
        if not _is_text(node.left) and not _is_text(node.right):
            yield node.left
            if not isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)):
                yield node.right
            if type(node.op) in _OPERATORS:
                yield ast.BinOp(left=node.left, op=_OPERATORS[type(node.op)](), right=node.right)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, (ast.Not, ast.USub)):
            yield node.operand
    elif isinstance(node, ast.Constant):
        yield from map(ast.Constant, _other_values(node.value))
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(test=node.test, body=node.orelse, orelse=node.body)


def _other_values(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, *([value - 1] if value > 0 else []), *([value * 2] if value > 2 else [])]
    if isinstance(value, float):
        return [value * 2, value / 2] if value else [1.0]
    return []


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    """The call with swapped or fewer arguments."""
    args = node.args
    plain = not any(isinstance(a, ast.Starred) for a in args)
    if isinstance(node.func, ast.Name) and node.func.id in _SELECTIONS and plain and len(args) > 1:
        yield from args
        other = next(iter(_SELECTIONS - {node.func.id}))
        yield ast.Call(func=ast.Name(other), args=args, keywords=node.keywords)
        return  # its arguments have no order
    if plain and len(args) > 1 and _last(node.func) not in _SYMMETRIC:
        for at in range(len(args) - 1):
            swapped = [*args[:at], args[at + 1], args[at], *args[at + 2 :]]
            yield ast.Call(func=node.func, args=swapped, keywords=node.keywords)


def _conditions(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _last(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _is_type(node: ast.expr) -> bool:
    """True for names of classes and built-in types, and for a union of them."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left) and _is_type(node.right)
    name = _last(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return name in _TYPES or (name[:1].isupper() and not name.isupper())


def _is_text(node: ast.expr) -> bool:
    """True if the operand is surely no number."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _needs_parentheses(node: ast.expr) -> bool:
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Lambda))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else line[:89] + "…"
