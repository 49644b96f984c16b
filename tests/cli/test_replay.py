"""`hlofuse replay`, `hlofuse rule`, `hlofuse targets` as a user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir import parse_module
from hlofuse.reports.advice.catalogue import RECIPES
from hlofuse.reports.verify.verify import verify_module
from ..fixtures import read_cases
from ..running import Golden, Run

AFTER_FUSION = Path(__file__).parent.parent / "passes" / "after_fusion.hlo"


def sample(samples: Path) -> Path:
    return samples / "cpu" / "softmax" / "before.hlo"


def test_the_module_and_its_trace_are_written(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    out, trace = tmp_path / "out.hlo", tmp_path / "trace.jsonl"
    result = hlofuse("replay", sample(samples), "-o", out, "--trace", trace)
    assert (result.status, result.out) == (0, "")
    after = parse_module(sample(samples).with_name("after.hlo").read_text())
    before = CompilationInput(parse_module(sample(samples).read_text()))
    assert verify_module(before, after, replay_config("cpu")).exact
    assert [i.name for i in parse_module(out.read_text()).entry] == [i.name for i in after.entry]
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    assert events
    for event in events:
        assert event["event"] in ("fuse", "ineligible", "rewrite")
        assert {"pass", "computation", "step", "rule"} <= event.keys()
        if event["event"] == "fuse":
            assert {"producer", "consumer", "fusion", "kind", "created", "duplicated"} <= event.keys()
        elif event["event"] == "ineligible":
            assert {"producer", "consumer", "reason"} <= event.keys()
        else:
            assert {"from", "to"} <= event.keys()
    for name in ("fusion", "fusion-wrapper"):
        steps = [e["step"] for e in events if e["pass"] == name]
        assert steps == list(range(1, len(steps) + 1))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.hlo", "trace.jsonl"]


def test_modules_after_each_pass(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "passes"
    result = hlofuse("replay", sample(samples), "-o", tmp_path / "out.hlo", "--keep-passes", folder)
    assert result.status == 0
    remaining = sorted(folder.iterdir())
    assert remaining
    assert remaining[-1].read_text() == (tmp_path / "out.hlo").read_text()
    assert remaining[0].name == "01-fusion.hlo"


def test_standard_input_and_output(hlofuse: Run, samples: Path) -> None:
    result = hlofuse("replay", "-", "-o", "-", stdin=sample(samples).read_bytes())
    assert result.status == 0
    assert parse_module(result.out).entry.root is not None


def test_a_wrong_call_writes_nothing(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.hlo"
    for arguments, text in (
        (["--target", "tpu"], "no target 'tpu'"),
        (["--option", "mof"], "no option 'mof'; expected one of multi-output"),
        (["--set", "code-duplication-limit=x"], "'x' is not a number"),
        (["--disable", "IF999"], "no rule 'IF999'"),
        (["--disable", "QQQ"], "no rule 'QQQ' (hlofuse rule lists them)"),
        (["--device", "h101"], "no device 'h101'; expected one of a100_pcie_80, "),
        (["--device", "H100"], "no device 'H100'; did you mean h100_pcie or h100_sxm?"),
        (["--device", "epyc_2_threads"], "set HLOFUSE_CPU=epyc_2_threads in the environment"),
        (["--device", str(sample(samples))], "before.hlo: not a device file: line 1: unexpected ','"),
        (["--module", "nope"], "--module"),
    ):
        result = hlofuse("replay", sample(samples), "-o", out, *arguments)
        assert result.status == 2
        assert text in result.err
        assert "Traceback" not in result.err
        assert not out.exists()


def test_a_fused_module_is_repeated_only_if_one_insists(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    after = sample(samples).with_name("after.hlo")
    result = hlofuse("replay", after, "-o", tmp_path / "out.hlo")
    assert result.status == 2
    assert "is a fused module" in result.err
    assert "--assume-input" in result.err
    assert f"next to it: {sample(samples)}" in result.err
    assert not (tmp_path / "out.hlo").exists()
    quiet = hlofuse("replay", after, "-o", tmp_path / "out.hlo", "--assume-input")
    assert (quiet.status, "note" in quiet.err) == (0, False)


def test_a_rule_page(hlofuse: Run, golden: Golden) -> None:
    golden("rule/CPU012.txt", hlofuse("rule", "cpu012").out)
    golden("rule/CPU012.md", hlofuse("rule", "CPU012", "--format", "markdown").out)
    entry = json.loads(hlofuse("rule", "CPU012", "--format", "json").out)
    assert entry["schema"] == "hlofuse.rules/3"
    assert [r["code"] for r in entry["rules"]] == ["CPU012"]


def test_the_list_of_rules(hlofuse: Run) -> None:
    listed = hlofuse("rule").out
    for code in ("IF001", "CPU017", "FW008", "MO023", "CS004", "DC004", "TS002"):
        assert code in listed
    family = hlofuse("rule", "FW").out
    assert "FW001" in family
    assert "CPU001" not in family
    assert "| [FW001](#FW001) |" in hlofuse("rule", "FW", "--format", "markdown").out


def test_a_mistyped_rule_gets_suggestions(hlofuse: Run) -> None:
    result = hlofuse("rule", "CPU112")
    assert result.status == 2
    assert "did you mean CPU012" in result.err


def test_recipes(hlofuse: Run) -> None:
    listed = hlofuse("recipe").out
    found = json.loads(hlofuse("recipe", "--format", "json").out)["recipes"]
    assert {r["name"] for r in found} == {r.name for r in RECIPES}
    assert all(f"\n{r['name']} " in listed for r in found)
    assert all(max(len(r["before"]), len(r["after"])) <= 100 for r in found), "a line under a suggestion"
    page = hlofuse("recipe", "take-first").out
    assert "\n  (x @ w)[ids]\n" in page
    assert re.search(r"\n  h100_sxm, XLA 0\.11\.1: \d+ → \d+ kernels, ", page)
    assert "|" not in page.partition("Figures")[2], "no table of Markdown"
    unknown = hlofuse("recipe", "attention-by-cudnn").out.partition("Figures")[2]
    assert "7 → 1 launches\n" in unknown, "figures that are not known are left out"
    assert "\n| h100_sxm |" in hlofuse("recipe", "take-first", "--format", "markdown").out
    result = hlofuse("recipe", "take-frist")
    assert (result.status, "did you mean take-first" in result.err) == (2, True)


def test_targets(hlofuse: Run, golden: Golden) -> None:
    golden("targets.txt", hlofuse("targets").out)
    targets = {t["name"]: t for t in json.loads(hlofuse("targets", "--format", "json").out)["targets"]}
    assert targets["cpu"]["passes"] == ["fusion", "fusion-wrapper"]
    assert "priority-fusion" in targets["gpu"]["passes"]
    assert "## cpu · XLA:CPU" in hlofuse("targets", "--format", "markdown").out
    passes = hlofuse("targets", "--verbose", "--format", "json").out
    compiled = {t["name"]: t["compilation"] for t in json.loads(passes)["targets"]}
    assert compiled["cpu"][1:3] == ["strip-memory-placement-annotations", "shardy-xla"]
    assert compiled["gpu"].index("layout-assignment") < compiled["gpu"].index("priority-fusion")
    assert compiled["gpu-legacy"][-1] == "dce"
    assert "[control-dep-rewriter]" in hlofuse("targets", "--verbose").out


def test_up_to_the_kernels_that_are_launched(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    before = samples / "gpu" / "gpt2_block" / "before.hlo"
    out, trace = tmp_path / "out.hlo", tmp_path / "trace.jsonl"
    given = ("replay", before, "--target", "gpu", "--device", "h100_sxm", "-o", out)
    assert hlofuse(*given).status == 0
    fused = {i.name for i in parse_module(out.read_text()).entry if i.opcode == "fusion"}
    assert hlofuse(*given, "--until", "end", "--trace", trace).status == 0
    final = {i.name for i in parse_module(out.read_text()).entry if i.fusion_kind in ("kLoop", "kInput")}
    assert final
    assert all(name.startswith(("loop_", "input_", "wrapped_")) for name in final)
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    renamed = {e["from"][0]: e["to"][0] for e in events if e["pass"] == "rename_fusions"}
    assert final <= set(renamed.values())
    assert set(renamed) <= fused


def test_where_the_passes_after_fusion_are_not_known(hlofuse: Run, samples: Path) -> None:
    before = samples / "gpu" / "gpt2_block" / "before.hlo"
    for target, device in (("gpu-legacy", "h100_sxm"), ("gpu", "mi300x")):
        result = hlofuse(
            "replay", before, "--target", target, "--device", device, "--until", "end", "-o", "-"
        )
        assert result.status == 2
        assert f"target {target} on {device}; give --until fusion" in " ".join(result.err.split())


def test_from_the_end_of_fusion_to_the_kernels(hlofuse: Run, tmp_path: Path) -> None:
    case = next(c for c in read_cases(AFTER_FUSION) if c.name == "several_heroes")
    fused, out, trace = tmp_path / "fused.hlo", tmp_path / "out.hlo", tmp_path / "trace.jsonl"
    fused.write_text(case.text)
    given = ("replay", fused, "--target", "gpu", "--device", "h100_sxm", "-o", out)
    refused = hlofuse(*given)
    assert refused.status == 2
    assert "is a fused module" in refused.err
    result = hlofuse(*given, "--until", "end", "--trace", trace)
    assert result.status == 0
    assert "swap the numbers" in result.err
    assert [i.name for i in parse_module(out.read_text()).entry] == ["x", "y", "loop_divide_subtract_fusion"]
    passes = [json.loads(line)["pass"] for line in trace.read_text().splitlines()]
    assert passes == ["rename_fusions", "tuple-simplifier"]
    assert hlofuse("replay", fused, "--target", "gpu", "--until", "end", "-o", out).status == 2
