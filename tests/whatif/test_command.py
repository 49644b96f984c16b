"""`hlofuse what-if`, and what the other commands say of a what-if run."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import hlofuse
from hlofuse.reports.whatif.text import print_sweep
from ..running import Golden, Run

LIMIT = ("--sweep", "code-duplication-limit=1,15,100")


def test_the_ranking(hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(samples)
    for target in ("cpu", "gpu"):
        more = ("--device", "h100_sxm") if target == "gpu" else ()
        found = hlofuse("what-if", f"{target}/gpt2_block", *more, columns=100)
        assert (found.status, found.err) == (0, "")
        golden(f"what-if/{target}_gpt2_block.txt", found.out)
    golden("what-if/softmax.md", hlofuse("what-if", "cpu/softmax", "--format", "markdown").out)
    golden("what-if/softmax.json", hlofuse("what-if", "cpu/softmax", "--format", "json").out)


def test_the_sweep(hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(samples)
    wide = ("what-if", "gpu/gpt2_block", "--device", "h100_sxm", "--also-device", "v100")
    sweep = ("--sweep", "launch_overhead_us=0,1,4")
    golden("what-if/launch.txt", hlofuse(*wide, *sweep, columns=100).out)
    golden("what-if/launch.md", hlofuse(*wide, *sweep, "--format", "markdown").out)
    found = hlofuse("what-if", "cpu/gpt2_block", *LIMIT, "--format", "json")
    document = json.loads(found.out)
    assert (document["schema"], document["about"]) == ("hlofuse.what-if/3", "sweep")
    assert [p["is_xla"] for p in document["points"]] == [False, True, False]


def test_a_sweep_cuts_no_figure_off(samples: Path) -> None:
    """The figures stand next to their knobs exactly where the whole table has room, and else below."""
    sweep: Any = {
        "memory_bandwidth": [2e12],
        "gpu-code-duplication-limit": [10, 15],
        "launch_overhead_us": [0, 4],
    }
    report = hlofuse.open(samples / "gpu/softmax", device="h100_sxm")
    swept = report.what_if(sweep=sweep, also_device=["v100"]).data

    def lines(width: int) -> list[str]:
        with io.StringIO() as file:
            print_sweep(swept, Console(file=file, width=width, color_system=None))
            return [line.rstrip() for line in file.getvalue().splitlines()]

    table = [line for line in lines(400) if line.startswith("  ")]
    width = max(map(len, table))
    for columns in (60, *range(width - 9, width + 3)):
        out = "\n".join(found := lines(columns))
        assert out.count("898048000000") == 2  # the bandwidth of a V100: above the table and in it
        assert len(re.findall(r"µs \([+−]\d+%\)", out)) == 8
        assert (found[-len(table) :] == table) == (columns >= width)


def test_a_rule_and_its_figures_fit_on_a_line(hlofuse: Run, samples: Path) -> None:
    lines = hlofuse("what-if", samples / "cpu/gpt2_block", columns=80).out.splitlines()
    heading = next(k for k, line in enumerate(lines) if line.split()[:2] == ["kernels", "launches"])
    assert re.match(r"  1 +[−+±]", lines[heading + 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (("--sweep", "code-duplication-limit"), "expected NAME=VALUE,VALUE"),
        (("--sweep", "code-duplication-limit=1,,2"), "expected NAME=VALUE,VALUE"),
        ((*LIMIT, *LIMIT), "given twice"),
        (("--also-device", "v100"), "needs --sweep"),
        (("--disable", "CPU005"), "cannot be disabled"),
        (("--disable", "CPU077"), "did you mean CPU0"),
        (("--passes", "fusion, fuson-wrapper"), "has no pass 'fuson-wrapper'"),
        (("--passes", "fixpoint(fusion"), "a parenthesis is missing"),
        (("--enable", "horizontal"), "--enable takes multi-output"),
        (("--set", "code-duplication-limit"), "expected NAME=VALUE"),
        (("--set", "code-duplication-limit=nan"), "'nan' is not a number"),
    ],
)
def test_wrong_words(text: tuple[str, ...], message: str, hlofuse: Run, samples: Path) -> None:
    result = hlofuse("what-if", samples / "cpu" / "softmax", *text)
    assert result.status == 2
    assert message in result.err
    assert result.out == ""


def test_the_knobs_are_listed(hlofuse: Run) -> None:
    listed = hlofuse("what-if", "--knobs").out
    for name in ("code-duplication-limit", "gpu-max-operands-and-outputs", "launch_overhead_us"):
        assert name in listed


@pytest.mark.parametrize("command", [("explain", "--details"), ("why", "divide"), ("stats",)])
def test_every_report_says_first_that_it_is_not_xla(
    command: tuple[str, ...], hlofuse: Run, samples: Path
) -> None:
    name, *more = command
    phrase = [
        name,
        *(["--details"] if name == "explain" else []),
        samples / "cpu" / "softmax",
        *more,
        "--disable",
        "CPU007",
    ]
    text = hlofuse(*phrase).out
    assert "Settings differ from XLA's: without CPU007.\n" in text[:200]
    assert "4 → 3 kernels (−25%)" in text
    assert "divide → broadcast.1" in text
    markdown = hlofuse(*phrase, "--format", "markdown").out
    assert any(
        part.startswith("> **Settings differ from XLA's: without CPU007.**")
        for part in markdown.split("\n\n")[:5]
    )
    difference = json.loads(hlofuse(*phrase, "--format", "json").out)["difference"]
    assert (difference["xla"]["kernels"], difference["ours"]["kernels"]) == (4, 3)
    assert [e["producer"]["name"] for e in difference["fused"]] == ["divide"]
    assert "difference" not in json.loads(hlofuse(*phrase[:-2], "--format", "json").out)


def test_pictures_and_modules_say_so_too(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    path = samples / "cpu" / "softmax"
    picture = tmp_path / "p.dot"
    assert hlofuse("render", path, "--disable", "CPU007", "-o", picture).status == 0
    assert "Settings differ from XLA&#39;s: without CPU007." in picture.read_text()
    written = hlofuse("replay", path, "--disable", "CPU007", "-o", tmp_path / "m.hlo")
    assert "settings differ from XLA's: without CPU007" in written.err


def test_xlas_record_is_followed_by_replay_only_when_asked_for(
    hlofuse: Run, samples: Path, tmp_path: Path
) -> None:
    folder = samples / "cartpole" / "gpu" / "unrolled_10"
    text = ["replay", folder, "--device", "h100_sxm", "--order", "estimated", "-o"]
    assert hlofuse(*text, tmp_path / "plain.hlo").status == 0
    record = folder / "priority_fusion.txtpb.gz"
    assert hlofuse(*text, tmp_path / "followed.hlo", "--xla-trace", record).status == 0
    # Without ids the order of equal steps shows in the names of fusions.
    assert (tmp_path / "plain.hlo").read_text() != (tmp_path / "followed.hlo").read_text()
    refused = hlofuse("what-if", folder, "--device", "h100_sxm", "--xla-trace", record)
    assert refused.status == 2
    assert "cannot follow an --xla-trace" in refused.err


def test_passes_in_another_order_or_to_a_fixpoint(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    path = samples / "cartpole" / "cpu" / "baseline"
    names = []
    for number, passes in enumerate(
        ("fusion,fusion-wrapper", "fusion-wrapper,fusion", "fixpoint(fusion, fusion-wrapper)")
    ):
        trace = tmp_path / f"{number}.jsonl"
        hlofuse("replay", path, "--passes", passes, "-o", tmp_path / "o.hlo", "--trace", trace)
        events = map(json.loads, trace.read_text().splitlines())
        names.append(list(dict.fromkeys(e["pass"] for e in events)))
    assert names[0] == ["fusion", "fusion-wrapper"]
    assert names[1] == ["fusion-wrapper", "fusion"]
    assert names[2][:2] == ["fusion", "fusion-wrapper"]
