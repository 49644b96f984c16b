"""Keep retired words out of names and prose.

Names: every identifier that Python code defines, and the name of every source and documentation file, is
split at `_` and at capitals; a word of RETIRED fails, but for ALLOWED. Names of test functions are sentences,
and exempt.

Prose: strings and docstrings of `hlofuse`, docs/*.md and README.md. Reports and pages are reworked one by
one, so each folder is held to the number of hits in `lint_words_prose.txt`, which may only shrink. A
docstring that asks a question is a hit too.

    python tools/lint_words.py            # report and fail
    python tools/lint_words.py --shrink   # lower the recorded numbers to what is left; record if none are
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path

BASELINE = Path("tools/lint_words_prose.txt")
UNREAD = ("samples/*", "tests/golden/*", "tests/data/*", "tools/corpus/*", "tools/lint_words.py")
NAMED = (".py", ".js", ".css", ".html", ".md")

RETIRED = """
addition additions: optional pass | age ages older oldest younger youngest: earlier, later in id order
ahead: before, first | alike twin twins: duplicate, equivalent | anew: recreated, renumbered, …
ask asks asked question: condition, candidate, request | behind: after | beside: companion, sibling
clue clues sign signs: evidence | closeup: step details | company: co-fused | dear dearer dearest: hot
declined: fast path miss | film films: timeline | gone: removed | guess guessed likely: estimated
follower followers guide guides: recorded order, tie breaker | held: refused edge | reel reels: dump sequence
frame frames: pass dump | home homes standing: final kernel, final name | journey: provenance
kept known: cache, shared tables, remaining | made maker makers: created, creating pass | memo memos: cache
met walk walked walks: visited, traversal | mine ours theirs: own, actual, expected | outside: plugin, outer
obstacle obstacles: blocking rule | ordinary unusual: plain, fallback | piece pieces: part, slice, fragment
played: replayed | remark remarks: note | rung rungs: grammar fallback | spot spots: location | stop: event
said say says: attributes, message, note | simplification simplifications: pass | stops: events
subject subjects: replay input | supposed: defaults | tail tails: suffix, rest, attributes text
tell tells told: reported, explained | turn turned turns: iteration, trip count | weave: lineage graph
variant variants: replay config | way ways: backward, forward, path | words: text, phrases
"""
STANDARD = {
    word: instead.strip()
    for entry in RETIRED.strip().replace("\n", " | ").split(" | ")
    for words, _, instead in [entry.partition(":")]
    for word in words.split()
}

ALLOWED = (
    # XLA's own terms, Python's, and arithmetic.
    ("*", "*stack_frame* *STACK_FRAME* StackFrame* frame frames *_frames frame_id stop"),
    ("*", "*sign *sign_* *_SIGN is_known_empty conditional_simplification"),
    ("hlofuse/pipelines/*", "_simplification"),
    # Keys of JSON reports.
    ("hlofuse/reports/*", "ours"),
    ("hlofuse/passes/fusion/priority_fusion/*", "ours"),
)

PROSE = re.compile(
    r"\b(dear(?:er|est)?|in the end|on the way|come of|films?|reels?|journeys?|told|said of|held back|anew"
    r"|the like|unless said|twins?|turns(?! (?:into|out|off|on|to|it|a|the)\b)|ways back|played|ours"
    r"|theirs)\b",
    re.IGNORECASE,
)


def defined(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything that the code defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if not name.startswith("test_"):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
                yield node.lineno, name


def name_hits(path: str, tree: ast.AST | None) -> Iterator[str]:
    allowed = [p for where, patterns in ALLOWED if fnmatch(path, where) for p in patterns.split()]
    stem = [(1, Path(path).stem)] if path.endswith(NAMED) else []
    for line, name in sorted({*stem, *(defined(tree) if tree is not None else ())}):
        if not any(fnmatchcase(name, pattern) for pattern in allowed):
            for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name):
                if word.lower() in STANDARD:
                    yield f"{path}:{line}: {name}: instead of “{word}” write: {STANDARD[word.lower()]}"


def prose_hits(path: str, text: str, tree: ast.AST | None) -> Iterator[str]:
    texts = [(1, text)]
    if tree is not None:
        strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        texts = [(n.lineno, str(n.value)) for n in strings]
        documented = (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
        for node in documented:
            if (ast.get_docstring(node) or "").split("\n\n")[0].endswith("?"):
                yield f"{path}:{getattr(node, 'lineno', 1)}: a docstring states, it does not ask"
    for line, string in texts:
        for found in PROSE.finditer(string):
            at = line + string.count("\n", 0, found.start())
            yield f"{path}:{at}: “{found[0]}” is retired from prose"


def main() -> int:
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    rows = BASELINE.read_text().splitlines() if BASELINE.exists() else []
    recorded = {folder: int(count) for folder, count in map(str.split, rows)}
    out: list[str] = []
    prose: dict[str, list[str]] = {}
    for path in listed.splitlines():
        if not Path(path).exists() or any(fnmatch(path, pattern) for pattern in UNREAD):
            continue
        text = Path(path).read_text() if path.endswith((".py", ".md", ".toml")) else ""
        tree = ast.parse(text) if path.endswith(".py") else None
        out += name_hits(path, tree)
        shown = tree or path.startswith("hlofuse/rules/pages/")
        if (path.startswith("hlofuse/") and shown) or path == "README.md" or fnmatch(path, "docs/*.md"):
            folder = "/".join(path.split("/")[:-1][:2]) or path
            prose.setdefault(folder, []).extend(prose_hits(path, text, tree))
    if "--shrink" in sys.argv:
        left = {f: len(h) if not rows else min(len(h), recorded.get(f, 0)) for f, h in prose.items()}
        BASELINE.write_text("".join(f"{folder} {count}\n" for folder, count in sorted(left.items()) if count))
        recorded = left
    for folder, hits in sorted(prose.items()):
        most = recorded.get(folder, 0)
        if len(hits) > most:
            out += [*hits, f"{folder}: {len(hits)} retired words in prose, at most {most} allowed"]
    print("".join(f"{line}\n" for line in out), end="")
    return 1 if out else 0


if __name__ == "__main__":
    sys.exit(main())
