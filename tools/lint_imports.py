"""Fail where files of the package import each other in a circle, or hold a second matcher or runner.

import-linter holds folders to their layers; this holds files. Every import counts: those inside functions,
those for type checkers, and those by `import_module`, since each loads one file only with the other.

`hlofuse/matching` has the only key of an instruction and the only search for pairs of two modules;
`hlofuse/compilation` has the only loop that runs a target's passes.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

PACKAGE = "hlofuse"
ROOT = Path(__file__).resolve().parent.parent
WITHIN_ONE_MODULE = ("ir", "analysis", "matching", "cost", "rules", "passes")
"""Folders whose keys are those of XLA's passes."""
_KEY = re.compile(r"content|fingerprint|identity|key|signature|structure")
_IGNORED = frozenset(
    "control-predecessors frontend_attributes sharding origin original_value statistics".split()
)


def second_matchers(text: str) -> Iterator[tuple[int, str]]:
    """The line and the offence of everything in a file that `hlofuse/matching` is for."""
    for node in ast.walk(ast.parse(text)):
        names: set[object] = set()
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            names = {e.value for e in node.elts if isinstance(e, ast.Constant)}
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
        ):
            text_split = node.func.value
            if isinstance(text_split, ast.Constant) and isinstance(text_split.value, str):
                names = set(text_split.value.split())
        if "metadata" in names and _IGNORED & names:
            yield node.lineno, "attributes that do not count"
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            returns = ast.unparse(node.returns)
            types = [ast.unparse(a.annotation) for a in node.args.args if a.annotation is not None]
            if types == ["Instruction"] and _KEY.search(node.name):
                yield node.lineno, f"a key of an instruction: {node.name}"
            pairs = "[Instruction, Instruction]" in returns
            if pairs and any(types.count(t) > 1 for t in ("Module", "Computation")):
                yield node.lineno, f"a search for pairs: {node.name}"


RUNNERS = ("compilation", "passes", "pipelines")
"""Folders that may run the passes of a pipeline, or list them."""
_PIPELINES = frozenset({"before_fusion", "after_fusion"})


def second_runners(text: str) -> Iterator[tuple[int, str]]:
    """The line and the offence of every loop over a target's passes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.For | ast.comprehension):
            called = {c.func for c in ast.walk(node) if isinstance(c, ast.Call)}
            names = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in called}
            if names & _PIPELINES and "run" in names:
                yield getattr(node, "lineno", 1), "a loop that runs passes"
        elif isinstance(node, ast.Attribute) and node.attr == "run_with":
            yield node.lineno, "a pipeline that is run"


def imported_by_name(file: Path) -> Iterator[str]:
    """The files of the package that a file names in a call of `import_module`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
            yield from (n for n in names if isinstance(n, str) and n.startswith(f"{PACKAGE}."))


def main() -> int:
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    imports = {file: set(graph.find_modules_directly_imported_by(file)) for file in graph.modules}
    for path in (ROOT / PACKAGE).rglob("*.py"):
        file = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        imports.setdefault(file, set()).update(imported_by_name(path))
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        *files, first = error.args[1]
        print(f"{len(files)} files import each other in a circle:")
        for imported, file in zip(files, [*files[1:], first], strict=True):
            print(f"  {file} imports {imported}")
        return 1
    found = [
        f"{path.relative_to(ROOT)}:{line}: {offence}; use {PACKAGE}/{folder}"
        for check, folder, exempt in (
            (second_matchers, "matching", WITHIN_ONE_MODULE),
            (second_runners, "compilation", RUNNERS),
        )
        for path in sorted((ROOT / PACKAGE).rglob("*.py"))
        if path.relative_to(ROOT / PACKAGE).parts[0] not in exempt
        for line, offence in check(path.read_text(encoding="utf-8"))
    ]
    print(*found, f"No circle between {len(imports)} files.", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
