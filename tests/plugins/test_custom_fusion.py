"""From a match to one custom fusion in the module."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import hlofuse
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Computation, Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.plugins import ActiveRules, Candidate, CustomFusion, FusionRule, Kernel, KernelCost, Match
from hlofuse.plugins.rewrite import custom_kernel_name
from hlofuse.replay import Replay, replay_config
from hlofuse.rules.settings import Settings

from ..tools.module_checks import check_module
from .patterns import module_of

PROGRAM = """
a = f32[64] parameter(0)
b = f32[64] parameter(1)
s = f32[64] add(a, b)
e = f32[64] exponential(s)
t = f32[64] tanh(e)
ROOT r = f32[64] negate(t)
"""
SOFTPLUS = CustomFusion(
    code="ACME001",
    title="add and exp become one",
    why="Because.",
    advice="Nothing.",
    kernel="add_exp",
    patterns=("y = parameter(1)\nx = parameter(0)\ns = T[N] add(x, y)\ne = exponential(s)",),
    cost=lambda kernel, device: KernelCost(us=7.0),
)


def replayed(module: Module, *entries: FusionRule | CustomFusion, target: str = "cpu") -> Replay:
    device = None if target == "cpu" else "a100_sxm_40"
    settings = Settings(plugins=ActiveRules.of(*entries))
    done = hlofuse.replay(module, target, device=device, settings=settings)
    check_module(done.after)
    return done


@pytest.mark.parametrize("target", ["cpu", "gpu", "gpu-legacy"])
def test_one_fusion_stands_for_the_match_and_stays_as_it_is(target: str) -> None:
    done = replayed(module_of(PROGRAM), SOFTPLUS, target=target)
    created = done.after.find("add_exp")
    assert created is not None
    assert custom_kernel_name(created) == "add_exp"
    assert [o.name for o in created.operands] == ["a", "b"]
    body = created.fused_computation
    assert [(p.name, p.parameter_number) for p in body.parameters] == [("x", 0), ("y", 1)]
    assert body.root.opcode == "exponential"
    # XLA's passes go on around it: what follows is fused, it is not.
    assert done.passes[0].name == "custom-kernel-fusion-rewriter"
    assert [u.opcode for u in created.users] == ["fusion"]
    assert print_module(parse_module(print_module(done.after))) == print_module(done.after)
    fuse = done.passes[0].events[0]
    assert (fuse.event, fuse.producer, fuse.consumer, fuse.rule) == ("fuse", "s", "e", "ACME001")


def test_the_kernel_knows_its_operands_and_sizes() -> None:
    done = replayed(module_of(PROGRAM), SOFTPLUS)
    _, kernel = done.custom_kernels["add_exp"]
    assert kernel.sizes == {"T": "f32", "N": 64}
    assert [str(s.dimensions) for s in kernel.operands.values()] == ["(64,)", "(64,)"]
    assert (kernel.bytes_read, kernel.bytes_written) == (512, 256)


def test_nothing_changes_for_other_targets_or_without_a_match() -> None:
    for entry in (replace(SOFTPLUS, targets=("gpu",)), replace(SOFTPLUS, where=lambda match: False)):
        module = module_of(PROGRAM)
        assert print_module(replayed(module, entry).after) == print_module(hlofuse.replay(module).after)


def test_the_largest_of_matches_that_overlap_is_taken() -> None:
    large = replace(
        SOFTPLUS,
        code="ACME002",
        kernel="three",
        patterns=("x = parameter(0)\ne = exponential(x)\nt = tanh(e)\nr = negate(t)",),
    )
    for entries in ((SOFTPLUS, large), (large, SOFTPLUS)):
        done = replayed(module_of(PROGRAM), *entries)
        assert list(done.custom_kernels) == ["three"]
    same = replace(SOFTPLUS, code="ACME003", kernel="other")
    assert list(replayed(module_of(PROGRAM), same, SOFTPLUS).custom_kernels) == ["other"]


def test_matches_in_a_row_all_become_kernels() -> None:
    module = module_of(
        """
        a = f32[8] parameter(0)
        s = f32[8] add(a, a)
        e = f32[8] exponential(s)
        t = f32[8] add(e, a)
        f = f32[8] exponential(t)
        u = f32[8] add(e, f)
        ROOT g = f32[8] exponential(u)
        """
    )
    done = replayed(module, SOFTPLUS)
    assert list(done.custom_kernels) == ["add_exp", "add_exp.1", "add_exp.2"]
    last = done.after.entry.root
    assert sorted(o.name for o in last.operands) == ["add_exp", "add_exp.1"]


def test_loops_are_looked_into_and_reducers_are_not() -> None:
    loop = """
    body {
      p = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[8] get-tuple-element(p), index=1
      s = f32[8] add(x, x)
      e = f32[8] exponential(s)
      ROOT t = (s32[], f32[8]) tuple(i, e)
    }
    cond {
      q = (s32[], f32[8]) parameter(0)
      j = s32[] get-tuple-element(q), index=0
      n = s32[] constant(3)
      ROOT c = pred[] compare(j, n), direction=LT
    }
    odd {
      l = f32[] parameter(0)
      r = f32[] parameter(1)
      u = f32[] add(l, r)
      ROOT v = f32[] exponential(u)
    }
    """
    module = module_of(
        """
        a = (s32[], f32[8]) parameter(0)
        w = (s32[], f32[8]) while(a), condition=cond, body=body
        y = f32[8] get-tuple-element(w), index=1
        z = f32[] constant(0)
        ROOT k = f32[] reduce(y, z), dimensions={0}, to_apply=odd
        """,
        loop,
    )
    anything = replace(
        SOFTPLUS, patterns=("x = parameter(0)\ny = parameter(1)\ns = add(x, y)\ne = exponential(s)",)
    )
    done = replayed(module, anything)
    assert [e.computation for e in done.passes[0].events] == ["body"]


def test_what_runs_before_or_has_an_effect_is_left_alone() -> None:
    module = module_of(
        """
        a = f32[8] parameter(0)
        x = f32[8] negate(a)
        s = f32[8] add(a, a), control-predecessors={x}
        e = f32[8] exponential(s)
        ROOT r = f32[8] multiply(e, x)
        """
    )
    assert replayed(module, SOFTPLUS).custom_kernels == {}
    call = CustomFusion(**{**vars(SOFTPLUS), "patterns": ("x = parameter(0)\nr = custom-call(x)",)})
    line = 'a = f32[8] parameter(0)\nROOT c = f32[8] custom-call(a), custom_call_target="f"'
    assert list(replayed(module_of(line), call).custom_kernels) == ["add_exp"]
    assert replayed(module_of(line + ", custom_call_has_side_effect=true"), call).custom_kernels == {}


def test_the_time_is_the_packages() -> None:
    from hlofuse.account import observed_replay
    from hlofuse.account.kernel_times import custom_kernel_time
    from hlofuse.cost.gpu.device import load_device
    from hlofuse.cost.gpu.model import KernelModel
    from hlofuse.releases import REFERENCE, release_of

    device = load_device("a100_sxm_40")
    settings = Settings(plugins=ActiveRules.of(SOFTPLUS))
    found = observed_replay(module_of(PROGRAM), replace(replay_config("gpu", device), settings=settings))
    assert found.costs is not None
    created = found.replay.after.find("add_exp")
    assert created is not None
    time = found.costs.kernel(created)
    assert time is not None
    assert (time.us, time.emitter) == (7.0, "custom kernel add_exp")
    # Given as work, it is at the device's rates: twice the work, twice the time.
    kernel = found.replay.custom_kernels["add_exp"][1]

    model = KernelModel(device, release_of(REFERENCE))

    def us(**work: int) -> float:
        figures: dict[str, Any] = {"bytes_read": 0, "bytes_written": 0} | work
        entry = replace(SOFTPLUS, cost=lambda kernel, device: KernelCost(**figures))
        return custom_kernel_time(entry, kernel, model).us

    assert us(flops=2 * 10**9) == pytest.approx(2 * us(flops=10**9), rel=1e-3)
    assert us(matrix_flops=10**9) <= us(flops=10**9)
    assert us(bytes_written=10**9) == pytest.approx(1e15 / device.memory_bandwidth, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"cost": lambda kernel, device: 1 / 0},
            "the cost of rule ACME001, which is not XLA's, failed: ZeroDivision",
        ),
        (
            {"cost": lambda kernel, device: 3},
            "the cost of rule ACME001, which is not XLA's, is int, not KernelCost",
        ),
        ({"cost": lambda kernel, device: KernelCost(flops=-1)}, "is negative"),
        (
            {"where": lambda match: match.sizes["Q"]},
            "the condition of rule ACME001, which is not XLA's, failed: KeyE",
        ),
        ({"targets": ("tpu",)}, "ACME001 is about target 'tpu'; there are: cpu, gpu, gpu-legacy"),
    ],
)
def test_a_package_that_fails_is_named(change: dict[str, object], text: str) -> None:
    from hlofuse.account import observed_replay
    from hlofuse.cost.gpu.device import load_device

    entry = CustomFusion(**{**vars(SOFTPLUS), **change})
    settings = Settings(plugins=ActiveRules.of(entry))

    def total() -> None:
        device = load_device("a100_sxm_40")
        found = observed_replay(module_of(PROGRAM), replace(replay_config("gpu", device), settings=settings))
        assert found.costs is not None
        assert found.costs.account(found.replay.after).totals.us

    with pytest.raises(HlofuseError, match=text):
        total()


def test_a_list_of_passes_says_when_kernels_are_made() -> None:
    settings = Settings(plugins=ActiveRules.of(SOFTPLUS))

    def run(*passes: str) -> list[str]:
        done = hlofuse.replay(module_of(PROGRAM), passes=passes, settings=settings)
        return [p.name for p in done.passes]

    assert run("fusion") == ["custom-kernel-fusion-rewriter", "fusion"]
    named = ("dce", "custom-kernel-fusion-rewriter", "fusion")
    assert run(*named) == list(named)


# ------------------------------------------------------------ rules about fusions


def is_tanh(pair: Candidate) -> dict[str, str] | bool:
    return {"opcode": "tanh"} if pair.producer_root.opcode == "tanh" else False


def _holds(computation: Computation) -> bool:
    return computation.fusion is not None and {"tanh", "negate"} <= {x.opcode for x in computation}


FORBID = FusionRule(code="ACME010", title="No tanh in a kernel", why="w", advice="a", applies=is_tanh)


@pytest.mark.parametrize("target", ["cpu", "gpu", "gpu-legacy"])
def test_a_rule_forbids_what_xla_does(target: str) -> None:
    program, device = module_of(PROGRAM), None if target == "cpu" else "a100_sxm_40"
    done = replayed(program, FORBID, target=target)
    refused = [e for e in done.events if e.rule == "ACME010"]
    assert {e.event for e in refused} == {"ineligible"}
    assert refused[0].figures == {"opcode": "tanh"}
    assert refused[0].reason == "No tanh in a kernel"
    together = [c for c in hlofuse.replay(program, target, device=device).after.computations if _holds(c)]
    assert len(together) == 1, "XLA fuses the two"
    assert not any(_holds(c) for c in done.after.computations)
    other = replace(FORBID, targets=tuple({"cpu", "gpu", "gpu-legacy"} - {target}))
    assert print_module(replayed(program, other, target=target).after) == print_module(
        hlofuse.replay(program, target, device=device).after
    )


def test_a_rule_is_asked_about_its_passes_only() -> None:
    seen = set()

    def applies(pair: Candidate) -> bool:
        seen.add((pair.pass_name, pair.target))
        return False

    replayed(module_of(PROGRAM), replace(FORBID, applies=applies, passes=("fusion",)), target="gpu-legacy")
    assert seen == {("fusion", "gpu-legacy")}
    with pytest.raises(
        HlofuseError, match="is about pass 'fusions'; there are: cpu_multi_output_fusion, cse"
    ):
        replayed(module_of(PROGRAM), replace(FORBID, passes=("fusions",)))


ALLOW = FusionRule(code="ACME011", title="t", why="w", advice="a", allows=True, applies=lambda pair: True)


def test_a_rule_allows_what_xla_refuses() -> None:
    """An expensive producer with two users: XLA keeps it, because it would be computed twice."""
    program = module_of(
        """
        a = f32[64] parameter(0)
        e = f32[64] exponential(a)
        n = f32[64] negate(e)
        m = f32[64] abs(e)
        ROOT r = (f32[64], f32[64]) tuple(n, m)
        """
    )
    assert {e.event for e in hlofuse.replay(program).events if e.producer == "e"} == {"ineligible"}
    done = replayed(program, ALLOW)
    assert next(e.rule for e in done.events if e.event == "fuse" and e.producer == "e") == "ACME011"


def test_no_rule_allows_what_would_make_the_program_wrong() -> None:
    program = module_of(
        """
        a = f32[64] parameter(0)
        c = f32[64] custom-call(a), custom_call_target="f"
        ROOT n = f32[64] negate(c)
        """
    )
    for target in ("cpu", "gpu", "gpu-legacy"):
        done = replayed(program, ALLOW, target=target)
        assert not [e for e in done.events if e.event == "fuse"]


def test_a_match_shows_what_it_found() -> None:
    seen: list[Match] = []

    def where(match: Match) -> bool:
        seen.append(match)
        return True

    replayed(module_of(PROGRAM), replace(SOFTPLUS, where=where))
    match = seen[0]
    assert {name: x.name for name, x in match.operands.items()} == {"x": "a", "y": "b"}
    assert {name: x.name for name, x in match.instructions.items()} == {
        "x": "a",
        "y": "b",
        "s": "s",
        "e": "e",
    }
    assert isinstance(Kernel(dict.fromkeys("x", match.root.shape), match.root.shape, match.sizes), Kernel)
