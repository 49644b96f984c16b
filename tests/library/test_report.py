"""The library says what the command line says: the same inputs, options, figures and errors."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest

import hlofuse as library
from hlofuse.ir import HlofuseError, parse_module, print_module
from hlofuse.library import opening
from hlofuse.library.options import ReplayOptions
from hlofuse.library.report import Report
from ..conftest import ROOT
from ..hostile import EVIL, hostile_module
from ..passes.packed import archive
from ..running import Run

INPUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "cpu": ("samples/cpu/softmax", {}),
    "gpu": ("samples/gpu/gpt2_block", {}),
    "gpu, fused": ("samples/gpu/softmax/after.hlo", {}),
    "gpu, without a rule": ("samples/gpu/gpt2_block/before.hlo", {"disable": ["PF009"]}),
    "gpu, another device": ("samples/gpu/softmax", {"device": "v100", "order": "text"}),
}
REPORTS: dict[str, tuple[list[str], Callable[[Report], Any]]] = {
    "explain": ([], lambda r: r.explain()),
    "kernels": ([], lambda r: r.kernels),
    "memory": ([], lambda r: r.memory()),
    "stats": ([], lambda r: r.stats),
    "what-if": ([], lambda r: r.what_if()),
    "check": (["--max-kernels", "1"], lambda r: r.check(max_kernels=1)),
}
FIGURES = ("time_us", "us", "bytes", "bytes_accessed", "kernels", "launches", "flop", "runs")


@pytest.fixture(scope="module", params=INPUTS)
def opened(request: pytest.FixtureRequest) -> tuple[list[str], Report]:
    """The arguments of the command line, and the report of the library."""
    path, how = INPUTS[request.param]
    arguments = [path]
    for name, value in how.items():
        for text in [value] if isinstance(value, str) else value:
            arguments += [f"--{name}", text]
    return arguments, library.open(path, **how)


def document(run: Run, *arguments: str) -> Any:
    result = run(arguments[0], *arguments[1:], "--format", "json")
    assert result.status in (0, 1), result.err
    return json.loads(result.out)


@pytest.mark.parametrize("command", REPORTS)
def test_the_json_of_both_is_the_same(
    hlofuse: Run, opened: tuple[list[str], Report], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    arguments, report = opened
    more, answer_of = REPORTS[command]
    if command == "what-if" and arguments[0].endswith("after.hlo"):
        with pytest.raises(HlofuseError, match="is a fused module"):
            answer_of(report)
        return
    expected = document(hlofuse, command, *arguments, *more)
    answer = answer_of(report)
    assert plain(answer) == expected
    figures = set(numbers(expected))
    for row in answer.rows():
        assert all(isinstance(v, str | int | float | None) for v in row.values())
        assert {v for k, v in row.items() if k in FIGURES and v is not None} <= figures


def plain(answer: Any) -> Any:
    """Its document as a reader of JSON has it."""
    return json.loads(json.dumps(answer.to_json()))


def numbers(value: Any) -> Iterator[float]:
    """Every number in a JSON document."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from numbers(inner)
    elif isinstance(value, int | float):
        yield value


def test_why_diff_timeline_and_sweep_are_the_same_too(hlofuse: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path, other = "samples/gpu/gpt2_block", "samples/gpu/softmax"
    report = library.open(path)
    name = report.kernels[0].final or report.kernels[0].name
    pair = (report.kernels[0].name, report.kernels[1].name)
    assert plain(report.why(name)) == document(hlofuse, "why", path, name)
    assert plain(report.why(*pair)) == document(hlofuse, "why", path, *pair)
    assert plain(report.explain(name)) == document(hlofuse, "explain", path, name)
    assert plain(report.diff(library.open(other))) == document(hlofuse, "diff", path, other)
    files = f"{path}/before.hlo", f"{other}/before.hlo"
    of_files = library.open(files[0]).diff(library.open(files[1]))
    assert plain(of_files) == document(hlofuse, "diff", *files)
    assert plain(report.timeline()) == document(hlofuse, "timeline", path)
    assert plain(report.trace_op(name)) == document(hlofuse, "trace-op", path, name)
    swept = document(hlofuse, "what-if", path, "--sweep", "launch_overhead_us=1,2")
    sweep = report.what_if(sweep={"launch_overhead_us": [1, 2]})
    assert plain(sweep) == swept
    assert [row["values_launch_overhead_us"] for row in sweep.rows()] == ["1", "2"]
    shown = hlofuse("explain", path, columns=100).out
    assert shown.startswith(str(report))
    assert "--details" not in str(report)


def test_totals_verdict_and_suggestions_are_those_of_the_answer(hlofuse: Run) -> None:
    path = str(ROOT / "samples/gpu/gpt2_block")
    report, found = library.open(path), document(hlofuse, "explain", path)
    assert report.totals.kernels == found["totals"]["kernels"] == len(report.kernels)
    assert round(report.totals.us or 0, 5) == found["totals"]["time_us"]
    assert len(report.suggestions.rows()) == len(found["suggestions"]) == len(report.suggestions)
    assert report.verdict.replays == found["verdict"]["replays"]


def test_optimize_is_the_same_too(hlofuse: Run, tmp_path: Path) -> None:
    program = tmp_path / "module.hlo"
    program.write_text(archive("cpu")["programs/gpt2_block_grad"]["before"])
    passes = ["call-inliner", "cse", "--xla_disable_hlo_passes=cse"]
    report = library.open(program, target="cpu")
    _ = report.totals
    found = report.optimize(passes=passes)
    call = ("optimize", str(program), "--target", "cpu", "--passes", ",".join(passes))
    assert timeless(plain(found)) == timeless(document(hlofuse, *call, "--write", str(tmp_path / "out.hlo")))
    assert print_module(found.data.module) == (tmp_path / "out.hlo").read_text()
    assert [row["move"] for row in found.rows()] == [step.move for step in found] == passes
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"space": "orders"}, "space 'orders': expected one of passes, flags, all"),
        ({"method": "luck"}, "search 'luck'"),
        ({"objective": "joy"}, "objective 'joy'"),
    ]
    for how, message in wrong:
        with pytest.raises(HlofuseError, match=message):
            report.optimize(**how)


def test_verify_is_the_same_too(hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    before, after = (f"samples/gpu/softmax/{name}.hlo" for name in ("before", "after"))
    corpus = timeless(plain(library.verify("samples/cpu")))
    assert corpus == timeless(document(hlofuse, "verify", "samples/cpu"))
    pair = library.verify(before, after, ties="xla")
    assert timeless(plain(pair)) == timeless(document(hlofuse, "verify", before, after, "--ties", "xla"))
    assert pair.data.agrees
    assert pair[0] in pair.data.verdicts
    assert hlofuse("verify", before, after, "--ties", "xla", columns=100).out == str(pair)
    wrong = library.verify(before, before)
    assert timeless(plain(wrong)) == timeless(document(hlofuse, "verify", before, before))
    assert not wrong.data.agrees
    with pytest.raises(HlofuseError, match="give hlofuse verify BEFORE AFTER"):
        library.verify(before)


def test_upgrade_is_the_same_too(hlofuse: Run, tmp_path: Path) -> None:
    path = str(ROOT / "samples/gpu/softmax")
    report = library.open(path, xla="0.10.2")
    expected = document(hlofuse, "upgrade", path, "--from", "0.10.2", "--to", "0.12.0.1")
    assert plain(report.upgrade("0.12.0.1")) == expected
    assert plain(report.upgrade()) == document(hlofuse, "upgrade", path, "--from", "0.10.2")
    other = str(ROOT / "samples/gpu/gpt2_block")
    both = document(hlofuse, "upgrade", path, other, "--from", "0.10.2", "--to", "0.12.0.1")
    found = report.upgrade("0.12.0.1", compiled=library.open(other))
    assert plain(found) == both != expected
    assert [row["name"] for row in found.rows()] == [f.name for f in found] == ["softmax"]
    with pytest.raises(HlofuseError, match="no such release"):
        report.upgrade("soon")


@pytest.mark.parametrize("name", ["cpu/softmax", "gpu/softmax", "gpu/softmax/after.hlo"])
@pytest.mark.parametrize("until", ["fusion", "end"])
def test_the_replayed_text_is_the_same_too(hlofuse: Run, name: str, until: str) -> None:
    path = str(ROOT / "samples" / name)
    report = library.open(path)
    before = print_module(report.module)
    expected = hlofuse("replay", path, "--until", until, "-o", "-")
    if expected.status == 2:
        with pytest.raises(HlofuseError) as error:
            report.replayed_text(until)
        assert expected.err == f"error: {error.value}\n"
        return
    assert report.replayed_text(until) == expected.out
    assert print_module(report.module) == before
    with pytest.raises(HlofuseError, match="expected fusion or end"):
        report.replayed_text("now")


def timeless(found: Any) -> Any:
    """The document without how long it took."""
    if isinstance(found, list):
        return [timeless(f) for f in found]
    return {k: timeless(v) for k, v in found.items() if k != "seconds"} if isinstance(found, dict) else found


def test_a_path_a_text_a_module_and_a_capture_are_the_same() -> None:
    path = ROOT / "samples" / "cpu" / "gpt2_block" / "before.hlo"
    module = library.load(path)
    before = [i.name for i in module.instructions()]
    found = [library.open(x).totals for x in (path, str(path), path.parent, path.read_text(), module)]
    assert all(totals == found[0] for totals in found)
    assert [i.name for i in module.instructions()] == before


def test_a_gpu_dump_is_a_gpu_dump(hlofuse: Run, deviceless: Path) -> None:
    path = ROOT / "samples" / "gpu" / "gpt2_block" / "before.hlo"
    replay = library.replay(library.load(path))
    assert (replay.target, replay.device) == ("gpu", "h100_sxm")
    kernels = document(hlofuse, "kernels", str(path))["kernels"]
    assert len(library.open(library.load(path)).kernels) == len(kernels)
    with pytest.raises(HlofuseError) as error:
        _ = library.open(deviceless).totals
    assert hlofuse("explain", deviceless).err == f"error: {error.value}\n"
    with pytest.raises(HlofuseError, match="needs --device"):
        library.replay(library.load(deviceless))


def test_what_cannot_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    for source, message in (
        (tmp_path / "no.hlo", "does not exist"),
        ("HloModule m\n\nnonsense", "the text"),
        (3, "expected a dump's path"),
        (ROOT / "samples" / "cpu", "several modules"),
    ):
        with pytest.raises(HlofuseError, match=message):
            library.open(source)
    with pytest.raises(HlofuseError, match="arguments go with a function"):
        library.open(ROOT / "samples" / "cpu" / "softmax", 1)
    with pytest.raises(HlofuseError, match="open a dump directory"):
        library.open((ROOT / "samples/cpu/softmax/before.hlo").read_text()).timeline()


def test_reprs_are_short() -> None:
    report = library.open(ROOT / "samples" / "gpu" / "gpt2_block", disable=["PF009"])
    report.what_if()
    kernel = report.kernels[0].name
    answers = (
        report.explain(),
        report.explain(kernel),
        report.kernels,
        report.stats,
        report.suggestions,
        report.what_if(),
        report.what_if(sweep={"launch_overhead_us": [1, 2, 3]}),
        report.why(kernel),
        report.memory(),
        report.check(max_kernels=1),
        report.upgrade("0.10.2"),
        report.diff(library.open(ROOT / "samples" / "gpu" / "softmax")),
        report.timeline(),
        report.trace_op(kernel),
    )
    assert all(a._repr_html_().startswith("<pre ") for a in answers)
    found = (
        report,
        report.module,
        report.module.entry,
        report.replay,
        report.replay.input,
        report.replay.config,
        report.replay.final,
        report.replay.passes[0],
        report.observed,
        report.loaded,
        report.options,
        report.identity,
        report.totals,
        report.verdict,
        report.facts.account_after,
        report.render(),
        report.explore(),
        *(
            part
            for answer in answers
            for part in (
                answer,
                answer.data if not isinstance(answer.data, list) else answer.data[0],
                *answer[:1],
            )
        ),
    )
    assert {type(x).__name__: len(repr(x)) for x in found if len(repr(x)) >= 2000} == {}


def test_html_is_escaped() -> None:
    module = hostile_module(EVIL, op_name="x", source_file="y")
    module.filename = None
    report = library.open(module, stage="fusion-input")
    for shown in (report, report.kernels, report.explain(details=True), report.why(f"a{EVIL}")):
        html = shown._repr_html_()
        assert "pwned" in html or shown is report
        assert "<script" not in html
        assert "<img" not in html
        assert len(html) < 20_000


def test_a_notebook_has_a_monospaced_report_and_the_rest_of_a_long_one_folded() -> None:
    html = library.open(ROOT / "samples" / "gpu" / "gpt2_block").explain()._repr_html_()
    assert html.count("<pre ") == html.count("font-family:ui-monospace") == 2
    shown, folded = html.split("<details>")
    assert len(folded) > len(shown)
    assert "<details" not in library.open(ROOT / "samples" / "cpu" / "softmax").kernels._repr_html_()


def test_a_picture_shows_itself() -> None:
    report = library.open(ROOT / "samples" / "cpu" / "softmax")
    style = '<div style="overflow-x:auto"><?xml'  # the cell scrolls, not the page
    assert report.plot("kernels")._repr_html_().startswith(style)
    assert shutil.which("dot") is None or report.render()._repr_html_().startswith(style)


def test_no_command_names_a_folder_that_is_deleted() -> None:
    text = (ROOT / "samples" / "cpu" / "softmax" / "before.hlo").read_text()
    assert "--details" in str(library.open(ROOT / "samples" / "cpu" / "softmax").why("reduce_sum.5"))
    assert "hlofuse" not in str(library.open(text).why("reduce_sum.5"))


def test_opening_imports_nothing_heavy() -> None:
    code = (
        "import sys, hlofuse; hlofuse.__all__; print([m for m in sys.modules if m.startswith('hlofuse.')]);"
        "hlofuse.open; print([m for m in ('rich', 'numpy', 'lark', 'jax', 'IPython') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n[]\n"


class _OnlyOptions:
    """Stands for a report: the options that it is made of."""

    def __init__(self, options: ReplayOptions, notes: list[str]) -> None:
        self.options, self.loaded = options, notes


def options_of(monkeypatch: pytest.MonkeyPatch, source: Any, **how: Any) -> ReplayOptions:
    monkeypatch.setattr(opening, "Report", _OnlyOptions)
    found: Any = opening.open(source, **how)
    options: ReplayOptions = found.options
    return options


KEYWORDS = [n for n, p in signature(opening.open).parameters.items() if p.kind is Parameter.KEYWORD_ONLY]


@pytest.mark.parametrize("name", KEYWORDS)
def test_each_keyword_is_the_option_of_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: Any = ["a=1"] if name in ("set", "disable", "enable") else True
    options = options_of(monkeypatch, "samples/cpu/softmax", **{name: given})
    field = "overrides" if name == "set" else name
    assert getattr(options, field) == (("a=1",) if isinstance(given, list) else given)
    others = options_of(monkeypatch, "samples/cpu/softmax")
    differ = {n for n in ReplayOptions.__dataclass_fields__ if getattr(options, n) != getattr(others, n)}
    assert differ - {"listener"} == {field}


@pytest.mark.parametrize(("filename", "read"), [("a.hlo", "a.hlo"), ("<stdin>", "-"), (None, "-")])
def test_a_module_of_a_file_is_read_as_that_file(
    filename: str | None, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = parse_module("HloModule m\nENTRY e {\n  ROOT x = f32[8] parameter(0)\n}\n")
    module.filename = filename
    options = options_of(monkeypatch, module)
    assert (options.input, options.given is module) == (read, True)
    assert (options.owned is module) == (read == "-")
