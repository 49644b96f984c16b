"""Costs of every step and kernel of modules for all devices: a change of one is seen, and has to be meant."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from hlofuse.account import observed_replay
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir import parse_module
from ..library.test_answers import leaves, size
from ..recipes.values import archive
from ..running import Golden

DATA = Path(__file__).parents[1] / "data"
ARCHIVES = {"gpu": 24, "gpu-unusual": 24, "gpu-legacy": 16, "gpu-users": 6, "gpu-models": 2}
"""The number of modules that stand for an archive."""


def test_costs_of_every_step(golden: Golden) -> None:
    lines = []
    for name, count in ARCHIVES.items():
        modules = {n: t for n, t in archive(DATA / f"{name}.tar.xz").items() if n.endswith("before.hlo")}
        for member in sorted(modules)[:: len(modules) // count]:
            target = "gpu-legacy" if name == "gpu-legacy" else "gpu"
            config = replay_config(target, member.partition("/")[0])
            found = observed_replay(CompilationInput(parse_module(modules[member])), config)
            events = Counter(e.rule or e.event for e in found.replay.events)
            steps = [(e.us_fused, e.us_unfused, tuple(e.figures.items())) for e in found.replay.events]
            launched = [found.costs.kernel(x) for x in found.replay.after.entry] if found.costs else []
            sums = [sum(map(size, leaves(msgspec.to_builtins(part)))) for part in (steps, launched)]
            counts = " ".join(f"{event} {events[event]}" for event in sorted(events))
            lines.append(f"{name} {member}: {counts}; {sums[0]:.6f} {sums[1]:.6f}\n")
    golden("account/steps.txt", "".join(lines))
