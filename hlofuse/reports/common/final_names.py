"""XLA's final names: those of `after_optimizations` dumps and of profiles.

`rename_fusions` and the passes that follow rename nearly every kernel that fusion leaves. Where XLA's final
module is at hand, its instructions are matched with the replay's by what they compute; otherwise the passes
after fusion are replayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from hlofuse.analysis.kernels import kernels
from hlofuse.compilation import Compilation
from hlofuse.ir.graph import Module
from hlofuse.matching.pairs import match
from hlofuse.reports.common.model import both_names

NamesSource: TypeAlias = Literal["dump", "replayed"]


@dataclass(frozen=True)
class FinalNames:
    """The names at the end of the compilation, and those at the end of fusion."""

    module: Module
    names_at_fusion: Mapping[str, str] = field(repr=False)
    """Names at the end of the fusion passes by final names, without later additions."""
    source: NamesSource
    """`dump`: read from XLA's final module; `replayed`: from the passes after fusion."""

    @cached_property
    def _final(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for final, name in self.names_at_fusion.items():
            if final == name or name not in found:
                found[name] = final
        return found

    def of(self, name: str) -> str:
        """The final name of an instruction of the module after fusion; its own where it has no other."""
        return self._final.get(name, name)

    def knows(self, name: str) -> bool:
        """True if an instruction of the module after fusion has a final name."""
        return name in self._final


def final_names(replay: Compilation, final: Module | None = None) -> FinalNames:
    """The final names of what a replay leaves; `final` is XLA's own final module, where that is at hand."""
    if final is None or replay.config.changes:
        return FinalNames(replay.final, replay.names_at_fusion, "replayed")
    return FinalNames(final, match(replay.after, final).names, "dump")


class LaunchedNames:
    """Both names of what a replay launches."""

    def __init__(self, replay: Compilation, names: FinalNames | None = None) -> None:
        """`names` are preferred where they come from XLA's own final module."""
        self._module, self._at_fusion = replay.final, replay.names_at_fusion
        self._names = names if names is not None and names.source == "dump" else None
        self.source: NamesSource = "dump" if self._names is not None else "replayed"

    def of(self, name: str) -> tuple[str, str]:
        """The name at the end of fusion (its own for what later passes made), and the final name."""
        at_fusion = self._at_fusion.get(name)
        if at_fusion is None:
            return name, name
        if self._names is not None and self._names.knows(at_fusion):
            return at_fusion, self._names.of(at_fusion)
        return at_fusion, name

    def shown(self) -> dict[str, str]:
        """For each kernel of the final module its final name, then that at the end of fusion."""
        names = [k.name for k in kernels(self._module)]
        return {name: both_names(*reversed(self.of(name))) for name in names}

    def renamed(self) -> dict[str, str]:
        """By their names at the end of fusion the final ones of kernels that have another."""
        both = (self.of(k.name) for k in kernels(self._module))
        return {at_fusion: final for at_fusion, final in both if at_fusion != final}
