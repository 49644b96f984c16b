"""Every figure of XLA's own final modules as it was: a change of one is seen, and has to be meant."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hlofuse.account import Account, KernelTimes
from hlofuse.account.cpu import CpuTimes
from hlofuse.account.tpu import TpuAccount
from hlofuse.compilation import Compilation, replay_config
from hlofuse.cost.cpu.device import load_cpu
from hlofuse.cost.cpu.work import add_work
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir import Module, parse_module
from hlofuse.judge.calibrate import probes
from hlofuse.pipelines.targets import Stage
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.reports.verdict.verdict import verdict_as_it_is
from ..fixtures import packed
from ..recipes.values import archive
from ..running import Golden

DATA = Path(__file__).parents[1] / "data"
CPU = CpuTimes(RELEASE, load_cpu("xeon_2_threads"))
H100 = load_device("h100_sxm")


def final_modules(backend: str) -> Iterator[tuple[str, Module]]:
    for name in ("cpu-final", "gpu-h100_sxm-final", "partitioned"):
        for program, files in packed(DATA / f"{name}.tar.xz").items():
            if "final.hlo" in files and backend in (name[:3], program[:3]):
                yield program, parse_module(files["final.hlo"].decode())


def accounts() -> Iterator[tuple[str, Account]]:
    for program, module in final_modules("cpu"):
        yield f"cpu {program}", Account(module, backend="cpu", times=CPU)
    for program, module in final_modules("gpu"):
        yield f"gpu {program}", KernelTimes(H100, RELEASE).account(module)
    for file, text in archive(DATA / "tpu.tar.xz").items():
        yield file, TpuAccount(parse_module(text), "v5e")


def rounded(value: Any) -> Any:
    """Without what is 0 or empty, and six digits of the rest."""
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items() if x}
    if isinstance(value, (list, tuple)):
        return [rounded(x) for x in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def test_figures_of_modules(golden: Golden) -> None:
    lines = []
    for name, account in accounts():
        v = verdict_as_it_is(account, RELEASE, H100 if name.startswith("gpu") else None)
        sent = [(r.collective.us, r.collective.exposed, r.weight[1]) for r in v.collectives]
        found = v.totals, v.shares, v.floor, v.program, v.functions.rows, sent
        lines.append(f"{name} {json.dumps(rounded(msgspec.to_builtins(found)))}\n")
    golden("account/modules.txt", "".join(lines))


def test_amounts_that_a_cpu_has_rates_of(golden: Golden) -> None:
    """Of the programs that it is calibrated with, too: other amounts need other rates."""
    config, sums = replay_config("cpu", xla=RELEASE.name), defaultdict[str, float](float)
    programs = [module for _, module in final_modules("cpu")]
    programs += [Compilation.of(parse_module(t), Stage.BEFORE, config).final for t in probes().values()]
    for module in programs:
        account = Account(module, backend="cpu", times=CPU)
        for row in account.rows:
            work = CPU.work(row.instruction, account.reuse.get(row.instruction))
            add_work(sums, {"kernel of no time": 1.0} if work is None else work)
            add_work(sums, CPU.launch_work(row.runs, row.together))
        add_work(sums, account.call_work)
    golden("account/amounts.txt", "".join(f"{name}: {sums[name]:.9g}\n" for name in sorted(sums)))
