"""`module.order_source`: one fact, from the command line to the ties that a report leaves open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.compilation import compile, replay_config
from hlofuse.inputs import load
from hlofuse.inputs.ordered import replay_input
from hlofuse.ir.copy import copy_module
from hlofuse.order import is_open, source_of
from hlofuse.pipelines import TARGETS
from ..running import Run

H100 = ("--device", "h100_sxm")


@pytest.mark.parametrize(
    ("order", "source"), [(None, "xla"), ("xla", "xla"), ("estimated", "estimated"), ("text", "text")]
)
def test_the_source_asked_for_is_in_force(samples: Path, order: str | None, source: str) -> None:
    module = load(samples / "gpu" / "softmax")
    config = replay_config("gpu", "h100_sxm")
    done = compile(replay_input(module, config, order=order), config)  # type: ignore[arg-type]
    assert done.order_source == source
    assert is_open(done.order_source) == (source in ("estimated", "text"))


def test_a_copy_keeps_its_source(samples: Path) -> None:
    module = load(samples / "gpu" / "softmax")
    module.order_source = "replayed"
    assert source_of(copy_module(module), TARGETS["gpu"]) == "replayed"
    assert compile(module, "gpu", device="h100_sxm").after.order_source == "replayed"


def test_on_cpu_the_order_is_the_texts(samples: Path) -> None:
    module = load(samples / "cpu" / "softmax")
    assert compile(module, "cpu").order_source == "text"


@pytest.mark.parametrize("command", ["replay", "verify", "explain"])
def test_a_source_that_cannot_be_had_is_an_error(
    hlofuse: Run, samples: Path, tmp_path: Path, command: str
) -> None:
    case = samples / "gpu" / "softmax"
    text = {"replay": ("-o", tmp_path / "x.hlo"), "verify": (case / "after.hlo",)}.get(command, ())
    result = hlofuse(command, case / "before.hlo", *text, *H100, "--order", "replayed")
    assert result.status == 2
    assert "--order replayed needs the module before optimizations" in result.err


def test_ids_of_a_file_are_xlas(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    case = samples / "gpu" / "softmax"
    bare = tmp_path / "bare.hlo"
    bare.write_bytes((case / "before.hlo").read_bytes())
    ids = ("--ids", case / "before.hlo.pb")
    text = ("replay", bare, *H100, "-o", tmp_path / "out.hlo")
    assert hlofuse(*text, "--order", "xla").status == 2
    assert hlofuse(*text, "--order", "xla", *ids).status == 0
    refused = hlofuse(*text, "--order", "text", *ids)
    assert refused.status == 2
    assert "--ids FILE needs --order xla" in refused.err


def test_only_an_estimate_leaves_ties_open(hlofuse: Run, samples: Path) -> None:
    text = ("explain", "--details", samples / "gpu" / "softmax", *H100, "--xla-trace", "none")
    for order, is_reported in (("xla", False), ("estimated", True), ("text", True)):
        assert ("a tie" in hlofuse(*text, "--order", order).out) == is_reported, order


def test_a_report_made_before_any_replay_names_the_same_source(hlofuse: Run, samples: Path) -> None:
    """`what-if` asks the input, `explain` the replay."""
    case = samples / "cartpole" / "gpu-legacy" / "no_concatenate"
    arguments = (case, "--target", "gpu-legacy", "--device", "a100_sxm_40", "--format", "json")
    orders = {json.loads(hlofuse(command, *arguments).out)["order"] for command in ("explain", "what-if")}
    assert orders == {"estimated"}
