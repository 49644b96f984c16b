"""The Cart-pole study: page, picture and dumps say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..running import Run, load_tool

ROOT = Path(__file__).parent.parent.parent
CARD = ("--target", "gpu", "--device", "rtx2080ti")


def test_the_page_and_its_picture_are_up_to_date() -> None:
    stale = [
        p.name for p, text in load_tool("cartpole").files().items() if p.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make cartpole`"


@pytest.mark.parametrize(("target", "programs"), [("cpu", 6), ("gpu", 7), ("gpu-legacy", 7)])
def test_xla_made_the_same_kernels(hlofuse: Run, samples: Path, target: str, programs: int) -> None:
    text = () if target == "cpu" else ("--device", "rtx2080ti")
    folder = samples / "cartpole" / target
    report = json.loads(hlofuse("verify", folder, "--target", target, *text, "--format", "json").out)
    assert [v["partition"] for v in report["verdicts"]] == [True] * programs


def test_why_says_on_which_side_of_the_concatenates_cost_a_pair_is(hlofuse: Run, samples: Path) -> None:
    folder = samples / "cartpole" / "gpu"
    hot = hlofuse("why", folder / "precomputed_noise", *CARD, "stack.29.0", "select_n.19.0").out
    assert "counts 400 operations per element, not 6: it concatenates along" in hot
    cheap = hlofuse("why", folder / "stacked_rows", *CARD, "stack.29.0", "select_n.19.0").out
    assert "fused" in cheap
    assert "400 operations" not in cheap


def test_the_commands_of_the_page_run(hlofuse: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "cartpole.md").read_text(encoding="utf-8")
    commands = [line.split()[1:] for line in page.splitlines() if line.startswith("    hlofuse ")]
    assert len(commands) == 4
    for text in commands:
        assert hlofuse(*text).status == 0, text


def test_the_card_is_not_xlas(hlofuse: Run) -> None:
    assert "origin = NVIDIA's published figures" in hlofuse("devices", "rtx2080ti").out
    assert "origin = XLA's target configurations" in hlofuse("devices", "v100").out
