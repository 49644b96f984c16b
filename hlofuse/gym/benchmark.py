"""Modules to order passes on: the shipped ones, by name or split, dumps, and modules of the caller."""

import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hlofuse.account.measured import attach
from hlofuse.compilation import replay_config
from hlofuse.inputs.companions import companions_of
from hlofuse.inputs.many import load
from hlofuse.inputs.profile import read_profile
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.search.space import Objective, Space, default_ops, module_hash

Source = str | Path | Module


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A module before optimizations, to be read only."""

    name: str
    module: Module
    hash: str

    @cache  # noqa: B019
    def default_ops(self, target: str, device: str | None) -> int:
        """Instructions of all computations that XLA's order of the actions leaves."""
        return default_ops(self.module, target, replay_config(target, device).device)

    @cache  # noqa: B019
    def space(self, objective: Objective, target: str, device: str | None, profile: str | None) -> Space:
        """The search space of sequences before XLA's own passes; raises `HlofuseError` for a
        time without a device."""
        times = read_profile(profile) if profile is not None else None
        joined = (lambda replay: attach(replay.final, times)) if times is not None else None
        return Space(self.module, replay_config(target, device), objective, attach=joined)


def expanded(modules: Source | Iterable[Source]) -> list[Source]:
    """The modules, or those of a split ("train", "test", "all")."""
    if modules in ("train", "test", "all"):
        return [m["name"] for m in manifest() if modules in ("all", m["split"])]
    return [modules] if isinstance(modules, str | Path | Module) else list(modules)


@lru_cache(maxsize=256)
def benchmark(source: Source) -> Benchmark:
    """A module, the shipped one of a name, or a dump, before optimizations where it has that; HlofuseError
    for what cannot be read."""
    if isinstance(source, Module):
        return Benchmark(source.name, source, module_hash(source))
    if source in _texts():
        module = parse_module(_texts()[str(source)])
    else:
        module = load(source)
        if (before := companions_of(module).before_optimizations) is not None:
            module = load(before)
    return Benchmark(str(source), module, module_hash(module))


@cache
def manifest() -> list[dict[str, Any]]:
    """Name, family, split, instructions and hash of each shipped module."""
    return list(json.loads((_folder() / "manifest.json").read_text(encoding="utf-8")))


@cache
def _texts() -> dict[str, str]:
    with tarfile.open(_folder() / "modules.tar.xz") as tar:
        return {m.name[:-4]: file.read().decode() for m in tar if (file := tar.extractfile(m)) is not None}


def _folder() -> Path:
    """Inside the package, or in a checkout where they are made."""
    packaged = Path(__file__).parent / "modules"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "benchmarks" / "pass_ordering"
