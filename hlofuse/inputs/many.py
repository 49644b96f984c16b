"""Every module of a directory, by name: what two directories are paired by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.inputs.choose_target import target_of_files
from hlofuse.inputs.dump_directory import DumpDirectory, corpus_cases, corpus_file
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir.errors import HlofuseError

STAGES = ("input", "output")
"""Of the fusion passes."""
_SUFFIXES = (".hlo", ".hlo.gz", ".txt", ".txt.gz")


@dataclass(slots=True)
class Many:
    """What a directory holds."""

    files: dict[str, Path] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    """Modules that have no dump of the stage, each with the reason."""

    def pick(self, name: str) -> Path:
        """The module of that name (`jit_f` or `f`); HlofuseError where there is none."""
        for candidate in (name, f"jit_{name}"):
            if candidate in self.files:
                return self.files[candidate]
        raise HlofuseError(
            f"there is no module {printable(name)} at that stage{did_you_mean(name, self.files)}"
        )


def modules_at(path: Path, stage: str = "output") -> Many:
    """The modules of a corpus, a dump directory, or a directory of text dumps, at the fusion passes' `stage`.

    A directory of plain files has no stages: they are taken as they are.
    HlofuseError for one without modules.
    """
    found = Many()
    cases = corpus_cases(path)
    if cases:
        name = "after" if stage == "output" else "before"
        for folder in cases:
            file = corpus_file(folder, name)
            if file is None:
                found.skipped.append(f"{printable(folder.name)} has no {name}.hlo")
            else:
                found.files[folder.name] = file
        return found
    plain = {_stem(f): f for f in sorted(path.iterdir()) if f.is_file() and _stem(f)}
    if plain and not any(f.name.startswith("module_") or ".module_" in f.name for f in plain.values()):
        found.files = plain
        return found
    directory = DumpDirectory(path)
    chosen = target_of_files(path)
    target = chosen.name if chosen is not None else "cpu"
    count, seen = Counter(m.name for m in directory.modules), Counter[str]()
    for module in directory.modules:
        try:
            before, passes = module.stages(target)
        except HlofuseError as e:
            # Of --xla_dump_to alone: the module before optimizations and after.
            whole = module.finished if stage == "output" else module.whole.get("before_optimizations")
            if whole is None:
                found.skipped.append(str(e).split("\n")[0])
                continue
            before, passes = whole, []
        # Numbers of modules differ from run to run, their order less.
        seen[module.name] += 1
        label = module.name if count[module.name] == 1 else f"{module.name}#{seen[module.name]}"
        found.files[label] = passes[-1][1] if passes and stage == "output" else before
    if not found.files:
        raise HlofuseError(
            "\n".join([f"{printable(str(path))} holds nothing to compare:", *found.skipped[:10]])
        )
    return found


def _stem(file: Path) -> str:
    """The name without what says that it is HLO; empty for another file."""
    for suffix in _SUFFIXES:
        if file.name.endswith(suffix):
            return file.name.removesuffix(suffix)
    return ""
