"""Searches over passes and flags: what they promise, on programs whose answer is at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from hlofuse.compilation import replay_config
from hlofuse.ir.text.reader import parse_module
from hlofuse.library import questions
from hlofuse.pipelines.flags import joined
from hlofuse.pipelines.targets import device_of
from hlofuse.search.report import change
from hlofuse.search.space import ACTIONS, Objective, Space
from hlofuse.search.strategies import METHODS, minimized, search
from ..passes.packed import archive
from ..running import Golden, Run

TWICE = """HloModule twice, entry_computation_layout={(f32[64]{0})->(f32[64]{0}, f32[64]{0})}

ENTRY main {
  p = f32[64]{0} parameter(0)
  a = f32[64]{0} exponential(p)
  b = f32[64]{0} exponential(p)
  c = f32[64]{0} negate(b)
  unused = f32[64]{0} sine(p)
  ROOT out = (f32[64]{0}, f32[64]{0}) tuple(a, c)
}
"""


def space(objective: Objective, program: str = "gpt2_block_grad", *kinds: str) -> Space:
    """A program of the corpus on CPU."""
    module = parse_module(archive("cpu")[f"programs/{program}"]["before"])
    return Space(module, replay_config("cpu"), objective, kinds or ("passes",))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_no_method_is_worse_than_xla_and_none_has_a_move_too_many(method: str) -> None:
    searched = space("ops", "layer_norm_grad")
    found = search(searched, method, tries=60)
    assert found.score.ops <= searched.value(())
    assert minimized(searched, found.moves) == found.moves
    for left_out in range(len(found.moves)):
        shorter = found.moves[:left_out] + found.moves[left_out + 1 :]
        assert searched.value(shorter) > found.score.ops


def test_the_same_seed_and_number_of_tries_find_the_same() -> None:
    first, second = (search(space("kernels", "black_scholes"), "evolve", tries=60, seed=3) for _ in range(2))
    assert (first.moves, first.score) == (second.moves, second.score)


def test_ops_of_a_module_whose_answer_is_plain() -> None:
    """One exponential, one negation, the parameter and the tuple are left; the sine and the copy go."""
    searched = Space(parse_module(TWICE), replay_config("cpu"), "ops")
    found = search(searched, "greedy", tries=500)
    assert (found.score.ops, found.moves) == (4, ("cse", "dce"))


def test_flags_leave_out_only_what_xla_can_do_without() -> None:
    flags = space("kernels", "black_scholes", "flags").moves
    assert "--xla_disable_hlo_passes=cse" in flags
    assert "--xla_cpu_experimental_ynn_fusion_type=-reduce" in flags
    needed = {a.step.name for a in ACTIONS.values() if a.kind == "expand"}
    assert needed.isdisjoint(f.partition("=")[2] for f in flags)
    assert joined(("--xla_a=1", "--xla_b=2", "--xla_a=3")) == ("--xla_a=1,3", "--xla_b=2")


def test_passes_that_the_dump_left_out_stay_out() -> None:
    off = [f"--xla_disable_hlo_passes={name}" for name in ("cse", "algsimp")]
    module = parse_module(archive("cpu")["programs/softmax"]["before"])
    without_cse = Space(module, replay_config("cpu", xla_flags=(off[0],)), "kernels", ("flags",))
    both = Space(module, replay_config("cpu"), "kernels", ("flags",))
    assert without_cse.score((off[1],)) == both.score(tuple(off))


def test_the_command_offers_what_there_is() -> None:
    assert get_args(Objective) == questions.OBJECTIVES
    assert set(questions.METHODS) == set(METHODS)


def test_what_is_found_by_default_is_not_slower(hlofuse: Run, tmp_path: Path) -> None:
    """Two kernels fewer for a fifth more time are found where kernels are asked for, and only there."""
    file = tmp_path / "module.hlo"
    file.write_text(archive("cpu")["programs/layer_norm"]["before"])
    command = ("optimize", file, "--target", "cpu", "--tries", 60, "--search", "greedy", "--space", "flags")
    for options in ((), ("--objective", "kernels")):
        document = json.loads(hlofuse(*command, "--format", "json", *options).out)
        assert (document["found"]["time_us"] > document["default"]["time_us"]) == bool(options)


def test_time_that_rests_on_a_lower_bound_is_no_gain() -> None:
    """Without Triton's products cuBLAS runs them, of which there is no estimate: the time is a bound only."""
    module = parse_module(archive("gpu-h100_sxm")["programs/gpt2_block"]["before"])
    device, _ = device_of("gpu", "h100_sxm")
    searched = Space(module, replay_config("gpu", device), "time", ("flags",))
    flag = "--xla_disable_hlo_passes=triton-gemm-rewriter"
    assert flag in searched.moves
    assert searched.value((flag,)) == float("inf")


def test_the_report(hlofuse: Run, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("module.hlo").write_text(archive("cpu")["programs/gpt2_block_grad"]["before"])
    moves = "call-inliner,algsimp(supports_non_canonical_dots=true),--xla_disable_hlo_passes=cse"
    command = ("optimize", "module.hlo", "--target", "cpu", "--passes", moves)
    found = hlofuse(*command, "--write", "out.hlo")
    assert found.status == 0
    golden(
        "optimize/gpt2_block_grad.txt", "\n".join(x for x in found.out.split("\n") if "measured in" not in x)
    )
    document = json.loads(hlofuse(*command, "--objective", "ops", "--format", "json").out)
    assert document["schema"] == "hlofuse.optimize/3"
    assert document["flags"] == ["--xla_disable_hlo_passes=cse"]
    assert [m["move"] for m in document["moves"]] == moves.split(",")
    assert document["found"]["ops"] == sum(map(len, parse_module(Path("out.hlo").read_text()).computations))
    assert document["found"]["lowered_ops"] == document["moves"][-1]["lowered_ops"]


def test_errors_say_what_is_expected(hlofuse: Run, samples: Path) -> None:
    assert hlofuse("optimize", samples / "cpu" / "softmax", "--passes", "algsimpp").status == 2
    fused = hlofuse("optimize", samples / "cpu" / "gpt2_block" / "after.hlo")
    assert (fused.status, "before optimizations" in fused.err) == (2, True)
    assert hlofuse("optimize", samples / "cpu" / "softmax", "--search", "ppo").status == 2


def test_the_list_of_passes(hlofuse: Run) -> None:
    assert "call-inliner" in hlofuse("passes").out
    listed = json.loads(hlofuse("passes", "--format", "json").out)["passes"]
    assert [a["name"] for a in listed] == list(ACTIONS)
    assert {a["kind"] for a in listed} == {"simplify", "expand", "merge"}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(200, 150, "−25.0%"), (4, 4, "same"), (4, 17e6, "× 4,250,000"), (0, 8, "from nothing")],
)
def test_a_change_is_a_percentage_or_a_multiple(before: float, after: float, text: str) -> None:
    assert change(before, after) == text
