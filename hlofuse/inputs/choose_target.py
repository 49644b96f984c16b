"""Which target a dump is for, where nobody says: told by the dumps' names and by what is in the module."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.inputs.dump_directory import DumpDirectory, corpus_cases, is_corpus_case
from hlofuse.inputs.dump_names import read_name
from hlofuse.inputs.platform import platform_of
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.pipelines.targets import TARGETS

# Parts of file names, the first that is found decides: passes of a pipeline, then what every dump has.
_EVIDENCE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpu", ("priority-fusion", "priority_fusion")),
    ("gpu-legacy", ("fusion_merger", "horizontal_fusion.", ".fusion.after_fusion.", "fusion.fusion-")),
    ("gpu", ("gpu_target_config", "gpu_after_optimizations")),
    ("cpu", ("cpu_after_optimizations", "fusion-wrapper", "cpu_multi_output_fusion")),
)
DEFAULT = "cpu"


@dataclass(frozen=True, slots=True)
class ChosenTarget:
    """A target, and what it was told by: empty where someone said so, or nothing tells."""

    name: str
    evidence: str = ""


def target_of_files(path: str | os.PathLike[str], module: str | None = None) -> ChosenTarget | None:
    """The target that the names of a dump's files give away; None where they do not.

    `path` is a dump directory (of `module`), a corpus, or a file whose neighbours are looked at.
    """
    names = _names(Path(path), module) if str(path) != "-" else []
    for target, evidence in _EVIDENCE:
        for mark in evidence:
            if any(mark in name for name in names):
                return ChosenTarget(target, f"there are dumps called {mark}")
    return _target_of_folder(Path(path)) if str(path) != "-" else None


def _target_of_folder(path: Path) -> ChosenTarget | None:
    """The target that the folder of a corpus is called by: `gpu-legacy/softmax`, `cpu`, `gpu-h100_sxm`."""
    try:
        path = path.resolve()
        case = path if path.is_dir() else path.parent
        corpus = case.parent if is_corpus_case(case) else case
        if corpus == case and not (path.is_dir() and corpus_cases(case)):
            return None
    except (OSError, ValueError, HlofuseError):
        return None
    for target in sorted(TARGETS, key=len, reverse=True):
        if corpus.name == target or corpus.name.startswith(f"{target}-"):
            return ChosenTarget(target, f"it lies in {corpus.name}")
    return None


def target_of_module(module: Module) -> ChosenTarget | None:
    """The target that only this module's own contents give away."""
    platform, evidence = platform_of(module)
    return ChosenTarget(platform, evidence) if platform in ("cpu", "gpu") else None


def choose_target(
    path: str | os.PathLike[str],
    module: str | None = None,
    *,
    device: bool = False,
    read: Module | None = None,
) -> ChosenTarget:
    """The target for what lies at `path`; `read` is the module, once it has been.

    Names of files and folders tell most, then a device that is given (`device`), then the module's contents.
    Those tell a GPU, but not the release: it is `gpu` then.
    """
    named = target_of_files(path, module)
    if named is not None and not (device and named.name == "cpu"):
        return named
    if device:
        return ChosenTarget("gpu", "a device is given")
    inside = target_of_module(read) if read is not None else None
    return inside or ChosenTarget(DEFAULT)


def release_doubt(chosen: ChosenTarget, module: Module) -> str:
    """What to say where an XLA before that of the chosen target wrote the module; empty if nothing shows it.

    Since 0.11 places in the source stand in tables ahead of the module, before they stood in every line.
    """
    if chosen.name not in ("cpu", "gpu") or module.lowered_from is not None:
        return ""
    for i in module.instructions():
        metadata = i.attributes.get("metadata")
        if metadata is None or not metadata.source_file:
            continue
        old = f"an XLA older than 0.11 wrote this module ({printable(i.name)} names its source file itself)"
        if chosen.name == "gpu":
            return f"{old}: if PriorityFusion was off, as it once was, it is for --target gpu-legacy"
        backend = "" if chosen.evidence else ", and nothing in it tells for which backend"
        return f"{old}{backend}: taken for cpu; a GPU's asks for --target gpu-legacy (or gpu) and --device"
    return ""


def _names(path: Path, module: str | None) -> Iterable[str]:
    try:
        if path.is_dir():
            if is_corpus_case(path):
                return os.listdir(path)
            cases = corpus_cases(path)
            if cases:
                return [n for c in cases if module in (None, c.name) for n in os.listdir(c)]
            directory = DumpDirectory(path)
            chosen = directory.pick(module) if module is not None else directory.main()
            label = f"{chosen.label}." if chosen is not None else ""
            return [n for n in os.listdir(path) if n.startswith(label)]
        named = read_name(path)
        if named is not None:
            start = f"module_{named.module_id:04d}.{named.module}."
            return [n for n in os.listdir(path.parent) if start in n]
        if is_corpus_case(path.parent) and path.name.endswith((".hlo", ".hlo.gz")):
            return os.listdir(path.parent)
        return [path.name]
    except (OSError, ValueError, HlofuseError):
        pass  # reading the input will say what is wrong with it
    return []
