"""Edits of a program's source: the forms of docs/recipes/FIXES.md, and what is written in their place."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import accumulate
from linecache import getlines
from pathlib import Path
from string import ascii_letters
from typing import Any, NamedTuple, TypeAlias

from hlofuse.format.paths import is_file
from hlofuse.ir import Json, Strings, values
from .recipe_page import recipe_names, recipe_page, recipe_text

_MODULES = {"jnp": "jax.numpy", "lax": "jax.lax", "jax": "jax"}  # a program has its own names
_DOTTED = re.compile(r"(?<![.\w])(jnp|lax|jax)\.(?=\w)")
_UNNAMED = re.compile(r"(?<!import )(?<!from )(?<![\w.])jax\.")
_LETTER = re.compile(r"(?<![.\w])(\*?)([A-Z])\b")
_NUMBER = re.compile(r"-?[\d.e-]+")
_METHODS = values("sum mean max min sort argsort argmax var cumsum dot squeeze swapaxes transpose")
_OPERATOR_OF = {"matmul": ast.MatMult, "dot": ast.MatMult, "multiply": ast.Mult, "power": ast.Pow}
_BY_POSITION = ("shift", "num_classes", "axis", "keepdims", "descending")  # in a form by position
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_SHORT = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.UnaryOp)
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Compare, ast.Subscript)
Found: TypeAlias = Json
"""The nodes that letters of a form stand for; `*R`: texts; `definitions`: assignments that were followed."""
Place: TypeAlias = tuple[ast.expr, Found, Strings]  # A node, the letters, and the forms to write


class Edit(NamedTuple):
    """A change of one place or several; each of `texts` is the whole program with one form of it."""

    recipe: str
    line: int
    places: Strings
    texts: Strings


@cache
def _forms(only: str) -> list[tuple[str, ast.expr, Strings]]:
    """The recipe, a form to find and the forms to write: each row, with other forms of its parts."""
    forms: list[Any] = []
    row = r"^\| (?:\[|–)?(.*?)(?:\].*?)? \| `(.+?)` \| (.+) \|$"
    for recipe, form, others in re.findall(row, recipe_text("FIXES"), re.MULTILINE):
        codes = tuple(re.findall("`(.+?)`", others))
        if recipe == "part":
            forms += [(r, f.replace(form, code), a) for r, f, a in forms if form in f for code in codes]
        else:
            forms.append((recipe, form, codes))
    wanted = (row for row in forms if only in ("", row[0]))
    return [(recipe, _expression(form), after) for recipe, form, after in wanted]


def edits(
    text: str,
    lines: Iterable[int],
    only: str = "",
) -> Iterator[Edit]:
    """The changes of operations on these lines: of each recipe, or `only` one, all places, then each."""
    program, wanted = _Program(text), set(lines)
    nodes = [
        node
        for node in ast.walk(program.tree)
        if isinstance(node, ast.expr)
        and not isinstance(node, ast.Name)
        and not wanted.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    ]
    places: dict[tuple[str, str], list[Place]] = {}
    for recipe, form, after in _forms(only):
        own = places.setdefault((recipe, "" if recipe else after[0]), [])
        for node in nodes:
            found: Found = {}
            taken = (node in ast.walk(other) or other in ast.walk(node) for other, *_ in own)
            if program.matches(form, node, found) and program.written(after[0], found) and not any(taken):
                own.append((node, found, after))
    for (recipe, _), own in places.items():
        for group in (own, *([place] for place in own if len(own) > 1)):
            most = max((len(after) for *_, after in group), default=0)
            texts = (program.changed(recipe, group, k) for k in range(most))
            if valid := tuple(dict.fromkeys(t for t in texts if t)):
                yield Edit(recipe, group[0][0].lineno, tuple(program.of(n) for n, *_ in group), valid)


def edit_of(recipe: str, text: str, sources: Sequence[str]) -> dict[str, str] | None:
    """`source`, `before` and `after` of a suggestion: a line of the user and as `hlofuse fix` writes it, if
    its file is below the working directory, else those of the recipe's page. None without a page."""
    if recipe not in recipe_names():
        return None
    page = recipe_page(recipe)
    times = re.search(r"(?:\bby |\bunroll=)(\d+|True)\b", text)
    factor = f"unroll={times[1]}" if times else r"\g<0>"
    after = re.sub(r"unroll=(\d+|True)", factor, page.after)
    for source in sources:
        place = source.partition(" ")[0]
        file, _, number = place.rpartition(":")
        if number.isdecimal() and is_file(Path.cwd(), file):
            lines = getlines(file)
            if own := _own_line(recipe, lines, int(number), factor):
                line = lines[int(number) - 1].strip()
                return {"source": place, "before": line, "after": own}
    return {"source": "", "before": page.before, "after": after}


def _own_line(recipe: str, lines: Sequence[str], number: int, factor: str) -> str:
    try:
        texts = [t for e in edits("".join(lines), [number], recipe) for t in e.texts]
    except (SyntaxError, ValueError):
        return ""
    for changed in (t.splitlines(keepends=True) for t in texts):
        for tag, first, last, start, end in SequenceMatcher(None, lines, changed, False).get_opcodes():
            line = " ".join(x.strip() for x in changed[start:end])
            if tag == "replace" and first < number <= last:
                return re.sub(r"unroll=\d+", factor, line)
    return ""


class _Program:
    """A program: its tree, its names for modules, and the text of each node."""

    def __init__(self, text: str) -> None:
        self.text, self.tree = text, ast.parse(text)
        self.starts = [0, *accumulate(map(len, text.encode().splitlines(keepends=True)))]
        self.parents = {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}
        self.modules: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for a in node.names:
                    root = a.name.partition(".")[0]
                    self.modules[a.asname or root] = a.name if a.asname else root
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self.modules |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}

    def matches(self, p: Any, x: Any, found: Found) -> bool:
        """True if the form `p` is that of `x`; `found` gets the nodes of its letters."""
        if isinstance(p, list):
            return len(p) == len(x) and all(self.matches(a, b, found) for a, b in zip(p, x, strict=True))
        if isinstance(p, ast.Name) and len(p.id) == 1:
            is_able = p.id != "C" or _NUMBER.fullmatch(self.of(x)) is not None
            return is_able and ast.dump(found.setdefault(p.id, x)) == ast.dump(x)
        if name := _name(p, _MODULES):
            return _name(x, self.modules) == name
        if isinstance(x, ast.Name) and (definition := self._definition(x)):
            found["definitions"] = [*found.get("definitions", []), definition]
            return self.matches(p, definition.value, found)
        if isinstance(p, ast.Constant) and isinstance(x, ast.Constant):
            return type(p.value) is type(x.value) and _subscripts(p.value) == _subscripts(x.value)
        if isinstance(p, ast.Call) and isinstance(x, ast.Call):
            return self._call_matches(p, x, found)
        if isinstance(p, ast.BinOp) and isinstance(x, ast.Call):
            name, arguments = self._called(x)
            operator = _OPERATOR_OF.get((name or "").removeprefix("jax.numpy."))
            if operator and len(arguments) == 2 and not x.keywords:  # `jnp.dot(a, b)` as `a @ b`
                x = ast.BinOp(arguments[0], operator(), arguments[1])
        if not isinstance(p, ast.AST) or type(p) is not type(x):
            return bool(p == x)
        return all(self.matches(a, getattr(x, f), found) for f, a in ast.iter_fields(p) if f != "ctx")

    def _called(self, x: ast.Call) -> tuple[str | None, list[ast.expr]]:
        """The function, and its arguments by position; of a method the array first."""
        name = _name(x.func, self.modules)
        if not name and isinstance(x.func, ast.Attribute) and x.func.attr in _METHODS:
            return f"jax.numpy.{x.func.attr}", [x.func.value, *x.args]
        return name, list(x.args)

    def _call_matches(self, p: ast.Call, x: ast.Call, found: Found) -> bool:
        wanted = _name(p.func, _MODULES)
        name, arguments = self._called(x)
        if wanted and not name and getattr(x.func, "attr", "") == "astype":  # judging compares values
            return self.matches(p, x.func.value, found)  # type: ignore[attr-defined]
        named, own = {k.arg: k for k in x.keywords}, list(p.args)
        for keyword in _BY_POSITION:
            if arguments and keyword in named:
                arguments.append(named.pop(keyword).value)
        if own and isinstance(own[-1], ast.Starred):
            letter = f"*{ast.unparse(own.pop().value)}"  # type: ignore[attr-defined]
            rest = [self.of(a) for a in (*arguments[len(own) :], *named.values())]
            named, arguments = {}, arguments[: len(own)]
            if found.setdefault(letter, rest) != rest:
                return False
        named.pop("dtype", None)
        is_same = name == wanted and (wanted is not None or self.matches(p.func, x.func, found))
        return is_same and not named and self.matches(own, arguments, found)

    def _definition(self, x: ast.Name) -> ast.Assign | None:
        """The statement of its function, outside of control flow, that gives a name its value."""
        at: Any = x
        while not isinstance(scope := self.parents[at], ast.FunctionDef | ast.Module | ast.Lambda):
            at = scope
        body = scope.body if isinstance(scope, ast.FunctionDef) else []
        for statement in reversed(body[: body.index(at)] if at in body else []):
            stored = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == x.id)
            if any(isinstance(n.ctx, ast.Store) for n in stored):
                is_plain = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
                return statement if is_plain else None  # type: ignore[return-value]
        return None

    def _unread(self, node: ast.expr, found: Found) -> Iterator[ast.stmt]:
        """Assignments that were followed, and that nothing but the replaced node reads."""
        followed = found.get("definitions", [])
        read = ast.walk(ast.Tuple([*found.values()]))
        inside = {*ast.walk(ast.Tuple([node, *followed]))}.difference(read)
        for statement in followed:
            others = {*ast.walk(self.parents[statement])} - inside
            if statement.targets[0].id not in {getattr(n, "id", "") for n in others}:
                yield statement

    def of(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def changed(self, recipe: str, places: Sequence[Place], number: int) -> str | None:
        """The program with a form at each place; None where that is no other program."""
        spans = set()
        for node, found, after in places:
            new = self.written(after[min(number, len(after) - 1)], found)
            if new is None:
                return None
            spans.add((*self._span(node), self._as_operand(new, node)))
            spans.update(
                (self.starts[s.lineno - 1], self.starts[s.end_lineno or 0], "")
                for s in self._unread(node, found)
            )
        data = self.text.encode()
        for start, end, new in sorted(spans, reverse=True):
            data = data[:start] + new.encode() + data[end:]
        text = self._completed(data.decode(), recipe)
        try:
            compile(text, "program", "exec", dont_inherit=True)
        except SyntaxError:  # the call has the argument already
            return None
        return text if text != self.text else None

    def _completed(self, text: str, recipe: str) -> str:
        """The text with what the new forms need below its imports: functions of the page, and jax."""
        added = "import jax\n" if "jax" not in self.modules and _UNNAMED.search(text) else ""
        page = _Program(recipe_page(recipe).code if recipe else "")
        for s in page.tree.body:
            if isinstance(s, ast.FunctionDef) and f"{s.name}(" in text and f"def {s.name}(" not in text:
                added += f"\n\n{page.of(s)}\n"
        imports = (s.end_lineno or 0 for s in self.tree.body if isinstance(s, ast.Import | ast.ImportFrom))
        lines, last = text.splitlines(keepends=True), max(imports, default=0)
        return "".join([*lines[:last], added, *lines[last:]])

    def _span(self, node: Any) -> tuple[int, int]:
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def written(self, form: str, found: Found) -> str | None:
        """The form with the program's text and names; None where a long text would stand twice."""
        form = _DOTTED.sub(self._own_name, form)

        def letter(m: re.Match[str]) -> str:
            if m[1] and m[0] in found:
                return ", ".join(found[m[0]])
            node, text = found[m[2]], self.of(found[m[2]])
            is_argument = form[: m.start()].rstrip()[-1:] in "(,=[" and form[m.end() :].lstrip()[:1] in "),]"
            is_list = isinstance(node, ast.Tuple | ast.GeneratorExp) and not text.startswith("(")
            bare = isinstance(node, _ATOMS) or (is_argument and not is_list)
            return m[1] + (text if bare else f"({text})")

        letters = [m[2] for m in _LETTER.finditer(form) if not (m[1] and m[0] in found)]
        if any(letters.count(n) > 1 and not isinstance(found[n], _SHORT) for n in letters):
            return None
        return _LETTER.sub(letter, form).replace("(, ", "(").replace(", )", ")")

    def _as_operand(self, new: str, node: ast.expr) -> str:
        """In parentheses where an operator stands next to it."""
        top, parent, (first, last) = _expression(new), self.parents[node], self._span(node)
        same = type(getattr(top, "op", None)) is type(getattr(node, "op", 0))
        is_operand = isinstance(parent, _OPERATORS) or getattr(parent, "func", None) is node
        data = self.text.encode()
        is_enclosed = data[first - 1 : first] + data[last : last + 1] == b"()"
        return new if same or is_enclosed or not is_operand or isinstance(top, _ATOMS) else f"({new})"

    def _own_name(self, m: re.Match[str]) -> str:
        module = _MODULES[m[1]]
        return next((name for name, full in self.modules.items() if full == module), module) + "."


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _name(x: Any, modules: dict[str, str]) -> str | None:
    if isinstance(x, ast.Attribute):
        base = _name(x.value, modules)
        return f"{base}.{x.attr}" if base else None
    return modules.get(x.id) if isinstance(x, ast.Name) else None


def _subscripts(value: Any) -> Any:
    """The subscripts of a product with letters in the order of the alphabet; other values as they are."""
    if "->" not in str(value):
        return value
    letters = "".join(dict.fromkeys(c for c in value if c.isalpha()))
    return value.translate(str.maketrans(letters, ascii_letters[: len(letters)])).replace(" ", "")
