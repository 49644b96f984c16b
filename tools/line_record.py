"""A pytest plugin that records which lines of a package each test runs: `pytest -p line_record`.

LINE_RECORD names the folder to write to, LINE_RECORD_OF the folder whose files count. LINE_RECORD_EDITS may
name a file of pickled edits. An edit counts as a file of the test in which its value differs from the text's.
A fixture of wider scope and a function in `functools.cache` or `lru_cache` run once: their lines count for
every later test that uses the value.
"""

from __future__ import annotations

import builtins
import functools
import importlib.abc
import importlib.util
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from edited_values import DIFFERS, comparing
from mutants import Mutant

_OF = os.environ["LINE_RECORD_OF"].rstrip("/") + "/"
_TESTS = f"{os.getcwd()}/tests/"
_TOOL = 4
_MOST_MISSES = 100
"""Misses of one cache whose lines are recorded; later ones count for the test that runs them."""

Lines = set[tuple[str, int]]
_stack: list[Lines] = [set()]
_fixtures: dict[int, Lines] = {}
_passed: dict[str, tuple[float, Lines]] = {}


def _line(code: Any, number: int) -> object:
    if code.co_filename.startswith(_OF):
        _stack[-1].add((code.co_filename, number))
    return sys.monitoring.DISABLE


@contextmanager
def _recording() -> Iterator[Lines]:
    """The lines that run meanwhile, which count for what surrounds it as well."""
    lines: Lines = set()
    _stack.append(lines)
    sys.monitoring.restart_events()
    try:
        yield lines
    finally:
        assert _stack.pop() is lines
        _stack[-1].update(lines)


def _recorded_cache(cache: Callable[..., Any]) -> Callable[..., Any]:
    """`functools.lru_cache` with lines for each value."""

    def decorator(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and callable(args[0]):
            return wrapped(args[0], cache()(args[0]))
        return lambda function: wrapped(function, cache(*args, **options)(function))

    def wrapped(function: Callable[..., Any], cached: Any) -> Any:
        code = getattr(function, "__code__", None)
        if code is None or not code.co_filename.startswith((_OF, _TESTS)):
            return cached
        lines: dict[Any, Lines] = {}

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            key = (args, tuple(keywords.items()))
            if (executed := lines.get(key)) is not None:
                _stack[-1].update(executed)
                return cached(*args, **keywords)
            if len(lines) >= _MOST_MISSES:
                return cached(*args, **keywords)
            with _recording() as ran:
                value = cached(*args, **keywords)
            lines[key] = ran
            return value

        for name in ("cache_clear", "cache_info", "cache_parameters"):
            setattr(call, name, getattr(cached, name))
        return call

    return decorator


def _edited_value(key: str, value: Any, other: Callable[[], Any]) -> Any:
    """The value. The running test has the edit among its files if the other value differs."""
    if (key, 0) not in _stack[-1]:
        try:
            differs = type(edited := other()) is not type(value) or bool(edited != value)
        except Exception:
            differs = True
        if differs:
            _stack[-1].add((key, 0))
    return value


class _Comparing(importlib.abc.MetaPathFinder, SourceFileLoader):
    """Finds and loads modules with comparisons of their edits."""

    def __init__(self, name: str, file: str, edits: list[Mutant]) -> None:
        super().__init__(name, file)
        self.edits = edits

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return (
            importlib.util.spec_from_file_location(fullname, self.path, loader=self)
            if fullname == self.name
            else None
        )

    def get_code(self, fullname: str) -> CodeType:
        tree, _ = comparing(Path(self.path).read_text(encoding="utf-8"), self.edits)
        return compile(tree, self.path, "exec", dont_inherit=True)


def _compare_edits(file: Path) -> None:
    setattr(builtins, DIFFERS, _edited_value)
    by_path: dict[str, list[Mutant]] = {}
    for edit in pickle.loads(file.read_bytes()):
        by_path.setdefault(edit.path, []).append(edit)
    for path, edits in by_path.items():
        sys.meta_path.insert(0, _Comparing(edits[0].module, os.path.abspath(path), edits))


def pytest_configure() -> None:
    sys.monitoring.use_tool_id(_TOOL, "line_record")
    sys.monitoring.register_callback(_TOOL, sys.monitoring.events.LINE, _line)
    sys.monitoring.set_events(_TOOL, sys.monitoring.events.LINE)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Any:
    if fixturedef.scope == "function":
        return (yield)
    with _recording() as lines:
        value = yield
    _fixtures[id(fixturedef)] = lines
    return value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Any:
    begin = time.process_time()
    with _recording() as lines:
        result = yield
    for fixtures in item._fixtureinfo.name2fixturedefs.values():
        for fixture in fixtures:
            lines |= _fixtures.get(id(fixture), set())
    if item.stash.get(_OK, False):
        _passed[item.nodeid] = time.process_time() - begin, lines
    return result


_OK = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = yield
    if call.when == "call":
        item.stash[_OK] = report.passed
    return report


def pytest_sessionfinish() -> None:
    tests, paths = {}, dict[str, str]()
    for name, (seconds, lines) in _passed.items():
        files: dict[str, int] = {}
        for file, line in lines:
            path = (paths.get(file) or paths.setdefault(file, os.path.relpath(file))) if line else file
            files[path] = files.get(path, 0) | 1 << line
        tests[name] = seconds, files
    if tests:
        file = Path(os.environ["LINE_RECORD"]) / f"{os.getpid()}.pickle"
        file.write_bytes(pickle.dumps(tests))


if edits := os.environ.get("LINE_RECORD_EDITS"):
    _compare_edits(Path(edits))
_lru_cache = functools.lru_cache
functools.cache = _recorded_cache(functools.partial(_lru_cache, maxsize=None))  # type: ignore
functools.lru_cache = _recorded_cache(_lru_cache)  # type: ignore[assignment]
