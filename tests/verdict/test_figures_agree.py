"""Properties of the samples and captures here: reports agree, n of m is a part, no change goes below a floor.

Every module takes part with `FIGURES_EVERY=1`; without, some of each archive do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hlofuse as library
from hlofuse.cost.tpu import tpu_devices
from ..fixtures import unpacked
from ..running import Run

ROOT = Path(__file__).parents[2]
EVERY = int(os.environ.get("FIGURES_EVERY", "0"))
CPU = ("--target", "cpu")
H100 = ("--target", "gpu", "--device", "h100_sxm")
BEFORE, AT_FUSION, FINAL = ("before-optimizations", "fusion-input", "scheduled")
ARCHIVES = {
    "cpu": ("before.hlo", AT_FUSION, CPU, 120),
    "cpu-unoptimized": ("before.hlo", BEFORE, CPU, 120),
    "cpu-final": ("final.hlo", FINAL, CPU, 30),
    "gpu": ("before.hlo", AT_FUSION, H100, 120),
    "gpu-models": ("before.hlo", AT_FUSION, H100, 16),
    "gpu-h100_sxm-unoptimized": ("before.hlo", BEFORE, H100, 120),
    "gpu-h100_sxm-final": ("final.hlo", FINAL, H100, 30),
    "h200": ("before.hlo", AT_FUSION, (), 1),
}
"""The file of a program, its stage, the target, and how many programs stand for one that takes part."""
TOTALS = ("kernels", "launches", "bytes", "time_us")
_PART = re.compile(r"(?<![\w.])([\d,]+) of ([\d,]+)(?![\w.])")


@dataclass(frozen=True)
class Program:
    path: Path
    options: tuple[str, ...]


def _samples() -> list[Program]:
    found = sorted({p.parent for p in (ROOT / "samples").rglob("before.hlo*")})
    device = {"gpu": ("--device", "h100_sxm"), "gpu-legacy": ("--device", "a100_sxm_40")}
    return [Program(p, device.get(p.parent.name, ())) for p in found[:: EVERY or 8]]


def _packed(folder: Path, archive: str) -> list[Program]:
    file, stage, target, every = ARCHIVES[archive]
    with tarfile.open(ROOT / "tests" / "data" / f"{archive}.tar.xz") as tar:
        names = sorted(n for n in tar.getnames() if n.rpartition("/")[2] == file)
        if archive.startswith("gpu-models") or archive == "gpu":
            names = [n for n in names if n.startswith("h100_sxm/")]
        chosen = names[:: EVERY or every]
        folders = {n.rpartition("/")[0] for n in chosen}
        tar.extractall(folder, [m for m in tar if m.name.rpartition("/")[0] in folders], filter="data")
    return [Program(folder / n, (*target, "--stage", stage) if target else ()) for n in chosen]


def _recipes(folder: Path) -> list[Program]:
    found = []
    unpacked(ROOT / "tests" / "recipes" / "data.tar.xz", folder)
    for recipe in sorted(folder.iterdir())[:: EVERY or 16]:
        for path in sorted(recipe.rglob("before/input.hlo")):
            device = path.parent.parent.name
            if device in tpu_devices():  # of a TPU only XLA's own final module has figures
                found.append(Program(path.with_name("final.hlo"), ("--device", device)))
                continue
            how = CPU if device == "cpu" else ("--target", "gpu", "--device", device)
            found.append(Program(path, (*how, "--stage", AT_FUSION)))
    return found


@pytest.mark.parametrize("source", ["samples", "recipes", *ARCHIVES])
def test_figures_agree(source: str, hlofuse: Run, tmp_path: Path) -> None:
    if source == "samples":
        programs = _samples()
    else:
        programs = _recipes(tmp_path) if source == "recipes" else _packed(tmp_path, source)
    assert programs
    wrong = [
        f"{program.path.relative_to(tmp_path) if tmp_path in program.path.parents else program.path}: {line}"
        for program in programs
        for line in _faults(program, hlofuse)
    ]
    assert not wrong, "\n".join(wrong)


def _faults(program: Program, hlofuse: Run) -> list[str]:
    def report(command: str, *more: str) -> Any:
        return json.loads(hlofuse(command, program.path, *program.options, *more, "--format", "json").out)

    explained = report("explain")
    totals, found = explained["totals"], []
    (checked,) = report("check", "--max-kernels", "100000")["modules"]
    figures = checked["figures"]
    answer = library.open(str(program.path), **_options(program)).explain()
    others = {
        "kernels": report("kernels")["totals"],
        "library": answer.to_json()["totals"],
        "check": {"kernels": figures["kernels"], "bytes": figures["bytes"], "time_us": figures["us"]},
    }
    for name, other in others.items():
        for key in TOTALS:
            if key in other and not _equal(other[key], totals[key]):
                found.append(f"{key}: explain {totals[key]}, {name} {other[key]}")
    for part in _PART.finditer(str(answer)):
        n, m = (int(x.replace(",", "")) for x in part.groups())
        if n > m:
            found.append(part[0])
    verdict = explained["verdict"]
    parts, whole = sum(s["time_us"] or 0 for s in verdict["shares"]), totals["time_us"]
    if whole is not None and parts > whole * 1.001 + 0.01:
        found.append(f"shares have {parts} µs of {whole}")
    floor = verdict["floor"]
    for s in explained["suggestions"]:
        for key in ("time_us", "bytes"):
            result, least = s["tried"][key], floor[key]
            if result is not None and least is not None and result < least - 0.01:
                found.append(f"{s['text']}: {key} {result} below the floor {least}")
    if (both := explained["together"]) is not None and (gained := both["gain"]["time_us"]) is not None:
        alone = [explained["suggestions"][n - 1]["gain"]["time_us"] or 0 for n in both["suggestions"]]
        if gained <= max(alone):
            found.append(f"together {gained} µs, alone {alone}")
    return found


def _options(program: Program) -> dict[str, Any]:
    given = program.options
    return dict(zip((o[2:] for o in given[::2]), given[1::2], strict=True))


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 0.011 if isinstance(one, float) else one == other


def test_every_command_counts_a_final_module_that_is_not_replayed(hlofuse: Run, tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "samples" / "tutorial" / "slow" / "loss", tmp_path / "loss")
    head, root, rest = (path := folder / "after_optimizations.hlo").read_text().rpartition("  ROOT ")
    path.write_text(f"{head}  %extra = s32[512]{{0}} copy(%ids.1)\n{root}{rest}")
    calls = "explain", "kernels", "what-if", "timeline", "upgrade --to 0.12.0.1", f"diff {folder}"
    found = [json.loads(hlofuse(c.split()[0], folder, *c.split()[1:], "--format", "json").out) for c in calls]
    (passes,), (upgraded,) = found[3]["films"], found[4]["modules"]
    wholes = [*(f["totals"] for f in found[:3]), upgraded["totals_xla"], found[5]["before"]["totals"]]
    assert all(_equal(whole[key], wholes[0][key]) for whole in wholes for key in TOTALS)
    assert [upgraded["totals_from"]["kernels"] + 1, passes["last"]["kernels"]] == [wholes[0]["kernels"]] * 2
    assert f"{wholes[0]['kernels']} kernels in XLA's final module" in hlofuse("kernels", folder).out
