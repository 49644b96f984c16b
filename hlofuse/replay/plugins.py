"""What plugins add to a target's passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.ir.errors import HlofuseError
from hlofuse.passes.base import Pass
from hlofuse.passes.registry import pass_names, single_passes
from hlofuse.pipelines.targets import TARGETS
from hlofuse.rules.settings import Settings

if TYPE_CHECKING:
    from hlofuse.plugins.active import ActiveRules
    from hlofuse.plugins.entries import CustomFusion, Kernel

REWRITER = "custom-kernel-fusion-rewriter"


def with_plugins(passes: tuple[str, ...], target: str, settings: Settings) -> tuple[str, ...]:
    """The passes, with custom fusions made before the first of them if there are any for this target
    (a list of the user's own may name that pass elsewhere)."""
    if settings.plugins is None:
        return passes
    from hlofuse.plugins.active import ActiveRules

    active = settings.plugins
    if not isinstance(active, ActiveRules):
        return passes
    _check_names(active)
    added = active.fusions(target) and REWRITER not in single_passes(passes)
    return (REWRITER, *passes) if added else passes


def custom_kernels(done: Pass) -> dict[str, tuple[CustomFusion, Kernel]]:
    """The custom fusions that a pass has made."""
    return getattr(done, "kernels", {})


def _check_names(active: ActiveRules) -> None:
    """A rule about a target or pass that does not exist would keep silent for ever."""
    from hlofuse.plugins.entries import FusionRule

    for package in active.packages:
        for entry in package.entries:
            where = f"rules package {package.name}: {entry.code}"
            for target in entry.targets:
                if target not in TARGETS:
                    raise HlofuseError(f"{where} is about target {target!r}; there are: {', '.join(TARGETS)}")
            names = set().union(*(pass_names(t) for t in entry.targets or TARGETS))
            for name in entry.passes if isinstance(entry, FusionRule) else ():
                if name not in names:
                    raise HlofuseError(
                        f"{where} is about pass {name!r}; there are: {', '.join(sorted(names))}"
                    )
