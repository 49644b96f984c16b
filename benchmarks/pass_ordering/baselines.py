"""Every method on the test split, as results.json has it.

    baselines.py search OUT.json              greedy and evolve, without a portfolio
    baselines.py lists LISTS OUT.json         the fixed list and the coreset of choose.py
    baselines.py results LISTS FOUND.json...  all of that and of learn.py to results.json, and lowered figures

Figures are instructions of all computations, and by how much less that is than what XLA's order leaves. The
time of a search grows with the module: SHARE of a second for every instruction, so that a larger one has as
many tries. Sequences found on a module are of that module; the fixed list, the coreset and the policies come
from the train split alone.
"""

from __future__ import annotations

import json
import math
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import mean, stdev
from typing import Any

from hlofuse.compilation import replay_config
from hlofuse.gym.env import Benchmark, HloPassEnv, benchmark, manifest
from hlofuse.search.space import Space, SpentBudget, count_ops
from hlofuse.search.strategies import METHODS, minimized

HERE = Path(__file__).parent
LARGEST, LOWERED = 1500, 900
"""Instructions of a module that is searched, and of one that is lowered; fixed lists run on all."""
SHARE, SEEDS = 1 / 300, 5
SHOWN = ("fixed", "coreset", "greedy", "ppo_counts_imitating")
"""Methods with lowered figures, of their first seed."""
UNSEEN = {"llama", "unet", "nerf", "graphs", "solver", "experts", "bayes"}
"""As in programs.py, which needs jax."""
_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
Moves = list[str]


def test_split(largest: float) -> list[Benchmark]:
    rows = [m for m in manifest() if m["split"] == "test" and m["instructions"] <= largest]
    return [benchmark(m["name"]) for m in rows]


def left(b: Benchmark, moves: Moves) -> int:
    """Instructions behind the moves."""
    return count_ops(HloPassEnv.replay(b.name, {"module": b.hash, "actions": moves}))


def searched(b: Benchmark, method: str, seed: int) -> tuple[int, Moves]:
    space = Space(b.module, replay_config("cpu"), "ops")
    space.deadline = time.monotonic() + 0.5 + SHARE * count_ops(b.module)
    with suppress(SpentBudget):
        METHODS[method](space, Random(seed))
    space.deadline = math.inf
    moves = minimized(space, space.best)
    return int(space.value(moves)), list(moves)


def search(out: str) -> None:
    found = []
    for method in METHODS:
        for seed in range(SEEDS if method == "evolve" else 1):
            modules = {}
            for b in test_split(LARGEST):
                ops, moves = searched(b, method, seed)
                modules[b.name] = {"ops": ops, "actions": moves}
            found.append({"method": method, "seed": seed, "modules": modules})
            Path(out).write_text(json.dumps(found))
            print(method, seed, flush=True)


def lists(path: str, out: str) -> None:
    sequences = [json.loads(line) for line in Path(path).read_text().splitlines()]
    fixed, coreset = {}, {}
    for b in test_split(math.inf):
        tries = [(left(b, moves), moves) for moves in sequences]
        fixed[b.name] = {"ops": tries[0][0], "actions": tries[0][1]}
        ops, moves = min(tries)
        coreset[b.name] = {"ops": ops, "actions": moves}
    found = [
        {"method": "fixed", "seed": 0, "modules": fixed},
        {"method": "coreset", "seed": 0, "modules": coreset},
    ]
    Path(out).write_text(json.dumps(found))


def interval(values: list[float]) -> list[float]:
    """The mean, and half of its 95% interval over seeds."""
    half = _T[len(values)] * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return [round(mean(values), 2), round(half, 2)]


def lowered(space: Space, moves: Moves) -> dict[str, int | None]:
    """What XLA:CPU's own passes make of it: operations at fusion's input, kernels, bytes."""
    score = space.score(tuple(moves), with_peak=False)
    return {n: getattr(score, n, None) for n in ("lowered_ops", "kernels", "bytes")}


def results(path: str, files: list[str]) -> None:
    runs: list[dict[str, Any]] = []
    for file in files:
        found = json.loads(Path(file).read_text())
        runs += found if isinstance(found, list) else [found]
    rows = {m["name"]: m for m in manifest()}
    modules: dict[str, dict[str, Any]] = {}
    for b in test_split(math.inf):
        defaults = {"xla_cpu": b.default_ops("cpu", None), "xla_gpu": b.default_ops("gpu", "h100_sxm")}
        entry: dict[str, Any] = {"family": rows[b.name]["family"], "hash": b.hash, **defaults, "ops": {}}
        for run in runs:
            if b.name in run["modules"]:
                entry["ops"].setdefault(run["method"], []).append(run["modules"][b.name]["ops"])
        tries = [(m["ops"], len(m["actions"]), m["actions"]) for r in runs if (m := r["modules"].get(b.name))]
        _, _, moves = min(tries)
        entry["best"] = {"ops": left(b, moves), "moves": moves}
        modules[b.name] = entry
        if rows[b.name]["instructions"] <= LOWERED:
            sequences = {r["method"]: r["modules"][b.name]["actions"] for r in runs if r["seed"] == 0}
            shown = {"xla_cpu": [], "best": moves} | {m: sequences[m] for m in SHOWN if m in sequences}
            space = Space(b.module, replay_config("cpu"), "ops")
            entry["lowered"] = {method: lowered(space, s) for method, s in shown.items()}
        print(b.name, flush=True)
    sequences = [json.loads(line) for line in Path(path).read_text().splitlines()]
    summary = {"raw": summarized(modules), "lowered": summarized_lowered(modules)}
    rows_text = ",\n".join(f"{json.dumps(n)}: {json.dumps(m)}" for n, m in modules.items())
    head = f'"lists": {json.dumps(sequences)},\n"summary": {json.dumps(summary, indent=1)}'
    (HERE / "results.json").write_text(f'{{\n{head},\n"modules": {{\n{rows_text}\n}}\n}}\n')


def summarized(modules: dict[str, Any]) -> dict[str, Any]:
    """Percent fewer than each default, by group: the mean of modules, then over seeds with its interval.

    A method counts where it has a figure for every module of the group; only lists have run on all sizes.
    """
    searched = [m for m in modules.values() if "greedy" in m["ops"]]
    groups = {
        "gpt2": [m for m in searched if m["family"] == "gpt2"],
        "gpt2, all sizes": [m for m in modules.values() if m["family"] == "gpt2"],
        "diverse": [m for m in searched if m["family"] != "gpt2"],
        "up to 1,500 instructions": [m for m in searched if any("best of" in x for x in m["ops"])],
        "unseen families": [m for m in searched if m["family"] in UNSEEN],
    }
    found: dict[str, Any] = {}
    for default in ("xla_cpu", "xla_gpu"):
        for group, members in groups.items():
            row = found.setdefault(f"vs {default}", {}).setdefault(f"{group} ({len(members)})", {})
            for method in sorted({x for m in members for x in m["ops"]}):
                if all(method in m["ops"] for m in members):
                    seeds = range(len(members[0]["ops"][method]))
                    shares = [
                        mean(100 * (1 - m["ops"][method][s] / m[default]) for m in members) for s in seeds
                    ]
                    row[method] = interval(shares)
    return found


def summarized_lowered(modules: dict[str, Any]) -> dict[str, Any]:
    """Percent fewer than XLA's own compilation, in the mean of modules; `changed` of them differ at all."""
    found: dict[str, Any] = {}
    members = [m["lowered"] for m in modules.values() if "lowered" in m]
    for method in sorted({x for m in members for x in m} - {"xla_cpu"}):
        for figure in ("lowered_ops", "kernels", "bytes"):
            pairs = [(m["xla_cpu"][figure], m[method][figure]) for m in members if method in m]
            there = [(a, b) for a, b in pairs if a and b]
            found.setdefault(method, {})[figure] = {
                "fewer": round(mean(100 * (1 - b / a) for a, b in there), 2),
                "better": sum(b < a for a, b in there),
                "worse": sum(b > a for a, b in there),
                "of": len(there),
            }
    return found


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["search", out]:
            search(out)
        case ["lists", path, out]:
            lists(path, out)
        case ["results", path, *files]:
            results(path, files)
