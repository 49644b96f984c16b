"""Every command, and the library, in an environment that has the declared dependencies and no extra."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import click
import pytest
from packaging.requirements import Requirement

from hlofuse.batch.sources import SCHEMA
from hlofuse.cli.main import group
from ..conftest import ROOT
from ..fixtures import unpacked

COMMANDS: dict[str, str] = {
    "capture": "{folder}/program.py:f --args f32[4] -o {out}",
    "explain": "{sample}",
    "why": "{sample} exp.0",
    "what-if": "{sample}",
    "recipe": "unroll-the-scan",
    "fix": "{folder}/program.py:f --args f32[4]",
    "rule": "CPU012",
    "optimize": "{module} --seconds 1",
    "passes": "",
    "stats": "{sample}",
    "kernels": "{sample}",
    "memory": "{sample}",
    "model-error": "{profile}",
    "explore": "{sample} -o {out}.html",
    "render": "{sample}/before.hlo -o {out}.svg",
    "plot": "{sample} -o {out}.svg",
    "diff": "{sample}/before.hlo {sample}/before.hlo",
    "upgrade": "{sample} --to 0.10.0",
    "check": "{sample} --max-kernels 100",
    "timeline": "{dump}",
    "trace-op": "{dump} dot",
    "batch run": "{sample} -o {out}",
    "batch query": "{finished} 'SELECT 1'",
    "batch diff": "{finished} {finished}",
    "batch trend": "{finished}",
    "replay": "{sample} -o {out}.hlo",
    "verify": "{sample}",
    "judge": "{sample}/before.hlo {sample}/before.hlo",
    "reduce": "{sample}/before.hlo --while true -o {out}.hlo",
    "run-as": "{sample}/after.hlo -- python -c pass",
    "targets": "",
    "devices": "",
    "cache": "",
    "calibrate": "{out}.toml",
    "overview": "{sample}",
}
# Runs calls, one after the other, and prints for each its status, errors and the files it created.
CALLS = """
import contextlib, io, json, os, sys
from hlofuse.cli.main import main
found = {}
for name, call in json.load(sys.stdin).items():
    sys.argv, before, errors, status = ["hlofuse", *call], {*os.listdir()}, io.StringIO(), None
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
    found[name] = [status, errors.getvalue(), sorted({*os.listdir()} - before)]
json.dump(found, sys.stdout)
"""
LIBRARY = """
import sys, hlofuse
report = hlofuse.open(sys.argv[1])
for question in (report.explain, report.kernels, report.stats, report.what_if):
    str(question() if callable(question) else question)
str(report.optimize(seconds=1))
"""


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of links to hlofuse and what it requires, as installed here: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("declared")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    agenda, linked = ["hlofuse"], set[str]()
    for name in agenda:
        found = distribution(name)
        agenda += [n for n in required(found) if n not in agenda]
        for file in found.files or ():
            if (top := file.parts[0]) not in linked and top != "..":
                linked.add(top)
                (packages / top).symlink_to(Path(str(found.locate_file(top))))
    return folder


def required(found: Distribution) -> list[str]:
    """The distributions that this one requires here without an extra."""
    parsed = map(Requirement, found.requires or ())
    return [r.name for r in parsed if r.marker is None or r.marker.evaluate({"extra": ""})]


def run(
    environment: Path, folder: Path, *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    names = {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "COLUMNS": "160"}
    return subprocess.run(
        [str(environment / "bin" / "python"), *arguments],
        cwd=folder,
        env={**os.environ, **names, "PYTHONPATH": str(ROOT)},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def all_commands() -> list[str]:
    found = []
    context = click.Context(group)
    for name in (*group.list_commands(context), "overview"):
        command = group.get_command(context, name)
        parts = sorted(command.commands) if isinstance(command, click.Group) else []
        found += [f"{name} {part}" for part in parts] or [name]
    return found


def test_the_environment_has_no_extra(environment: Path, tmp_path: Path) -> None:
    names = "'rich', 'click', 'jax', 'duckdb', 'gymnasium'"
    script = f"from importlib.util import find_spec; print([n for n in ({names}) if find_spec(n)])"
    assert run(environment, tmp_path, "-c", script).stdout == "['rich', 'click']\n"


def test_each_command_has_a_call_here() -> None:
    assert sorted(COMMANDS) == sorted(all_commands())


@pytest.fixture
def places(tmp_path: Path, gpt2_whole: Path) -> dict[str, str]:
    """The folders and files that a call names."""
    (tmp_path / "program.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / "run.json").write_text(json.dumps({"schema": SCHEMA}))
    unpacked(ROOT / "tests" / "data" / "profiles.tar.xz", tmp_path)
    return {
        "folder": str(tmp_path),
        "finished": str(tmp_path / "finished"),
        "out": str(tmp_path / "out"),
        "sample": str(ROOT / "samples" / "cpu" / "softmax"),
        "module": str(tmp_path / "step.before_optimizations.txt"),
        "profile": str(tmp_path / "host.xplane.pb"),
        "dump": str(gpt2_whole),
    }


def test_a_command_answers_or_names_its_extra(
    environment: Path, places: dict[str, str], tmp_path: Path
) -> None:
    calls = {
        name: [*([] if name == "overview" else name.split()), *shlex.split(call.format(**places))]
        for name, call in COMMANDS.items()
    }
    done = run(environment, tmp_path, "-c", CALLS, stdin=json.dumps(calls))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [*found] == [*COMMANDS]
    for name, (status, errors, created) in found.items():
        assert "Traceback" not in errors, name
        if status != 0:
            assert (status, created) == (2, []), f"{name}: {errors}"
            assert re.search(r'pip install .*"(hlofuse|\.)\[[\w-]+\]"', errors), f"{name}: {errors}"


def test_the_library_answers(environment: Path, places: dict[str, str], tmp_path: Path) -> None:
    done = run(environment, tmp_path, "-c", LIBRARY, places["module"])
    assert (done.returncode, done.stderr) == (0, "")
