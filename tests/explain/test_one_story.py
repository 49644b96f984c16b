"""`explain` and `why` tell one story: the rule that keeps two kernels apart is the same in both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlofuse.account import observed_replay
from hlofuse.account.replaying import final_account
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.inputs import load
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir import parse_module
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.explain.model import Explanation
from hlofuse.reports.why import PairAnswer
from hlofuse.reports.why.story import answers, in_the_input
from ..fixtures import companion_texts, unpacked
from ..running import Run

TEXTS = companion_texts(__file__)

DATA = Path(__file__).parents[1] / "data" / "gpu.tar.xz"
PROGRAMS = (
    "row_col_reductions",
    "batch_norm_train",
    "gpt2_block",
    "scan_update_buffer",
    "mlp",
    "softmax_column",
    "lstm_scan",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(DATA, tmp_path_factory.mktemp("packed"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_obstacle_is_what_why_answers(corpus: Path, name: str) -> None:
    folder = next(p.parent for p in corpus.rglob(f"h100_sxm/{name}/before.hlo"))
    observed = observed_replay(load(folder), replay_config("gpu", "h100_sxm"))
    reported = [(o.rule.code, r) for o in explain(observed.replay, costs=observed.costs).blocking_rules
            for r in o.refusals]  # fmt: skip
    assert reported
    for code, r in reported:
        answer = answers(observed.replay, r.producer.name, r.consumer_then)[0]
        assert isinstance(answer, PairAnswer)
        assert answer.outcome in ("refused", "does not pay"), (r.producer.name, r.consumer_then)
        assert answer.settled_by is None or answer.settled_by.rule.code == code


def with_ids(folder: Path) -> CompilationInput:
    """The module as it enters the fusion passes, with XLA's ids."""
    module = load(folder)
    return CompilationInput(module, unique_ids_for(module))


def test_the_pair_that_is_shown_is_the_pair_to_ask_about(hlofuse: Run, samples: Path) -> None:
    folder = str(samples / "gpu" / "gpt2_block")
    lines = hlofuse("explain", folder, "--details", "--device", "h100_sxm", columns=60).out.splitlines()
    shown = next(k for k, line in enumerate(lines) if line.startswith("  PF031  Only bitcasts"))
    pair = re.sub(r"\S+ \((\S+)\)", r"\1", " ".join(lines[shown + 1 : shown + 3]))
    producer, arrow, consumer = pair.split()[:3]
    assert arrow == "→"
    command = next(line for line in lines[shown:] if " why " in line)  # however long, on one line
    assert command.split() == ["hlofuse", "why", folder, "--device", "h100_sxm", producer, consumer]
    answer = hlofuse(*command.split()[1:]).out
    assert f"({producer}) was not fused into {consumer}.\n  PF031" in answer


def test_a_view_is_no_kernel_to_compare_with(samples: Path) -> None:
    run = observed_replay(with_ids(samples / "gpu" / "gpt2_block"), replay_config("gpu", "h100_sxm"))
    of_view = answers(run.replay, "fusion.21", "bitcast.50.0", costs=run.costs)[0]
    assert isinstance(of_view, PairAnswer)
    assert (of_view.outcome, of_view.cost) == ("refused", None)


BITCAST = TEXTS["bitcast"]


def explained(text: str) -> tuple[Explanation, PairAnswer]:
    observed = observed_replay(parse_module(text), replay_config("gpu", "h100_sxm"))
    answer = answers(observed.replay, "s", "c", costs=observed.costs)[0]
    assert isinstance(answer, PairAnswer)
    return explain(observed.replay, costs=observed.costs), answer


def test_a_value_read_as_a_view_is_between_the_two_kernels() -> None:
    found, answer = explained(BITCAST)
    assert [(r.kernel, r.consumer) for o in found.blocking_rules for r in o.refusals] == [("s", "c")]
    assert answer.outcome == "refused"


LOOP = TEXTS["loop"]


@pytest.mark.parametrize(("config", "iterations"), [('{"known_trip_count":{"n":"7"}}', 7), ("{}", 1)])
def test_a_loop_counts_as_often_as_it_runs(config: str, iterations: int) -> None:
    text = LOOP.replace("CONFIG", config)
    if iterations == 1:  # what does not count is of unknown length
        text = text.replace("= s32[] add(", "= s32[] multiply(")
    observed = observed_replay(parse_module(text), replay_config("gpu", "h100_sxm"))
    found = explain(observed.replay, costs=observed.costs)
    # The condition is one kernel more where it is evaluated.
    assert [(p.kernels, p.trips) for p in found.loops] == [(2, 7) if iterations > 1 else (3, None)]
    in_loop = next(k for k in found.hot_kernels if k.place.name == "y")
    once = next(k for k in found.hot_kernels if k.place.name == "q")
    assert (in_loop.iterations, once.iterations) == (iterations, 1)
    assert in_loop.kernel is not None
    rows = final_account(observed).rows
    launch_us = next(r.launch_us for r in rows if r.instruction.name == in_loop.place.final)
    assert in_loop.us == pytest.approx((in_loop.kernel.us + launch_us) * iterations)


def test_what_why_advises_holds(hlofuse: Run, samples: Path) -> None:
    names = ("fusion.28", "triton_softmax.6")
    requested = ("why", str(samples / "gpu" / "gpt2_block"), "--device", "h100_sxm", *names)
    attributes = hlofuse(*requested)
    assert "fusing them would no longer pay off" in attributes.out
    attempt = attributes.out.split("to replay that: ")[1].split()
    changed = hlofuse(*requested, *attempt[:2])
    assert "(fusion.28) was not fused into triton_softmax.6: it would cost time" in " ".join(
        changed.out.split()
    )


def test_names_given_on_the_way_stand_for_operations_of_the_input(samples: Path) -> None:
    folder = samples / "gpu" / "gpt2_block"
    run = observed_replay(with_ids(folder), replay_config("gpu", "h100_sxm")).replay
    assert in_the_input(("mul.16.0", "fusion.21"), run)[0] == "mul.16.0"
    assert in_the_input(("%fusion.28", "triton_softmax.6"), run) == ["add.9.0", "triton_softmax.6"]
    assert in_the_input(("gemm_fusion_dot.2", "fusion.21"), run) == ["gemm_fusion_dot.2", "mul.29.0"]
    assert in_the_input(("nothing", "fusion.21"), run) == ["nothing", "fusion.21"]


def test_a_copy_after_fusion_has_the_reason_of_the_copy_of_its_array(hlofuse: Run, tmp_path: Path) -> None:
    """XLA may number two copies the other way round."""
    before = tmp_path / "before.hlo"
    before.write_text(LOOP.replace("CONFIG", "{}").replace("(a, q)", "(a, p)"))
    (tmp_path / "hlofuse.json").write_text(
        '{"schema": "hlofuse.stamp/1", "jaxlib": "0.11.1", "backend": "cpu"}'
    )
    final = hlofuse("replay", before, "--target", "cpu", "--until", "end", "-o", "-").out
    names = re.findall(r"%(copy\S*) = .*copy\(%[ap]\)", final)
    assert len(names) == 2
    other = dict(zip(names, names[::-1], strict=True))
    swapped = re.sub(r"%(copy[.\d]*)", lambda m: f"%{other.get(m[1], m[1])}", final)
    reasons = []
    for text in (final, swapped):
        (tmp_path / "after_optimizations.hlo").write_text(text)
        reasons.append(["the argument is not donated" in hlofuse("why", before, name).out for name in names])
    assert sum(reasons[0]) == 1
    assert reasons[1] == reasons[0][::-1]
