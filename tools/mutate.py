"""Apply random single edits to the package and see whether the tests notice each of them.

    mutate.py FOLDER... [--count N] [--seed S] [--least PERCENT] [--jobs N] [--seconds S] [--record] [--list]
    mutate.py PATH:LINE... edits of these lines, all of them
    mutate.py --edits FILE edits of a file: a line `PATH`, a line `- OLD` and a line `+ NEW` each

The tests of an edit are those that run its line, until one fails; each test file has the same time first. A
first run records which test runs which line in out/mutate; later runs record only tests of files that are new
or have changed, and `--record` records everything. While tests are recorded, the value of an edit is computed
next to that of the text where that has no effect. Tests in which both are always equal are left out.

Each edit has a process of its own, a copy of one that has collected the tests. It replaces the code of the
edited function. An edit outside functions or in one that asserts, which pytest rewrites, and any with
`--fresh` is imported in a new process. A test that fails, an import that fails and a process that takes many
times its time all notice it. What was computed while tests were collected stays as it was. Thus an edit may
live that is noticed with `--fresh`.

Exit status 1 if fewer than `--least` percent are noticed, 2 if there is nothing to do.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import dis
import gc
import hashlib
import importlib.abc
import importlib.util
import inspect
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TextIO

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from edited_values import comparing
from mutants import Mutant, mutants, sample

FOLDERS = (
    "reports/verdict",
    "reports/whatif",
    "reports/advice",
    "reports/explain",
    "reports/why",
    "account",
    "cost",
    "diff",
    "library",
)
_HEAVY = (
    "numpy",
    "click",
    "rich.console",
    "rich.table",
    "lark",
    "hypothesis",
    "_pytest.python",
    "json",
    "lzma",
)
"""Imported once and inherited by the process of each edit; nothing of the package."""
_MEMORY = 12 << 30
_QUIET = (
    "-qq",
    "--no-header",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "no:terminalreporter",
    "--tb=no",
)


@dataclass(slots=True)
class Test:
    """A recorded test: its processor seconds, and the lines that it runs as a bit set for each file."""

    seconds: float
    lines: dict[str, int]


@dataclass(slots=True)
class Record:
    """Which test runs which lines of which text of a file."""

    tests: dict[str, Test] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    """Of test files, when they were recorded."""
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    """Texts of the package's files by the hash of a test file's record."""
    compared: dict[str, frozenset[str]] = field(default_factory=dict)
    """Edits whose values were compared, by test file. The key is a file of tests where its value differs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one edit. `by` is the test or event that noticed it, empty where it lived."""

    mutant: Mutant
    by: str
    ran: int
    covering: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("places", nargs="*", help="folders or files in the package, or PATH:LINE")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--package", default="hlofuse", help="the folder of the package")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--least", type=float, default=0.0, help="percent that must be noticed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="of recorded test time for each edit")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="files and folders that are recorded")
    parser.add_argument("--record", action="store_true", help="record every test")
    parser.add_argument("--frozen", action="store_true", help="take the record as it is")
    parser.add_argument("--fresh", action="store_true", help="import every edited module again")
    parser.add_argument("--edits", type=Path)
    parser.add_argument("--list", action="store_true", help="print the edits only")
    given = parser.parse_args(arguments)
    os.chdir(given.root)
    root = Path.cwd()
    chosen = _read_edits(given.edits, root) if given.edits else _chosen(given, root)
    if not chosen:
        print("no edit to try")
        return 2
    if given.list:
        for mutant in chosen:
            print(f"{mutant.path}:{mutant.line}: {mutant.edit}")
        return 0
    record = _up_to_date(root, given, chosen)
    covering = _Covering(record, root)
    files = {name.partition("::")[0] for m in chosen for name in covering.tests(m)}
    _forget_removed_tests(record, files)
    for name in _HEAVY:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    replaced = {m: r for m in chosen if not given.fresh and (r := replacements(m, root))}
    outcomes = _run([m for m in chosen if m not in replaced], record, root, given, _Trial)

    def run(fit: list[Mutant], kind: type[_Trial]) -> None:
        outcomes.extend(_run(fit, record, root, given, kind))

    sys.path.insert(0, str(root))
    if replaced:
        pytest.main([*_QUIET, *sorted(files)], plugins=[_Session(replaced, run)])
    lived = [o for o in outcomes if not o.by]
    print(f"seed {given.seed}: {len(outcomes) - len(lived)} of {len(outcomes)} noticed")
    share = 100 * (len(outcomes) - len(lived)) / len(outcomes)
    print(f"{share:.1f}%" + (f", at least {given.least:g}% wanted" if given.least else ""))
    return int(share < given.least)


def _chosen(given: Any, root: Path) -> list[Mutant]:
    places = given.places or [f"{given.package}/{f}" for f in FOLDERS]
    lines = [p.rpartition(":") for p in places if p.rpartition(":")[2].isdecimal()]
    if lines:
        found = {path: mutants((root / path).read_text(encoding="utf-8"), path) for path, _, _ in lines}
        return [m for path, _, line in lines for m in found[path] if m.line == int(line)]
    files = [f for p in places for f in ([root / p] if p.endswith(".py") else (root / p).rglob("*.py"))]
    return sample(files, root, given.count, given.seed)


def _read_edits(file: Path, root: Path) -> list[Mutant]:
    """The edits of a file; one that no longer fits is reported and left out."""
    found, path, old = [], "", ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("- "):
            old = line[2:]
        elif line.startswith("+ "):
            source = (root / path).read_bytes() if (root / path).exists() else b""
            start = source.find(old.encode())
            if start < 0 or source.count(old.encode()) > 1:
                print(f"{path}: not there once: {old}")
                continue
            number = source[:start].count(b"\n") + 1
            found.append(Mutant(path, number, start, start + len(old.encode()), old, line[2:]))
        elif line.strip():
            path = line.strip()
    return found


# ------------------------------------------------------------ the record


def _up_to_date(root: Path, given: Any, chosen: list[Mutant]) -> Record:
    """The stored record, with tests of new and changed files recorded."""
    file = root / "out" / "mutate" / "record.pickle"
    record = Record()
    if file.exists() and not given.record:
        record = pickle.loads(zlib.decompress(file.read_bytes()))
    if given.frozen:
        return record
    hashes = {f.relative_to(root).as_posix(): _hash(f) for t in given.tests for f in _test_files(root / t)}
    changed = [path for path, found in hashes.items() if record.hashes.get(path) != found]
    if changed:
        print(f"recording {len(changed)} of {len(hashes)} test files", flush=True)
        new = _recorded(root, changed, given, chosen)
        for name in [n for n in record.tests if n.partition("::")[0] in changed]:
            del record.tests[name]
        record.tests |= new
        sources = {
            f.relative_to(root).as_posix(): f.read_text(encoding="utf-8")
            for f in (root / given.package).rglob("*.py")
        }
        compared = frozenset(m.key for m in chosen if comparing(sources[m.path], [m])[1])
        for path in changed:
            record.hashes[path] = hashes[path]
            record.sources[path] = sources
            record.compared[path] = compared
    for path in [p for p in record.hashes if not (root / p).exists()]:
        del record.hashes[path], record.sources[path]
    record.tests = {n: t for n, t in record.tests.items() if n.partition("::")[0] in record.hashes}
    if changed:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(zlib.compress(pickle.dumps(record), 1))
    return record


def _forget_removed_tests(record: Record, files: set[str]) -> None:
    """Leave out recorded tests of the files that pytest does not find."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", *sorted(files)]
    command += ["--import-mode=importlib"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    names = {line for line in listed.splitlines() if "::" in line}
    removed = [n for n in record.tests if n.partition("::")[0] in files and n not in names]
    for name in removed:
        del record.tests[name]


def _test_files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("test_*.py"))


def _hash(file: Path) -> str:
    """Of a test file and of the data next to it."""
    data = sorted(f for f in file.parent.rglob("*") if f.is_file() and f.suffix not in (".py", ".pyc"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in (file, *data))).hexdigest()


def _recorded(root: Path, files: list[str], given: Any, chosen: list[Mutant]) -> dict[str, Test]:
    found: dict[str, Test] = {}
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as edits:
        Path(edits.name).write_bytes(pickle.dumps(chosen))
        paths = [str(Path(__file__).resolve().parent), str(root), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "LINE_RECORD": folder,
            "LINE_RECORD_OF": str(root / given.package),
            "LINE_RECORD_EDITS": edits.name,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "line_record", *files]
        if given.jobs > 1 and len(files) > 1:
            command += ["-n", str(given.jobs), "--dist", "worksteal"]
        done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
        print("\n".join(done.stdout.splitlines()[-1:]), flush=True)
        for file in Path(folder).iterdir():
            for name, (seconds, lines) in pickle.loads(file.read_bytes()).items():
                found[name] = Test(seconds, lines)
    return found


class _Covering:
    """Finds the tests that run a line, whatever moved in the file since they were recorded."""

    def __init__(self, record: Record, root: Path) -> None:
        self._record, self._root = record, root
        self._maps: dict[tuple[str, int], dict[int, int]] = {}
        self._recordings: dict[int, tuple[dict[str, str], list[str]]] = {}
        for name in record.tests:
            sources = record.sources[name.partition("::")[0]]
            self._recordings.setdefault(id(sources), (sources, []))[1].append(name)

    def tests(self, mutant: Mutant) -> list[str]:
        """Tests that run the edit's statement, or else the nearest code around it.

        Where the statement has changed since tests were recorded they count if they run what is around it.
        Tests in which its value is that of the text do not count. Each file has the same time first.
        """
        source = (self._root / mutant.path).read_text(encoding="utf-8")
        levels = [set(lines) for lines in _lines_around(source, mutant.line)]
        recordings = [self._levels(mutant.path, source, levels, *own) for own in self._recordings.values()]
        found = [name for running in recordings for name in next(running, ())]
        while not found and (
            wider := [r for running in recordings if (r := next(running, None)) is not None]
        ):
            found = [name for names in wider for name in names]
        found = [n for n in found if not self._never_differs(mutant, source, n)]
        spent: dict[str, float] = dict.fromkeys((n.partition("::")[0] for n in found), 0.0)
        order: dict[str, float] = {}
        for name in sorted(found, key=lambda n: (self._record.tests[n].seconds, n)):
            file = name.partition("::")[0]
            spent[file] += self._record.tests[name].seconds
            order[name] = spent[file]
        return sorted(order, key=lambda n: (order[n], n))

    def _never_differs(self, mutant: Mutant, source: str, name: str) -> bool:
        """True if the edit's value was that of the text whenever the test evaluated it."""
        file = name.partition("::")[0]
        compared = mutant.key in self._record.compared.get(file, ())
        same_text = self._record.sources[file].get(mutant.path) == source
        return compared and same_text and mutant.key not in self._record.tests[name].lines

    def _levels(
        self, path: str, source: str, levels: list[set[int]], sources: dict[str, str], names: list[str]
    ) -> Iterator[list[str]]:
        """The tests of one recording that run lines of each level with a recorded line."""
        recorded_path = self._recorded_path(path, source, sources)
        recorded = sources.get(recorded_path, "")
        moved = self._moved(path, recorded, source)
        for lines in levels:
            if mask := sum(1 << moved[line] for line in lines if line in moved):
                tests = ((n, self._record.tests[n]) for n in names if n in self._record.tests)
                yield [n for n, test in tests if test.lines.get(recorded_path, 0) & mask]

    def _recorded_path(self, path: str, source: str, sources: dict[str, str]) -> str:
        """The file's path when tests were recorded: that of the most similar file where this one is new."""
        if path in sources:
            return path
        lines = set(source.splitlines())
        removed = [p for p in sources if not (self._root / p).exists()]
        return max(removed, key=lambda p: len(lines.intersection(sources[p].splitlines())), default=path)

    def _moved(self, path: str, old: str, new: str) -> dict[int, int]:
        """The recorded line of each line that did not change."""
        key = (path, hash(old))
        if key not in self._maps:
            if old == new:
                self._maps[key] = {n: n for n in range(1, new.count("\n") + 2)}
            else:
                matcher = difflib.SequenceMatcher(None, new.splitlines(), old.splitlines(), autojunk=False)
                self._maps[key] = {
                    a + n + 1: b + n + 1 for a, b, size in matcher.get_matching_blocks() for n in range(size)
                }
        return self._maps[key]


def _lines_around(source: str, line: int) -> Iterable[list[int]]:
    """Lines of the smallest statement that holds a line, then of each one around it, then all lines.

    A line that runs at import belongs to no test: then lines that read the names it sets are first.
    """
    tree = ast.parse(source)
    holding = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    functions = [n for n in holding if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not any(f.body[0].lineno <= line for f in functions):
        names = {n.id for h in holding for n in ast.walk(h) if isinstance(n, ast.Name)} | {
            h.name for h in holding if isinstance(h, (ast.FunctionDef, ast.ClassDef))
        }
        yield [
            n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in names and n.lineno != line
        ]
    for statement in sorted(holding, key=lambda n: (n.end_lineno or n.lineno) - n.lineno):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            first = statement.body[0].lineno
            yield list(range(first, (statement.end_lineno or first) + 1))
        else:
            yield list(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    yield list(range(1, source.count("\n") + 1))


# ------------------------------------------------------------ running


def replacements(mutant: Mutant, root: Path) -> dict[CodeType, CodeType]:
    """The code that an edit changes and what it becomes; empty if more than bodies of functions change."""
    source, path = (root / mutant.path).read_text(encoding="utf-8"), str(root / mutant.path)
    old, new = (compile(s, path, "exec", dont_inherit=True) for s in (source, mutant.applied_to(source)))
    found: dict[CodeType, CodeType] = {}
    fits = _add_replacements(old, new, found, function=False)
    return found if fits and not any(map(_asserts, found)) else {}


def _asserts(code: CodeType) -> bool:
    """True if pytest rewrites the code, since it or a function in it asserts."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return any(i.opname == "LOAD_ASSERTION_ERROR" for i in dis.get_instructions(code)) or any(
        map(_asserts, inner)
    )


def _add_replacements(
    old: CodeType, new: CodeType, found: dict[CodeType, CodeType], *, function: bool
) -> bool:
    """False if code that ran at import or variables of a closure differ."""
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    if len(inner[0]) != len(inner[1]) or old.co_freevars != new.co_freevars:
        return False
    before, differs = len(found), _instructions(old) != _instructions(new)
    for a, b in zip(*inner, strict=True):
        defined = bool(a.co_flags & inspect.CO_NEWLOCALS) and a.co_name != "<genexpr>"
        if not _add_replacements(a, b, found, function=function or defined):
            return False
    if function and (differs or len(found) > before):
        found[old] = new
    return function or not differs


def _instructions(code: CodeType) -> tuple[object, ...]:
    """Code without positions and without the code in it."""
    values = [(type(c), repr(c)) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, code.co_cellvars, code.co_exceptiontable, values


def _run(chosen: list[Mutant], record: Record, root: Path, given: Any, kind: type[_Trial]) -> list[Outcome]:
    covering, running = _Covering(record, root), dict[int, _Trial]()
    found: list[Outcome] = []
    waiting = list(reversed(chosen))
    while waiting or running:
        while waiting and len(running) < given.jobs:
            mutant = waiting.pop()
            tests = covering.tests(mutant)
            trial = kind(mutant, _affordable(record, tests, given.seconds), len(tests), record, root)
            if trial.tests:
                running[trial.start()] = trial
            else:
                found.append(_report(Outcome(mutant, "", 0, 0, 0.0)))
        for pid, trial in list(running.items()):
            if (outcome := trial.outcome()) is not None:
                del running[pid]
                if _fails_without_edit(outcome, record, root, kind):
                    print(f"left out, since it fails without an edit: {outcome.by}", flush=True)
                    waiting.append(outcome.mutant)
                else:
                    found.append(_report(outcome))
        time.sleep(0.01)
    return found


_sound: set[str] = set()
"""Tests that passed without an edit."""


def _fails_without_edit(outcome: Outcome, record: Record, root: Path, kind: type[_Trial]) -> bool:
    """True if the test that noticed an edit fails without it; then the record forgets the test."""
    name = outcome.by
    if name not in record.tests or name in _sound:
        return False
    control = kind(replace(outcome.mutant, start=0, stop=0, old="", new=""), [name], 1, record, root)
    control.start()
    while (alone := control.outcome()) is None:
        time.sleep(0.01)
    if alone.by:
        del record.tests[name]
        return True
    _sound.add(name)
    return False


def _affordable(record: Record, tests: list[str], seconds: float) -> list[str]:
    """The first tests that take so long together, at least one."""
    found, total = [], 0.0
    for name in tests:
        total += record.tests[name].seconds
        if found and total > seconds:
            break
        found.append(name)
    return found


def _report(outcome: Outcome) -> Outcome:
    mutant = outcome.mutant
    looked = f"{outcome.ran} of {outcome.covering} tests looked, {outcome.seconds:.1f} s"
    looked = looked if outcome.covering else "no test runs it and computes another value"
    print(f"{'killed' if outcome.by else 'lived '} {mutant.path}:{mutant.line}: {mutant.edit}", flush=True)
    print(f"       {outcome.by or looked}", flush=True)
    return outcome


class _Trial:
    """One edit in a process of its own."""

    def __init__(self, mutant: Mutant, tests: list[str], covering: int, record: Record, root: Path) -> None:
        self.mutant, self.tests, self.covering, self.root = mutant, tests, covering, root
        expected = sum(record.tests[t].seconds for t in tests)
        self.cpu_limit, self.wall_limit = int(4 * expected + 20), 15 * expected + 300
        self.limits = {t: 4 * record.tests[t].seconds + 20 for t in tests}
        self.begin = 0.0
        self.pid = 0
        self.file = Path(tempfile.mkstemp(prefix="mutate-")[1])

    def start(self) -> int:
        self.begin = time.monotonic()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._child()
            except BaseException:
                self.file.write_text(f"error {traceback.format_exc()}", encoding="utf-8")
            finally:
                os._exit(9)
        return self.pid

    def outcome(self) -> Outcome | None:
        """None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.begin
        if pid == 0 and seconds < self.wall_limit:
            return None
        if pid == 0:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        lines = self.file.read_text(encoding="utf-8").splitlines()
        self.file.unlink()
        if lines and lines[0].startswith("error "):
            raise RuntimeError("\n".join(lines))
        by = next((line[7:] for line in lines if line.startswith("failed ")), "")
        if not by and (pid == 0 or status):
            ended = f"status {os.waitstatus_to_exitcode(status)}" if pid else "took too long"
            by = f"{ended} after {lines[-1] if lines else 'no test'}"
        return Outcome(self.mutant, by, sum(x.startswith("passed ") for x in lines), self.covering, seconds)

    def _child(self) -> None:
        os.setsid()
        _close_streams()
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_limit, self.cpu_limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        sys.path.insert(0, str(self.root))
        sys.dont_write_bytecode = True
        with self.file.open("w", encoding="utf-8", buffering=1) as file:
            os._exit(self._failed(file))

    def _failed(self, file: TextIO) -> bool:
        """True if a test failed; each is written to the file."""
        listener = _Listener(file, _Edited(self.mutant, self.root), self.limits)
        files = dict.fromkeys(t.partition("::")[0] for t in self.tests)
        status = pytest.main(["-x", *_QUIET, *files], plugins=[listener])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and file.tell() == 0:
            file.write(f"failed import or collection ({status!r})\n")
            return True
        return listener.failed


class _Listener:
    """Writes each test's result to a file and limits its time; puts a finder before pytest's own."""

    def __init__(self, file: TextIO, finder: _Edited, limits: dict[str, float]) -> None:
        self.file, self.finder, self.limits = file, finder, limits
        self.failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        assert self.finder.name not in sys.modules
        sys.meta_path.insert(0, self.finder)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {name: n for n, name in enumerate(self.limits)}
        items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limit the processor time of the test."""
        used, (_, most) = resource.getrusage(resource.RUSAGE_SELF), resource.getrlimit(resource.RLIMIT_CPU)
        limit = int(used.ru_utime + used.ru_stime + self.limits.get(nodeid, 0)) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (min(limit, most), most))

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed
        if report.failed or report.when == "call":
            self.file.write(f"{'failed' if report.failed else 'passed'} {report.nodeid}\n")


class _Session:
    """A pytest session whose collected tests run in copies of the process, each with an edit."""

    def __init__(
        self,
        replaced: dict[Mutant, dict[CodeType, CodeType]],
        run: Callable[[list[Mutant], type[_Trial]], None],
    ) -> None:
        self.replaced, self.run = replaced, run

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions: dict[CodeType, list[FunctionType]] = {}
        for value in gc.get_objects():
            if isinstance(value, FunctionType):
                functions.setdefault(value.__code__, []).append(value)
        replaced = self.replaced
        gc.freeze()

        class Trial(_Trial):
            def _failed(self, file: TextIO) -> bool:
                capture = session.config.pluginmanager.getplugin("capturemanager")
                capture.stop_global_capturing()
                _close_streams()
                capture.start_global_capturing()
                capture.suspend_global_capture()
                listener = _Listener(file, _Edited(self.mutant, self.root), self.limits)
                session.config.pluginmanager.register(listener)
                if listener.finder.name not in sys.modules:
                    sys.meta_path.insert(0, listener.finder)
                for old, new in replaced.get(self.mutant, {}).items():
                    for function in functions.get(old, ()):
                        function.__code__ = new
                chosen = [items[name] for name in self.tests if name in items]
                for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                    if not listener.failed:
                        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                return listener.failed

        fit = []
        for mutant, codes in replaced.items():
            if mutant.module in sys.modules and not any(old in functions for old in codes):
                print(f"not tried, as its function is not there: {mutant.path}:{mutant.line}: {mutant.edit}")
            else:
                fit.append(mutant)
        self.run(fit, Trial)
        return True


def _close_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


class _Edited(importlib.abc.MetaPathFinder):
    """Finds the edited module in place of the file's own."""

    def __init__(self, mutant: Mutant, root: Path) -> None:
        self.mutant, self.file = mutant, str(root / mutant.path)
        self.name = mutant.module

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        loader = _Loader(fullname, self.file)
        loader.mutant = self.mutant
        return importlib.util.spec_from_file_location(fullname, self.file, loader=loader)


class _Loader(SourceFileLoader):
    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:
        source = self.mutant.applied_to(Path(self.path).read_text(encoding="utf-8"))
        return compile(source, self.path, "exec", dont_inherit=True)


if __name__ == "__main__":
    sys.exit(main())
