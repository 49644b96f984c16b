"""The figures of benchmarks/pass_ordering/results.json are what their sequences leave."""

import json
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")
from hlofuse.gym.env import HloPassEnv, benchmark
from hlofuse.search.space import count_ops

RESULTS = Path(__file__).parents[2] / "benchmarks" / "pass_ordering" / "results.json"
STORED = json.loads(RESULTS.read_text())


@pytest.mark.parametrize("name", ["vgg_train", "moe_infer", "fft_filter", "llama_infer"])
def test_the_best_sequence_of_a_module_leaves_what_is_stored(name: str) -> None:
    module = STORED["modules"][name]
    state = {"module": module["hash"], "actions": module["best"]["moves"]}
    assert count_ops(HloPassEnv.replay(name, state)) == module["best"]["ops"]
    assert benchmark(name).default_ops("cpu", None) == module["xla_cpu"]
