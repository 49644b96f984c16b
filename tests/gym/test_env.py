"""An environment gives what replays, and the same in every process."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")
import gymnasium
from gymnasium.utils.env_checker import check_env

import hlofuse.gym  # noqa: F401 (it enters the environment)
from hlofuse.gym.env import HloPassEnv, benchmark, expanded, manifest
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.search.space import ACTIONS, count_ops, module_hash

TEXT = """
HloModule m, entry_computation_layout={(f32[4])->f32[4]}

f {
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p)
}

ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] call(x), to_apply=f
  b = f32[4] call(x), to_apply=f
  ROOT s = f32[4] add(a, b)
}
"""
TWO: dict[str, Any] = {"modules": ["gru_infer", "mlp_train"], "most_steps": 8}


def module() -> Module:
    return parse_module(TEXT)


@pytest.mark.filterwarnings("ignore:.*render.*")
@pytest.mark.parametrize("observation", ["counts", "graph"])
def test_gymnasium_finds_nothing_wrong(observation: Any) -> None:
    env = gymnasium.make("hlofuse/PassOrdering-v0", modules="gru_infer", observation=observation)
    check_env(env.unwrapped, skip_render_check=True)


def test_a_reward_is_the_share_of_the_default_that_goes() -> None:
    env = HloPassEnv(module(), actions=["call-inliner", "cse", "dot-merger"])
    env.reset(seed=0)
    assert (env.ops, env.default) == (6, 3)
    assert env.action_masks().tolist() == [True, True, False, True]  # there is no dot
    _, reward, ended, truncated, info = env.step(0)
    assert (info["ops"], ended, truncated) == (4, False, False)
    assert reward == pytest.approx(2 / 3)
    assert env.step(3)[1:4] == (0, True, False)


def test_what_changed_nothing_is_masked_until_something_changes() -> None:
    env = HloPassEnv(module(), actions=["tuple-simplifier", "dce", "cse"])
    env.reset(seed=0)
    env.step(1)
    assert env.action_masks().tolist() == [False, False, True, True]
    assert env.step(2)[4]["changed"]
    assert env.action_masks().tolist() == [False, True, True, True]
    assert env.state["actions"] == ["cse"]


def test_a_state_replays_on_its_own_module_only() -> None:
    env = HloPassEnv(module())
    env.reset(seed=0)
    for name in ("call-inliner", "cse"):
        env.step(env.names.index(name))
    state = json.loads(json.dumps(env.state))
    assert module_hash(HloPassEnv.replay(module(), state)) == module_hash(env.module)
    with pytest.raises(HlofuseError, match="the state is for module"):
        HloPassEnv.replay("gru_infer", state)
    with pytest.raises(HlofuseError, match="no such action"):
        HloPassEnv.replay(module(), {**state, "actions": ["no-such-pass"]})


def test_a_fork_goes_its_own_way() -> None:
    env = HloPassEnv(module())
    env.reset(seed=0)
    other = env.fork()
    other.step(other.names.index("call-inliner"))
    assert (env.ops, env.actions, other.actions) == (6, [], ["call-inliner"])
    assert env.action_masks()[env.names.index("call-inliner")]


def test_kernels_are_rewarded_at_the_end_behind_xlas_own_passes() -> None:
    env = HloPassEnv("gru_infer", objective="kernels", most_steps=2)
    env.reset(seed=0)
    assert env.step(0)[1] == 0
    _, reward, _, truncated, _ = env.step(env.names.index("cse"))
    assert truncated
    assert -0.2 < reward < 0.2


def test_a_graph_has_every_edge_between_the_nodes_that_fit() -> None:
    env = HloPassEnv(module(), observation="graph", sizes=(16, 16))
    shown, _ = env.reset(seed=0)
    assert shown["sizes"].tolist() == [6, 7]
    assert shown["edges"][:7].tolist().count([1, 3, 1]) == 1  # f's root and the call of it
    small, _ = HloPassEnv(module(), observation="graph", sizes=(2, 1)).reset(seed=0)
    assert small["sizes"].tolist() == [2, 1]


def test_a_state_of_an_episode_is_replayed() -> None:
    env = HloPassEnv(**TWO)
    _, info = env.reset(seed=1)
    for action in (0, 1, len(ACTIONS)):
        *_, info = env.step(action)
    assert count_ops(HloPassEnv.replay(info["module"], env.state)) == info["ops"]


def test_environments_run_in_processes_of_their_own() -> None:
    env: Any = gymnasium.make_vec("hlofuse/PassOrdering-v0", num_envs=2, vectorization_mode="async", **TWO)
    env.reset(seed=0)
    assert env.step([0, 1])[1].shape == (2,)
    assert [m.shape for m in env.call("action_masks")] == [(len(ACTIONS) + 1,)] * 2
    env.close()


def test_the_shipped_modules_are_those_of_the_manifest(tmp_path: Path) -> None:
    assert len(expanded("train")) + len(expanded("test")) == len(manifest()) >= 60
    for name in ("kmeans", "gpt2_infer"):
        (row,) = [m for m in manifest() if m["name"] == name]
        assert (benchmark(name).hash, count_ops(benchmark(name).module)) == (row["hash"], row["instructions"])
    file = tmp_path / "m.hlo"
    file.write_text(TEXT)
    assert count_ops(benchmark(str(file)).module) == 6
