"""The target of a dump, from the dumps' names and the contents of the module."""

import re

from hlofuse.ir import HlofuseError, Module, Record
from hlofuse.pipelines.flags import parse_flags
from hlofuse.pipelines.identity import FRONT_ENDS, Fact, Source
from hlofuse.pipelines.targets import TARGETS, target_by_flags
from hlofuse.releases import nearest
from .backend import backend_of, marks
from .companions import Companions, Stamp, companions_of
from .dump_directory import corpus_cases, is_corpus_case

NO_TARGET = frozenset({"tpu", *FRONT_ENDS})
"""Backends whose fusion passes are not replayed: their compilers are closed, or not XLA."""
DEFAULT = "cpu"
_OWN_NAME = re.compile(
    r"(?<![a-z0-9])(?:(gpu|cuda|rocm|sm_?\d\d|sm_\d+\.\d|gfx[0-9a-f]{3,4})|(cpu))(?![a-z])", re.IGNORECASE
)


class ChosenTarget(Record):
    """A target and its evidence, which is empty for a requested target or a default."""

    name: str
    evidence: str = ""
    source: Source = "default"

    def backend(self, module: Module) -> Fact:
        """The backend of the module with its evidence; another compiler's name where it has no target."""
        backend = TARGETS[self.name].backend
        if self == requested_target(self.name) or self.source == "stamp":
            return Fact(backend, self.source, self.evidence)
        found = backend_of(module)
        stamp = companions_of(module).stamp
        if found is not None and stamp is not None and stamp.backend == found.value == "tpu":
            return Fact("tpu", "stamp", f"from {stamp.file}")
        if found is not None and found.value in FRONT_ENDS and not module.is_scheduled:
            name = FRONT_ENDS[found.value]
            return Fact(
                backend, "default", f"the module is for {name}, which cannot be replayed ({found.evidence})"
            )
        if found is not None and found.value in (backend, *NO_TARGET):
            return found
        if self.evidence:
            return Fact(backend, self.source, self.evidence)
        return Fact(backend, "default", "default; the input does not show it (--target)")


def requested_target(name: str) -> ChosenTarget:
    """The target of that name, as requested by the user."""
    return ChosenTarget(name, "given by --target", "asked")


def target_of_files(companions: Companions) -> ChosenTarget | None:
    """The target from the stamp or the names of a dump's files; None without evidence."""
    stamped = _target_of_stamp(companions.stamp)
    if stamped is not None or companions.path is None:
        return stamped
    for mark, target in marks()["files"].items():
        if any(mark in name for name in companions.names):
            return ChosenTarget(target, f"dumps are named {mark}", "directory")
    return _target_of_folder(companions)


def _target_of_stamp(stamp: Stamp | None) -> ChosenTarget | None:
    if stamp is None or stamp.backend not in TARGETS:
        return None
    try:
        name = target_by_flags(stamp.backend, nearest(stamp.jaxlib)[0], parse_flags(stamp.flags))
    except HlofuseError:
        name = stamp.backend
    return ChosenTarget(name, f"from {stamp.file}", "stamp")


def _target_of_folder(companions: Companions) -> ChosenTarget | None:
    """The target in the name of a corpus folder: `gpu-legacy/softmax`, `cpu`, `gpu-h100_sxm`."""
    try:
        case = companions.folder.resolve()
        corpus = case.parent if is_corpus_case(case) else case
        if corpus == case and not (companions.is_directory and corpus_cases(case)):
            return None
    except (OSError, ValueError, HlofuseError):
        return None
    for target in sorted(TARGETS, key=len, reverse=True):
        if corpus.name == target or corpus.name.startswith(f"{target}-"):
            return ChosenTarget(target, f"found in {corpus.name}", "directory")
    return None


def choose_target(
    companions: Companions, *, device: bool = False, read: Module | None = None
) -> ChosenTarget:
    """The target for a module with these files next to it; `read` is the module, if loaded. Evidence in order
    of strength: names of dumps, the module's contents, a given device (`device`), the file's own name."""
    named = target_of_files(companions)
    if named is not None and not (device and named.name == "cpu"):
        return named
    inside = backend_of(read) if read is not None else None
    if inside is not None and inside.value in TARGETS and not (device and inside.value == "cpu"):
        return ChosenTarget(inside.value, inside.evidence, inside.source)
    if device:
        return ChosenTarget("gpu", "a device is given", "asked")
    own = _OWN_NAME.search(companions.given.name) if companions.given is not None else None
    if own is not None:
        return ChosenTarget("gpu" if own[1] else "cpu", f"from the file name: {own[0]}", "text")
    return ChosenTarget(DEFAULT)
