"""Which one rule costs most, and what becomes of a module as knobs take other values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlofuse
from hlofuse.account import observed_replay
from hlofuse.compilation import Checkpoint, replay_config
from hlofuse.ir import Module, parse_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.printer import print_module
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.targets import passes_of
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.releases import release_of
from hlofuse.reports.comparison.model import compare_with_xla
from hlofuse.reports.verdict.candidates import UNKNOWN, of_rules
from hlofuse.reports.verdict.model import Suggestion
from hlofuse.rules.catalogue import catalogue
from ..fixtures import companion_texts
from ..tools.module_checks import verify_module

TEXTS = companion_texts(__file__)
# The root is dear and every row of the array reads it: CPU007 keeps it apart.
EXPENSIVE = TEXTS["expensive"]
# The same array shifted again and again: code would be copied 2, 4, 8… times.
SHIFTED = (
    "HloModule m\nENTRY e {\n  x0 = f32[1025] parameter(0)\n"
    + "".join(
        f"  a{k} = f32[{1024 - k}] slice(x{k}), slice={{[0:{1024 - k}]}}\n"
        f"  b{k} = f32[{1024 - k}] slice(x{k}), slice={{[1:{1025 - k}]}}\n"
        f"  x{k + 1} = f32[{1024 - k}] add(a{k}, b{k})\n"
        for k in range(6)
    )
    + "  ROOT r = f32[1019] negate(x6)\n}\n"
)
# Two kernels that have one number in common: GM004 keeps them apart.
ONE_NUMBER = TEXTS["one_number"]


def what_if(module: Module, target: str | None = None, *, device: Any = None, **how: Any) -> Any:
    """The answer of `Report.what_if`, on one device or several."""
    first, *others = device if isinstance(device, list) else [device]
    sweep = how.pop("sweep", None)
    report = hlofuse.open(module, target=target, device=first, **how)
    return report.what_if(sweep=sweep, also_device=others).data


def test_the_rule_that_costs_most_comes_first_with_what_it_blocks() -> None:
    found = what_if(parse_module(EXPENSIVE))
    assert found.after.kernels == 2
    best = found.relaxed[0]
    assert best.rule.code == "CPU007"
    assert best.trial.helps(found.after)
    assert (best.trial.kernels_saved, best.trial.bytes_saved) == (1, 2 * 4096)
    assert [b.producer.name for b in best.blocks] == ["d"]
    assert [(e.producer.name, e.consumer.name) for e in best.difference.fused] == [("d", "b")]
    assert best.difference.parted == ()


def test_every_rule_that_refused_is_relaxed_or_said_to_be_fixed(samples: Path) -> None:
    module = hlofuse.load(samples / "cpu" / "gpt2_block")
    refused = {e.rule for e in hlofuse.replay(module).events if e.event == "ineligible"}
    found = what_if(module)
    relaxed, fixed = [r.rule.code for r in found.relaxed], [f.rule.code for f in found.fixed]
    assert sorted(relaxed + fixed) == sorted(c for c in refused if c and not catalogue()[c].outcome)
    assert not any(catalogue()[c].essential for c in relaxed)
    assert all(catalogue()[c].essential for c in fixed)
    assert [r.trial.gain for r in found.relaxed] == sorted(
        (r.trial.gain for r in found.relaxed), reverse=True
    )


def test_a_rule_alone_is_what_disabling_it_gives(samples: Path) -> None:
    module = hlofuse.load(samples / "cpu" / "gpt2_block")
    row = next(r for r in what_if(module).relaxed if r.rule.code == "IF002")
    difference = compare_with_xla(observed_replay(module, replay_config("cpu", disable=["IF002"])))
    assert difference is not None
    assert difference.replayed == row.difference.replayed
    assert difference.fused == row.difference.fused
    assert difference.changes == ("without IF002",)


def test_a_rule_of_a_later_pass_alone_is_what_disabling_it_gives() -> None:
    module = parse_module(ONE_NUMBER)
    row = next(r for r in what_if(module, target="gpu", device="v100").relaxed)
    assert row.rule.code == "GM004"
    assert row.trial.kernels_saved == 1
    for recipe, is_named in (("update-as-one-vector", True), ("sum-once", False)):
        other = Suggestion("code", "", "", (), 1, UNKNOWN, recipe)
        (limit,) = of_rules(what_if(module, target="gpu", device="v100"), [other])
        assert (limit.recipe, "one vector" in limit.text) == (recipe * is_named, is_named)
    difference = compare_with_xla(observed_replay(module, replay_config("gpu", "v100", disable=["GM004"])))
    assert difference is not None
    assert difference.replayed == row.difference.replayed
    assert difference.fused == row.difference.fused


def test_a_replay_goes_on_from_where_another_was() -> None:
    module = parse_module(ONE_NUMBER)
    usual, other = replay_config("gpu", "v100"), replay_config("gpu", "v100", disable=["GM004"])
    checkpoint = Checkpoint("multi_output_fusion")
    first = hlofuse.replay(module, usual, checkpoint=checkpoint)
    second = hlofuse.replay(module, other, checkpoint=checkpoint)
    third = hlofuse.replay(module, usual, checkpoint=checkpoint)
    alone = hlofuse.replay(module, usual), hlofuse.replay(module, other)
    for shared, whole in ((first, alone[0]), (second, alone[1]), (third, first)):
        assert [(p.name, p.changed, p.events) for p in shared.passes] == [
            (p.name, p.changed, p.events) for p in whole.passes
        ]
        assert print_module(shared.after) == print_module(whole.after)
    assert first.events[0] is second.events[0]
    assert len(second.events) != len(first.events)


def test_a_sweep_is_a_grid_against_xla(samples: Path) -> None:
    module = hlofuse.load(samples / "gpu" / "gpt2_block")
    found = what_if(
        module,
        "gpu",
        device=["h100_sxm", "v100"],
        sweep={"launch_overhead_us": [0, 1], "l2_cache_size": [1e5]},
    )
    assert [(p.device, p.values) for p in found.points] == [
        ("h100_sxm", ("0", "100000.0")),
        ("h100_sxm", ("1", "100000.0")),
        ("v100", ("0", "100000.0")),
        ("v100", ("1", "100000.0")),
    ]
    assert not any(p.is_xla for p in found.points)
    for device, xla in zip(found.devices, found.xla, strict=True):
        own = hlofuse.explain(hlofuse.replay(module, "gpu", device=device))
        assert xla.kernels == own.after.kernels
    # The same decisions take so much less without launches.
    one, none = found.points[1].totals, found.points[0].totals
    assert one.us is not None
    assert none.us is not None
    assert none.us < one.us


def test_xlas_own_values_are_xla() -> None:
    found = what_if(parse_module(SHIFTED), sweep={"code-duplication-limit": [1, 15, 1000]})
    assert [p.is_xla for p in found.points] == [False, True, False]
    kernels = [p.totals.kernels for p in found.points]
    assert kernels[1] == found.xla[0].kernels
    assert kernels[0] > kernels[1] > kernels[2] == 1
    assert found.xla_values == (("15",),)
    # With something else changed as well not even XLA's value gives XLA.
    other = what_if(parse_module(SHIFTED), sweep={"code-duplication-limit": [15]}, disable=["CPU012"])
    assert [p.is_xla for p in other.points] == [False]


def test_what_every_relaxed_rule_leaves_is_a_sound_module(samples: Path) -> None:
    for target, device, folder in (("cpu", None, "cpu"), ("gpu", "h100_sxm", "gpu")):
        module = hlofuse.load(samples / folder / "gpt2_block")
        for code in (c for c, r in catalogue().items() if not r.fixed):
            after = hlofuse.replay(module, replay_config(target, device, disable=[code])).after
            assert verify_module(after) == [], code


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"code-duplicaton-limit": [1]}, "did you mean .*code-duplication-limit"),
        ({"code-duplication-limit": ["x"]}, "'x' is not a number"),
        ({"memory_bandwidth": [1]}, "no knob 'memory_bandwidth'"),
        ({"code-duplication-limit": range(1000)}, "combinations in a sweep"),
    ],
)
def test_wrong_sweeps(sweep: dict[str, list[float]], message: str) -> None:
    with pytest.raises(HlofuseError, match=message):
        what_if(parse_module(EXPENSIVE), sweep=sweep)


@pytest.mark.parametrize("target", [t for t in TARGETS.values() if t.optional_passes])
def test_what_a_target_leaves_out_can_be_added(target: object) -> None:
    assert isinstance(target, type(TARGETS["cpu"]))
    device = "h100_sxm" if target.needs_device else None
    for optional_pass in target.optional_passes:
        for name in (
            optional_pass.name,
            optional_pass.passes[0],
            *(f"{f}001" for f in optional_pass.families),
        ):
            config = replay_config(target.name, device, enable=[name])
            release = release_of(target.release) if target.release else RELEASE
            passes = passes_of(target.name, release)
            assert config.passes == (*passes, *optional_pass.passes)
            assert config.changes == (f"with {name}",)
            assert config.xla is not None
            assert config.xla.passes == passes
    with pytest.raises(HlofuseError, match="--enable takes"):
        replay_config(target.name, device, enable=["PF040"])
