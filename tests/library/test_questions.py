"""A question is one declaration: its command, its method of a report and its JSON agree."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, fields
from pathlib import Path

import click
import pytest

import hlofuse as library
from hlofuse.cli.main import group
from hlofuse.library.answer import flat
from hlofuse.library.options import ReplayOptions
from hlofuse.library.questions import QUESTIONS
from hlofuse.library.report import Report
from ..conftest import ROOT
from ..running import Golden, Run

METHODS = {"kernels": "kernels_of", "stats": "stats_of"}
TOTALS = {
    *("kernels", "launches", "bytes", "flop", "time_us", "measured_us", "estimated_us", "unknown"),
    *(
        "exposed_collectives_us",
        "exposed_collectives_kind",
        "copies",
        "temporary_bytes",
        "memory_bytes",
        "from",
    ),
}
HEAD = ["schema", "module", "stage", "xla", "order", "not_repeated", "notes"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_command_and_the_method_have_the_options_of_the_question(name: str) -> None:
    declared = QUESTIONS[name]
    own = [f.name for f in fields(declared)]  # type: ignore[arg-type]
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert {*own, *declared.shown} <= {p.name for p in command.params}
    method = inspect.signature(getattr(Report, METHODS.get(name, name.replace("-", "_"))))
    assert list(method.parameters) == ["self", *own]


def test_options_have_the_forms_as_before(golden: Golden) -> None:
    """Of each question and of a replay: names, placeholders, kinds, defaults, and what may be given twice."""
    lines = []
    for name, declared in {**QUESTIONS, "a replay": ReplayOptions}.items():
        if name in QUESTIONS:
            own = [
                f"{n}={getattr(declared, n)}" for n in ("source", "reading", "input", "has_hints", "of_whole")
            ]
            lines.append(f"{name} {' '.join(own)}\n")
        shown = getattr(declared, "shown", {})
        for key, f in [*((f.name, f) for f in fields(declared)), *shown.items()]:
            if spec := f.metadata.get("option"):
                default = "required" if f.default is MISSING else f"default={f.default!r}"
                more = f"{spec.kind} least={spec.least} multiple={spec.multiple} kw_only={f.kw_only is True}"
                lines.append(f"  {key}: {spec.flags} {spec.value} {default} {more}\n")
    golden("library/options.txt", "".join(lines))


def test_open_takes_the_options_of_a_replay() -> None:
    keywords = set(inspect.signature(library.open).parameters) - {"source", "arguments"}
    declared = {f.name for f in fields(ReplayOptions) if "option" in f.metadata}
    assert keywords == declared - {"overrides", "assume_input", "no_cache"} | {"set"}


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("samples/gpu/softmax/before.hlo", "fusion-input"),
        ("samples/gpu/softmax/after.hlo", "after-fusion"),
        ("samples/cpu/softmax/before.hlo", "fusion-input"),
        ("samples/cpu/softmax/after.hlo", "after-fusion"),
    ],
)
def test_explain_has_one_document(hlofuse: Run, path: str, stage: str) -> None:
    found = json.loads(hlofuse("explain", str(Path(ROOT, path)), "--format", "json").out)
    assert list(found)[: len(HEAD)] == HEAD
    assert (found["schema"], found["stage"]) == ("hlofuse.explain/3", stage)
    assert found["totals"].keys() >= TOTALS
    assert found["totals"]["kernels"] == len(found["kernels"])
    assert found.keys() >= {"before", "after", "passes", "obstacles", "rules", "verdict", "suggestions"}


def test_several_modules_have_the_head_that_they_share(hlofuse: Run) -> None:
    paths = [str(ROOT / f"samples/{name}/before.hlo") for name in ("cpu/softmax", "gpu/softmax")]
    found = json.loads(hlofuse("stats", *paths, "--format", "json").out)
    assert list(found)[:3] == HEAD[:3]
    assert (found["stage"], found["xla"]["backend"]) == ("fusion-input", None)
    assert [each["xla"]["backend"] for each in found["inputs"]] == ["cpu", "gpu"]


def test_rows_are_flat() -> None:
    row = {"a": {"b": {"c": 1}, "d": (1, 2)}, "e": [{"f": 1}, 2], "g": [1, (2,)], "h": [], "i": None}
    assert dict(flat(row)) == {"a_b_c": 1, "a_d": "1, 2", "e": 2, "g": 2, "h": None, "i": None}
