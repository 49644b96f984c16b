"""`hlofuse check` as CI runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ..conftest import ROOT
from ..running import Result, Run

EXAMPLE = ROOT / "examples" / "ci"
CHANGED = EXAMPLE / "pull-request"


def check(hlofuse: Run, *text: object) -> Result:
    return hlofuse("check", *text)


def report(result: Result) -> dict[str, Any]:
    found = json.loads(result.out)
    assert isinstance(found, dict)
    return found


def test_the_example_passes(hlofuse: Run) -> None:
    result = check(hlofuse, EXAMPLE / "dumps", "--baseline", EXAMPLE / "fusion.toml", "--root", EXAMPLE)
    assert result.status == 0
    assert "\n2 modules OK\n" in result.out


def test_the_example_s_change_fails_at_the_line_that_was_changed(hlofuse: Run) -> None:
    text = CHANGED / "dumps", "--baseline", EXAMPLE / "fusion.toml", "--root", CHANGED
    result = check(hlofuse, *text, "--format", "github")
    assert result.status == 1
    changed = next(
        n
        for n, (a, b) in enumerate(
            zip(
                *(p.read_text().split("\n") for p in (EXAMPLE / "model.py", CHANGED / "model.py")),
                strict=True,
            ),
            1,
        )
        if a != b
    )
    commands = result.out.split("\n")[:-2]
    assert commands
    for command in commands:
        assert command.startswith(f"::error file=model.py,line={changed},")
    assert "CPU007 refused" in result.out


def test_exit_zero_reports_and_lets_pass(hlofuse: Run) -> None:
    text = CHANGED / "dumps", "--baseline", EXAMPLE / "fusion.toml", "--exit-zero"
    result = check(hlofuse, *text)
    assert result.status == 0
    assert "\n2 of 2 modules failed\n" in result.out


def test_the_example_s_baseline_is_what_update_writes(hlofuse: Run, tmp_path: Path) -> None:
    copy = tmp_path / "fusion.toml"
    shutil.copy(EXAMPLE / "fusion.toml", copy)
    result = check(hlofuse, EXAMPLE / "dumps", "--baseline", copy, "--root", EXAMPLE, "--update")
    assert (result.status, "\nwrote baseline: 2 modules" in result.out) == (0, True)
    assert copy.read_text() == (EXAMPLE / "fusion.toml").read_text()


def test_an_update_accepts_a_change(hlofuse: Run, tmp_path: Path) -> None:
    for baseline in (tmp_path / "fusion.toml", tmp_path / "folder"):
        assert check(hlofuse, EXAMPLE / "dumps", "--baseline", baseline, "--update").status == 0
        assert check(hlofuse, CHANGED / "dumps", "--baseline", baseline).status == 1
        assert check(hlofuse, CHANGED / "dumps", "--baseline", baseline, "--update").status == 0
        assert check(hlofuse, CHANGED / "dumps", "--baseline", baseline, "--strict").status == 0


def test_an_update_beyond_the_budget_fails(hlofuse: Run, tmp_path: Path) -> None:
    baseline = tmp_path / "b.toml"
    result = check(hlofuse, EXAMPLE / "dumps", "--baseline", baseline, "--update", "--max-kernels", "1")
    assert result.status == 1
    assert baseline.exists()


def test_budgets_name_the_rules(hlofuse: Run, samples: Path) -> None:
    result = check(hlofuse, samples / "cpu" / "softmax", "--max-kernels", "3", "--format", "json")
    assert result.status == 1
    (module,) = report(result)["modules"]
    (finding,) = module["findings"]
    assert (finding["code"], finding["message"]) == ("max-kernels", "4 kernels, 3 allowed")
    assert {"CPU001", "CPU005", "CPU007"} == {h["rule"] for h in finding["held"]}


def test_time_is_bounded_on_gpu(hlofuse: Run, samples: Path) -> None:
    text = samples / "gpu" / "softmax", "--device", "h100_sxm", "--max-time"
    assert check(hlofuse, *text, "1ms").status == 0
    result = check(hlofuse, *text, "3us")
    assert result.status == 1
    assert "estimated 3.59 µs, 3.00 µs allowed" in result.out


def test_memory_is_bounded(hlofuse: Run, tmp_path: Path) -> None:
    """13,375,544 bytes by XLA; the finding stands at the line of the largest array, and names no rule."""
    dump, baseline = ROOT / "samples/tutorial/slow/loss", tmp_path / "b.toml"
    assert check(hlofuse, dump, "--max-memory", "13375544").status == 0
    result = check(hlofuse, dump, "--max-memory", "13375543", "--format", "json")
    (finding,) = report(result)["modules"][0]["findings"]
    assert (result.status, finding["code"], finding["held"]) == (1, "max-memory", [])
    assert finding["message"] == "13,375,544 B of memory, 13,375,543 B allowed"
    assert finding["where"]["line"] == 21
    assert check(hlofuse, dump, "--baseline", baseline, "--update").status == 0
    assert check(hlofuse, dump, "--baseline", baseline, "--strict").status == 0
    text = baseline.read_text().replace("memory = 13_375_544", "memory = 12_000_000")
    baseline.write_text(text + '\n[[budget]]\nmax-memory = "1 GiB"\n')
    found = report(check(hlofuse, dump, "--baseline", baseline, "--format", "json"))["modules"][0]
    assert [f["code"] for f in found["findings"]] == ["more-memory"]
    assert found["findings"][0]["where"]["line"] == 21
    assert check(hlofuse, dump, "--baseline", baseline, "--tolerance", "12").status == 0
    baseline.write_text(text.replace("memory = 12_000_000\n", ""))
    assert check(hlofuse, dump, "--baseline", baseline).status == 0


def test_a_corpus_is_paired_by_folder(hlofuse: Run, samples: Path) -> None:
    result = check(hlofuse, samples / "cpu", "--max-kernels", "1000", "--format", "json")
    assert [m["module"] for m in report(result)["modules"]] == ["gpt2_block", "softmax"]


def test_one_module_of_a_corpus(hlofuse: Run, samples: Path) -> None:
    text = samples / "cpu", "--max-kernels", "4"
    assert check(hlofuse, *text, "--module", "softmax").status == 0
    result = check(hlofuse, *text, "--module", "softmaks")
    assert result.status == 2
    assert "softmax" in result.err


def test_a_module_that_xla_has_fused_is_taken_as_it_is(hlofuse: Run, samples: Path) -> None:
    folder = samples / "cpu" / "softmax"
    found = [
        report(check(hlofuse, folder / name, "--max-kernels", "4", "--format", "json"))["modules"][0]
        for name in ("before.hlo", "after.hlo")
    ]
    assert found[0]["figures"] == found[1]["figures"]
    assert [m["xla"] for m in found] == ["jaxlib 0.11.1", None]


def test_a_dump_without_stages_is_taken_as_xla_left_it(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    name = "module_0001.jit_softmax.cpu_after_optimizations.txt"
    shutil.copy(samples / "cpu" / "softmax" / "after.hlo", tmp_path / name)
    result = check(hlofuse, tmp_path, "--max-kernels", "4", "--format", "json")
    assert result.status == 0
    (module,) = report(result)["modules"]
    assert (module["module"], module["xla"]) == ("jit_softmax", None)


def test_modules_of_one_name_are_told_apart(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    one = samples / "cpu" / "softmax" / "before.hlo"
    assert check(hlofuse, one, one, "--baseline", tmp_path / "b.toml", "--update").status == 0
    assert '[module."jit_softmax (2)"]' in (tmp_path / "b.toml").read_text()


def test_further_reports_come_from_one_run(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    files = {form: tmp_path / form for form in ("json", "markdown", "sarif", "junit", "github", "text")}
    text = [w for form, file in files.items() for w in ("--report", f"{form}={file}")]
    result = check(hlofuse, samples / "cpu" / "softmax", "--max-kernels", "3", *text)
    assert result.status == 1
    for form, file in files.items():
        alone = check(hlofuse, samples / "cpu" / "softmax", "--max-kernels", "3", "--format", form)
        assert alone.out == file.read_text()


def test_what_is_new_and_what_is_missing_is_said(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "b.toml"
    assert check(hlofuse, EXAMPLE / "dumps", "--baseline", baseline, "--update").status == 0
    result = check(hlofuse, samples / "cpu", "--baseline", baseline)
    assert result.status == 0
    assert "not in the baseline (4 kernels): --update adds it  [module-new]" in result.out
    assert "jit_gated: in the baseline, not in the input" in result.out
    assert check(hlofuse, samples / "cpu", "--baseline", baseline, "--strict").status == 1


def test_what_if_runs_say_so(hlofuse: Run, samples: Path) -> None:
    result = check(hlofuse, samples / "cpu" / "softmax", "--max-kernels", "3", "--disable", "CPU007")
    assert result.status == 0
    assert "Changed: without CPU007" in result.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ([], "nothing to check against"),
        (["--update", "--max-kernels", "3"], "--update needs --baseline FILE"),
        (["--max-bytes", "3 parsec"], "expected bytes"),
        (["--max-memory", "16", "--tolerance", "5%"], "16 needs a unit: 16GiB, or 16B for bytes"),
        (["--max-time", "3"], "expected a time"),
        (["--baseline", "missing.toml"], "missing.toml: no such file; --update writes it"),
        (["--max-kernels", "3", "--report", "xml=a"], "expected FORMAT=FILE"),
        (["--max-kernels", "-1"], "max-kernels"),
    ],
)
def test_wrong_calls_are_said(hlofuse: Run, samples: Path, text: list[str], message: str) -> None:
    result = check(hlofuse, samples / "cpu" / "softmax", *text)
    assert (result.status, result.out) == (2, "")
    assert message in result.err


def test_nothing_is_written_where_an_input_is_wrong(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    text = (
        samples / "cpu" / "softmax",
        tmp_path / "missing.hlo",
        "--baseline",
        tmp_path / "b.toml",
        "--update",
    )
    assert check(hlofuse, *text).status == 2
    assert list(tmp_path.iterdir()) == []


def test_a_pair_of_fusions_has_a_place_as_well(hlofuse: Run, samples: Path) -> None:
    text = samples / "gpu" / "gpt2_block", "--device", "h100_sxm", "--max-kernels", "3", "--format", "json"
    (module,) = report(check(hlofuse, *text))["modules"]
    pairs = module["findings"][0]["held"]
    assert len(pairs) == 5
    assert all(p["where"]["file"] == "programs.py" and p["where"]["line"] for p in pairs)


def test_a_target_that_the_user_names_is_taken(hlofuse: Run) -> None:
    after = ROOT / "samples/gpu/gpt2_block/after.hlo"
    text = check(hlofuse, after, "--target", "cpu", "--max-kernels", 99, "--format", "json")
    assert text.status == 0
    found = json.loads(text.out)
    assert found["identified_by"]["backend"]["source"] == "asked"
    assert "the module is for GPU" in found["notes"][0]


def test_kernels_of_a_loop_count_as_often_as_it_runs(hlofuse: Run, samples: Path) -> None:
    scan = samples / "cartpole" / "cpu" / "scan"
    result = check(hlofuse, scan, "--max-kernels", "99")
    assert "12 kernels are in a loop: while.1 runs 10,000 times" in result.out
    module = json.loads(check(hlofuse, scan, "--max-kernels", "99", "--format", "json").out)["modules"][0]
    assert module["loops"] == [{"name": "while.1", "trips": 10_000, "kernels": 12}]


LAYERED = """HloModule jit_f

ENTRY main {
  x = f32[8,512]{1,0} parameter(0)
  y = f32[512,8]{1,0} parameter(1)
  d = f32[8,8]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/jvp(LM)/layer_0/dot" source_file="m.py" source_line=7}
  ROOT t = f32[8,8]{1,0} tanh(d),
    metadata={op_name="jit(f)/jvp(LM)/layer_1/tanh" source_file="m.py" source_line=8}
}
"""


def test_the_layer_is_told_with_the_place_and_kept_in_no_baseline(hlofuse: Run, tmp_path: Path) -> None:
    module, baseline = tmp_path / "m.hlo", tmp_path / "fusion.toml"
    module.write_text(LAYERED)
    requested = ("check", module, "--target", "cpu", "--max-kernels", 1)
    assert "LM/layer_0: m.py:7" in hlofuse(*requested).out
    assert "LM/layer_0: m.py:7" in hlofuse(*requested, "--format", "markdown").out
    report = json.loads(hlofuse(*requested, "--format", "json").out)
    kernels = report["modules"][0]["kernels"]
    assert {k["where"]["layer"] for k in kernels} == {"LM/layer_0", "LM/layer_1"}
    hlofuse("check", module, "--target", "cpu", "--baseline", baseline, "--update")
    assert "layer" not in baseline.read_text()
    module.write_text(LAYERED.replace("layer_", "block_"))
    repeated_call = hlofuse("check", module, "--target", "cpu", "--baseline", baseline, "--strict")
    assert repeated_call.status == 0, repeated_call.out


@pytest.mark.parametrize(("columns", "after"), [(64, "written"), (80, "back")])
def test_lines_end_at_the_terminal_s_width(hlofuse: Run, samples: Path, columns: int, after: str) -> None:
    text = samples / "cpu" / "gpt2_block", "--max-kernels", "3"
    wide, out = (hlofuse("check", *text, columns=n).out for n in (300, columns))
    lines = out.splitlines()
    assert len(max(wide.splitlines(), key=len)) > columns >= len(max(lines, key=len))
    assert out.split() == wide.split()
    refused = next(n for n, line in enumerate(lines) if "CPU005" in line)
    assert lines[refused + 1].startswith(" " * lines[refused].index("ynn_fusion.1") + after)
