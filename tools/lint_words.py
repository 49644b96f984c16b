"""Keep retired words out of names and prose.

Names: every identifier that Python code or a script defines, and the name of every source and documentation
file, is split at `_` and at capitals; a word of RETIRED fails, but for ALLOWED. Names of test functions are
sentences, and exempt.

Prose: strings and docstrings of `hlofuse`. A docstring that asks a question fails. What reports print and
help says has none of SHOWN either.

Pages: none of PHRASES, none of the retired words, and at most AVERAGE words in a sentence of a page.

Counted: lines with a word of RARE and docstrings that open with a word of OPENINGS, at most AT_MOST of each.

    python tools/lint_words.py
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path

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
    # The registry of questions, from which commands and `Report` are built.
    ("*", "question question_of *_question Question* QUESTION QUESTIONS _QUESTIONS"),
    # The page: text to search for, and the box that an operation's value is read from.
    ("hlofuse/explorer/page/*.js", "words home"),
)

_SCRIPT = re.compile(
    r"\b(?:const|let|var|function|class) +(?:\{[^}]*\}|\[[^\]]*\]|[\w$]+)|\bthis\.[\w$]+ *(?:\?\?)?=(?!=)"
    r"|^  (?:get |set |static |async )*[\w$]+(?=\()",
    re.MULTILINE,
)
"""What JavaScript defines: variables, functions, classes, attributes and methods."""

PROSE = re.compile(
    r"\b(dear(?:er|est)?|in the end|on the way|come of|films?|reels?|journeys?|told|said of|held back|anew"
    r"|the like|unless said|twins?|turns(?!=| (?:into|out|off|on|to|it|a|the)\b)|ways back|played|ours"
    r"|theirs)\b",
    re.IGNORECASE,
)

SHOWN = re.compile(
    r"says the same|followed among equals|the times leave out|mostly its launch"
    r"|no more there|pass between them|takes? nothing in|no loop form|no code that could be inlined"
    r"|speaks? against it|the dear operation|it says no\b|edges turned|taken from the dump unless"
    r"|did not exist\?|as (?:it|they) should be|nothing of that name|dearest first|who reads on"
    r"|more \(--limit\)|kept apart|keeps? .{0,40}\bapart\b|left apart|made (?:again|here)\b|lies beside"
    r"|no sign of fusion|not XLA's behaviour|XLA's own record",
    re.IGNORECASE,
)
"""What reports and help said before; `kept`, `apart`, `made` and `beside` are terms in these only."""

PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md", "samples/*.md", "examples/*.md")
AVERAGE = 25
"""Words in a sentence, the mean of a page."""
PHRASES = {
    "held back most by": "Biggest remaining opportunity: …",
    "XLA's own record": "XLA's fusion log",
    "where the time goes in the end": "slowest kernels",
    "takes nothing in": "cannot be fused into",
    "has no loop form": "cannot be emitted as a loop",
    "has no code that could be inlined": "is a library call, Triton GEMM or custom call",
    "Nothing speaks against it": "No rule forbids it",
    "says no": "rejects",
    "edges turned": "changed decisions",
    "taken from the dump": "default: read from the dump",
    "as it should be": "OK",
    "of that name": "No match",
    "longest first": "slowest first",
    "for who reads on": "details follow",
    "ahead of(?! time)": "before",
    "behind(?! a flag)": "after",
    "besides?": "next to, in addition to",
    "gone": "removed",
    "nobody|somebody": "no user, a user",
}
"""The left column of the language table and words that are never terms, each with what a page writes."""
_PHRASE = re.compile(r"\b(" + "|".join(PHRASES) + r")\b", re.IGNORECASE)
_INDIRECT = re.compile(r"(?:^|[.:] )(Of [^.,:|]+, |What [^.,:|?]+, is |It is [^.,:|?]+ that )", re.MULTILINE)
_UNREAD_PARTS = re.compile(r"<!-- begin \w+ -->.*?<!-- end -->|<!--.*?-->", re.DOTALL)
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|`([^`]*)`|[*_]{1,2}(?=\w)|(?<=\w)[*_]{1,2}(?!\w)")


RARE = re.compile(r"\b(told|gone|anew|dear|behind|besides?|somebody|nobody)\b", re.IGNORECASE)
"""Words that are right in few places; in a line of code or text of the package."""
OPENINGS = re.compile(r"(What|How|Of|Where|Those|Which|Who|That)\b")
"""First words of a docstring that asks or begins in the middle: it states what is returned or done."""
AT_MOST = {"rare word": 20, "opening of a docstring": 20}
"""What is left; lower it whenever a count falls, and never raise it."""


def prose_of(page: str) -> str:
    """The page without code, comments and generated parts, with blank lines in their place."""
    lines: list[str] = []
    is_fenced = is_indented = False
    for line in _UNREAD_PARTS.sub(lambda m: "\n" * m[0].count("\n"), page).split("\n"):
        is_fence = line.lstrip().startswith(("```", "~~~"))
        is_indented = line.startswith("    ") and (is_indented or not (lines and lines[-1].strip()))
        lines.append("" if is_fenced or is_fence or is_indented else line)
        is_fenced ^= is_fence
    return "\n".join(lines)


def sentences(page: str) -> list[str]:
    """Sentences of paragraphs and lists; headings and tables are left out."""
    blocks: list[str] = [""]
    for line in prose_of(page).splitlines():
        text = line.strip()
        if not text or text[0] in "#|!":
            blocks.append("")
        elif item := re.match(r"(?:[-*+]|\d+\.) +(.*)", text):
            blocks.append(item[1])
        else:
            blocks[-1] += f" {text}"
    plain = [_MARKUP.sub(lambda m: m[1] or ("code" if m[2] else ""), block) for block in blocks]
    split = [s for block in plain for s in re.split(r"(?<=[.!?])[)\"”]? +(?=[\w(“\"])", block.strip())]
    return [s for s in split if len(s.split()) > 2]


def page_hits(path: str, page: str) -> Iterator[str]:
    """Retired phrases and long sentences of a page."""
    prose = re.sub(r"`[^`]*`", lambda m: "\n" * m[0].count("\n"), prose_of(page))
    for pattern in (PROSE, _PHRASE, _INDIRECT):
        for found in pattern.finditer(prose):
            at = 1 + prose.count("\n", 0, found.start(1))
            write = [w for p, w in PHRASES.items() if re.match(p, found[1], re.IGNORECASE)]
            instead = "a sentence with its subject first" if pattern is _INDIRECT else "".join(write[:1])
            yield f"{path}:{at}: “{found[1].strip()}” is retired from prose" + f"; write: {instead}" * bool(
                instead
            )
    lengths = [len(s.split()) for s in sentences(page)]
    if lengths and (mean := sum(lengths) / len(lengths)) > AVERAGE:
        yield f"{path}:1: {mean:.1f} words in a sentence on average, at most {AVERAGE} are allowed"


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


def defined_in_script(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of what JavaScript defines."""
    for found in _SCRIPT.finditer(text):
        for name in re.findall(r"[\w$]+", found[0]):
            yield 1 + text.count("\n", 0, found.start()), name


def name_hits(path: str, tree: ast.AST | None, script: str = "") -> Iterator[str]:
    allowed = [p for where, patterns in ALLOWED if fnmatch(path, where) for p in patterns.split()]
    stem = [(1, Path(path).stem)] if path.endswith(NAMED) else []
    names = defined(tree) if tree is not None else defined_in_script(script)
    for line, name in sorted({*stem, *names}):
        if not any(fnmatchcase(name, pattern) for pattern in allowed):
            for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name):
                if word.lower() in STANDARD:
                    yield f"{path}:{line}: {name}: instead of “{word}” write: {STANDARD[word.lower()]}"


def prose_hits(path: str, text: str, tree: ast.AST | None) -> Iterator[str]:
    texts = [(1, text, True)]
    if tree is not None:
        nodes = list(ast.walk(tree))
        comments = {
            id(n.value) for n in nodes if isinstance(n, ast.Expr) and not path.startswith("hlofuse/cli")
        }
        strings = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        # Without a space it is a key, or a choice of an option.
        texts = [(n.lineno, str(n.value), id(n) not in comments) for n in strings if " " in str(n.value)]
        documented = (n for n in nodes if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
        for node in documented:
            if (ast.get_docstring(node) or "").split("\n\n")[0].endswith("?"):
                yield f"{path}:{getattr(node, 'lineno', 1)}: a docstring states, it does not ask"
    for line, string, is_shown in texts:
        for found in (*PROSE.finditer(string), *(SHOWN.finditer(string) if is_shown else ())):
            at = line + string.count("\n", 0, found.start())
            yield f"{path}:{at}: “{found[0]}” is retired from prose"


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is a statement: docstrings, and those of attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def counted_hits(path: str, text: str, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """A rule of AT_MOST, and where it is broken."""
    for n, line in enumerate(text.splitlines(), 1):
        if found := RARE.search(line):
            yield "rare word", f"{path}:{n}: “{found[0]}”"
    for n, docstring in docstrings(tree):
        if found := OPENINGS.match(docstring):
            yield "opening of a docstring", f"{path}:{n}: “{found[0]} …”"


def above_maximum(counted: list[tuple[str, str]]) -> Iterator[str]:
    """The hits of each rule that is broken more often than AT_MOST allows."""
    for rule, most in AT_MOST.items():
        hits = [hit for r, hit in counted if r == rule]
        if len(hits) > most:
            yield from hits
            yield f"{rule}: {len(hits)}, at most {most} are allowed"


def main() -> int:
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    out: list[str] = []
    counted: list[tuple[str, str]] = []
    for path in listed.splitlines():
        if not Path(path).exists():
            continue
        if any(fnmatch(path, pattern) for pattern in PAGES):
            out += page_hits(path, Path(path).read_text())
        if any(fnmatch(path, pattern) for pattern in UNREAD):
            continue
        text = Path(path).read_text() if path.endswith((".py", ".md", ".toml", ".js")) else ""
        tree = ast.parse(text) if path.endswith(".py") else None
        out += name_hits(path, tree, text if path.endswith(".js") else "")
        if path.startswith("hlofuse/") and (tree is not None or path.endswith(".toml")):
            out += prose_hits(path, text, tree)
        if path.startswith("hlofuse/") and tree is not None:
            counted += counted_hits(path, text, tree)
    out += above_maximum(counted)
    print("".join(f"{line}\n" for line in out), end="")
    return 1 if out else 0


if __name__ == "__main__":
    sys.exit(main())
