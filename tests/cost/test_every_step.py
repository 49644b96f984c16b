"""Costs of every step and kernel of modules for all devices: a change of one is seen, and has to be meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hlofuse.account import observed_replay
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir import parse_module
from hlofuse.reports.common.facts import Facts
from ..fixtures import read_cases
from ..library.test_answers import H100, leaves, size
from ..recipes.values import archive
from ..running import Golden

TESTS = Path(__file__).parents[1]
ARCHIVES = {"gpu": 16, "gpu-unusual": 16, "gpu-legacy": 8, "gpu-users": 6, "gpu-models": 2}  # modules of each


def programs() -> Iterator[tuple[str, str, dict[str, str]]]:
    for name, count in ARCHIVES.items():
        modules = {
            n: t for n, t in archive(TESTS / f"data/{name}.tar.xz").items() if n.endswith("before.hlo")
        }
        for member in sorted(modules)[:: len(modules) // count]:
            target = "gpu-legacy" if name == "gpu-legacy" else "gpu"
            yield member, modules[member], {"target": target, "device": member.partition("/")[0]}
    for folder in ("rules", "cost/gpu/modules", "cost/tiling/modules", "cost/steps.hlo"):
        for case in read_cases(TESTS / folder):
            yield (
                str(case),
                case.text,
                case.options if "target" in case.options else H100,
            )


def test_costs_of_every_step(golden: Golden) -> None:
    lines = []
    for name, text, how in programs():
        config = replay_config(how["target"], how.get("device"), xla=how.get("xla"), option=how.get("option"))
        found = observed_replay(CompilationInput(parse_module(text)), config)
        counts = Counter(e.rule or e.event for e in found.replay.events)
        steps = [(e.us_fused, e.us_unfused, tuple(e.figures.items())) for e in found.replay.events]
        account = Facts(found.replay, found.costs).account_after
        kernels = [found.costs.kernel(row.instruction) for row in account.rows] if found.costs else []
        parts = steps, kernels, account.sums, [(row.cost, row.us) for row in account.rows]
        sums = [sum(map(size, leaves(msgspec.to_builtins(part)))) for part in parts]
        events = " ".join(f"{event} {counts[event]}" for event in sorted(counts))
        lines.append(f"{name}: {events}; {' '.join(f'{s:.6f}' for s in sums)}\n")
    golden("account/steps.txt", "".join(lines))
