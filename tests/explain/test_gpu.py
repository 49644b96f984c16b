"""What a reader is told about GPU fusion: times, the record, two devices, and how it looks."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from hlofuse.account import PairDetail, observed_replay
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.format.terminal import Page
from hlofuse.inputs import load
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir.record import replace
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.explain.model import Explanation
from hlofuse.reports.explain.phrases import notes
from hlofuse.reports.explain.text import print_timed_kernel
from hlofuse.reports.why import PairAnswer
from hlofuse.reports.why.story import answers, why_each
from hlofuse.trace.priority_record import read_priority_record
from ..fixtures import companion_texts
from ..running import Golden, Run

TEXTS = companion_texts(__file__)

H100 = ("--target", "gpu", "--device", "h100_sxm")
SAMPLES = ("softmax", "gpt2_block", "../cartpole/gpu/baseline", "../cartpole/gpu/precomputed_noise")


def card(name: str) -> str:
    """The device a sample was compiled for."""
    return "rtx2080ti" if "cartpole" in name else "h100_sxm"


def compiled_for(name: str) -> tuple[str, ...]:
    return ("--target", "gpu", "--device", card(name))


def explained(folder: Path) -> Explanation:
    observed = observed_replay(load(folder), replay_config("gpu", card(str(folder))))
    return explain(observed.replay, costs=observed.costs)


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("name", ["softmax", "gpt2_block", "../cartpole/gpu/no_concatenate"])
def test_text(
    hlofuse: Run, golden: Golden, samples: Path,
    monkeypatch: pytest.MonkeyPatch, name: str, columns: int,
) -> None:  # fmt: skip
    monkeypatch.chdir(samples / "gpu")
    result = hlofuse("explain", name, *compiled_for(name), "--details", "--limit", 4, columns=columns)
    assert (result.status, result.err) == (0, "")
    golden(f"explain/gpu_{name.replace('../cartpole/gpu/', 'cartpole_')}.{columns}.txt", result.out)
    lines = result.out.split("\n")
    assert all(len(line) <= columns for line in lines if not line.lstrip().startswith("hlofuse "))


def test_other_reports(hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(samples / "gpu")
    for form, ending in (("markdown", "md"), ("json", "json")):
        golden(f"explain/gpu_softmax.{ending}", hlofuse("explain", "softmax", *H100, "--format", form).out)
    golden("why/gpu_fused.txt", hlofuse("why", "gpt2_block", *H100, "mul.27.0", "tanh.1.0").out)
    golden("verify/gpu.txt", hlofuse("verify", ".", *H100, "-j", 1, "--ties", "xla").out)


@pytest.mark.parametrize("name", SAMPLES)
def test_steps_add_up_to_the_totals(samples: Path, name: str) -> None:
    """What each step saved is the difference of the totals, but for what CSE and merging save later."""
    e = explained(samples / "gpu" / name)
    assert e.before.us is not None
    assert e.after.us is not None
    saved = sum(g.us_saved or 0.0 for p in e.passes for g in p.fused)
    before, after = (t.us - t.host_wait_us for t in (e.before, e.after) if t.us is not None)
    assert saved == pytest.approx(before - after, rel=0.1)


@pytest.mark.parametrize("name", SAMPLES)
def test_xlas_record_is_followed(hlofuse: Run, samples: Path, name: str) -> None:
    text = ("explain", samples / "gpu" / name, *compiled_for(name), "--format", "json")
    report = json.loads(hlofuse(*text).out)
    assert report["record"]["agreed"] == report["record"]["records"] > 0
    assert report["record"]["disagreements"] == []


def test_ties_are_marked_only_without_ids(hlofuse: Run, samples: Path) -> None:
    folder = samples / "gpu" / "softmax"
    text = ("explain", folder, *H100, "--details", "--xla-trace", "none")
    assert "tie: XLA may have fused" in hlofuse(*text, "--order", "estimated").out
    assert "a tie" not in hlofuse(*text).out


def test_a_record_settles_the_ties_of_both_sides_of_a_what_if(samples: Path) -> None:
    """Else the difference between the two would hold ties as well."""
    folder = samples / "gpu" / "softmax"
    record = read_priority_record((folder / "priority_fusion.txtpb").read_text())
    config = replay_config("gpu", "h100_sxm", overrides=("memory_bandwidth=1000000000000",))
    observed = observed_replay(CompilationInput(load(folder), record=record), config)
    assert observed.xla is not None
    assert observed.xla.replay.recorded_order is not None
    assert observed.xla.replay.recorded_order.agreed == len(record.steps)


def test_why_gives_the_sums_of_the_moment(samples: Path) -> None:
    module = load(samples / "gpu" / "softmax")
    ids = unique_ids_for(module)
    observed = observed_replay(CompilationInput(module, ids), replay_config("gpu", "h100_sxm"))
    answer = answers(observed.replay, "triton_softmax.3", "exp.1.0", costs=observed.costs)[0]
    assert isinstance(answer, PairAnswer)
    assert answer.cost is not None
    # As in XLA's record.
    assert answer.cost.us_fused == pytest.approx(3.57225)
    assert answer.cost.us_unfused == pytest.approx(7.07475)


def test_many_pairs_are_told_as_each_alone(samples: Path) -> None:
    observed = observed_replay(load(samples / "gpu" / "gpt2_block"), replay_config("gpu", "h100_sxm"))
    facts = Facts(observed.replay, observed.costs)
    pairs = [(i.name, u.name) for i in facts.before.values() for u in i.users if i.opcode != "parameter"]
    reported = why_each(pairs, facts)
    assert {pair.outcome for pair in reported} >= {"fused", "refused"}
    for names, pair in list(zip(pairs, reported, strict=True))[::7]:
        assert pair == answers(observed.replay, *names, costs=observed.costs)[0]


def test_a_gpu_module_without_a_device_or_target(hlofuse: Run, deviceless: Path) -> None:
    missing = hlofuse("explain", deviceless, "--target", "gpu")
    assert missing.status == 2
    assert "--device" in missing.err
    unsaid = hlofuse("explain", deviceless)
    assert unsaid.status == 2
    assert "target gpu (" in unsaid.err
    assert "--device" in unsaid.err
    foreign = hlofuse("explain", deviceless, "--target", "cpu")
    assert foreign.status == 0
    assert "Note: the module is for GPU" in foreign.out


TOO_EXPENSIVE = TEXTS["too_expensive"]


def test_what_does_not_pay_is_told_with_its_price(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "dear.hlo"
    file.write_text(TOO_EXPENSIVE)
    report = json.loads(hlofuse("explain", file, *H100, "--format", "json").out)
    (refused,) = [r for p in report["passes"] for r in p["refused"] if r["rule"] == "PF032"]
    assert refused["us_at_stake"] == pytest.approx(
        refused["figures"]["us_unfused"] - refused["figures"]["us_fused"], abs=1e-4
    )
    answer = hlofuse("why", file, *H100, refused["producer"]["name"], refused["consumer_then"])
    assert "it would cost time" in answer.out
    assert "computed 512 times" in answer.out
    assert "fusing them would pay with" in answer.out
    file.write_text(TOO_EXPENSIVE.replace("512", "4096"))
    answer = hlofuse("why", file, *H100, refused["producer"]["name"], refused["consumer_then"])
    assert "computed 4,096 times" in answer.out


@pytest.mark.parametrize(("rows", "separate"), [(19, "t"), (20, "fusion.1")])
def test_it_stops_paying_at_the_row_at_which_xla_stops(
    rows: int, separate: str, hlofuse: Run, tmp_path: Path
) -> None:
    """XLA for an H100 fuses the exp into the sum of 19 rows; of 20 it leaves it with the tanh."""
    file = tmp_path / "nearly.hlo"
    file.write_text(TOO_EXPENSIVE.replace("512", str(rows)))
    report = json.loads(hlofuse("explain", file, *H100, "--format", "json").out)
    refused = [(r["rule"], r["producer"]["input_name"]) for p in report["passes"] for r in p["refused"]]
    assert [name for rule, name in refused if rule == "PF032"] == [separate]


def cost_of(samples: Path, name: str, producer: str, consumer: str) -> PairDetail:
    module = load(samples / "gpu" / name)
    ids = unique_ids_for(module)
    observed = observed_replay(CompilationInput(module, ids), replay_config("gpu", "h100_sxm"))
    answer = answers(observed.replay, producer, consumer, costs=observed.costs)[0]
    assert isinstance(answer, PairAnswer)
    assert answer.cost is not None
    return answer.cost


@pytest.mark.parametrize(
    ("name", "producer", "consumer"),
    [
        ("softmax", "triton_softmax.3", "exp.1.0"),
        ("gpt2_block", "fusion.28", "triton_softmax.6"),
        ("gpt2_block", "mul.27.0", "tanh.1.0"),
    ],
)
def test_operands_add_up_to_what_is_read(samples: Path, name: str, producer: str, consumer: str) -> None:
    """Tiled or not: bytes are those of the estimate, and reading is a part of the time for memory."""
    cost = cost_of(samples, name, producer, consumer)
    fused = cost.cost.fused
    assert sum(r.read for r in cost.fused_reads) == fused.bytes_read
    assert 0 < sum(r.us for r in cost.fused_reads) < fused.us_memory
    assert (fused.emitter == "triton") == bool(fused.tile_sizes)


def test_turning_points_of_a_triton_pair_are_true(hlofuse: Run, samples: Path) -> None:
    """Replayed with the number at its turning point the decision is the other one; just before it is not."""
    cost = cost_of(samples, "gpt2_block", "fusion.28", "triton_softmax.6")
    flip = next(f for f in cost.flips if f.number == "memory_bandwidth")
    for value, outcome in ((flip.value, "does not pay"), (flip.value * 1.05, "fused")):
        text = ("why", samples / "gpu/gpt2_block", *H100, "fusion.28", "triton_softmax.6")
        report = json.loads(hlofuse(*text, "--set", f"{flip.number}={value:.0f}", "--format", "json").out)
        assert report["outcome"] == outcome


def test_multi_output_fusions_have_times(samples: Path) -> None:
    e = explained(samples / "cartpole/gpu/no_concatenate")
    (story,) = [p for p in e.passes if p.name == "multi_output_fusion"]
    for step in (s for g in story.fused for s in g.steps):
        assert step.us_saved == pytest.approx(1.0, abs=0.1)  # a launch each, and hardly anything else


SUM = TEXTS["sum"]


def test_what_only_a_constant_joined_keeps_its_story(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "sum.hlo"
    file.write_text(SUM)
    out = hlofuse("why", file, *H100, "sum").out
    assert "is gone" not in out
    assert "\nsum.1 runs in " in out
    assert "sum is named sum.1 at the fusion input" in out


def test_one_user_that_refuses_keeps_the_producer_from_all(hlofuse: Run, samples: Path) -> None:
    """A call that has no room for it is asked about; the other user hears that it was that one."""
    folder = samples / "cartpole" / "gpu" / "baseline"
    how = ("--device", "rtx2080ti", "--order", "estimated", "--xla-trace", "none", "--format", "json")
    report = json.loads(hlofuse("why", folder, "fusion.4", "get-tuple-element", *how).out)
    assert (report["outcome"], report["settled_by"]["rule"], report["said_of"]) == (
        "refused",
        "PF003",
        "threefry2x32.37",
    )
    reported = json.loads(hlofuse("explain", folder, *how).out)
    assert [o["rule"] for o in reported["obstacles"]] == ["PF003", "PF002", "GM015"]


SUM_OF_SUM = TEXTS["sum_of_sum"]


def test_one_thread_is_one(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "sums.hlo"
    file.write_text(SUM_OF_SUM)
    answer = hlofuse("why", file, *H100, "sum", "r", "--details")
    assert "runs on 1 thread instead of 32" in " ".join(answer.out.split())


def test_exponentials_are_told_of_where_their_number_shows(samples: Path) -> None:
    """A few more of many thousand read as the same number."""
    e = explained(samples / "gpu" / "softmax")

    def reported(before: int, after: int) -> list[str]:
        totals = [
            replace(t, cost=t.cost._replace(transcendentals=n))
            for t, n in ((e.before, before), (e.after, after))
        ]
        return [n for n in notes(replace(e, before=totals[0], after=totals[1])) if "transcendental" in n]

    assert reported(51_400, 51_410) == []
    assert reported(51_400, 51_500) == [
        "51.4 k → 51.5 k transcendental operations: some are computed in two kernels"
    ]


def test_a_fusion_says_what_it_and_its_equals_save_or_cost(samples: Path) -> None:
    (created,) = [g for story in explained(samples / "gpu" / "softmax").passes for g in story.fused]
    for us, moved, equals, text in (
        (10.25, -17_300, (), "  saves 10.25 µs, 17.3 kB more traffic"),
        (0.0, 1000, (), "  saves 0 µs, 1.00 kB  "),
        (-2.0, 1000, ("x", "y"), " ×3  costs 6.00 µs, saves 3.00 kB  "),
        (None, 1000, ("x",), " ×2  saves 2.00 kB  "),
        (2.0, -1000, ("x",), " ×2  saves 4.00 µs, 2.00 kB more traffic"),
    ):
        out = io.StringIO()
        changed = replace(created, bytes_saved=moved, us_saved=us, equivalents=equals)
        print_timed_kernel(changed, Page(file=out, width=100))
        assert created.fusion.shown + text in out.getvalue()
