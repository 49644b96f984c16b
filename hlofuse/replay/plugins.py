"""Whether rules of plugins are about passes that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.ir.errors import HlofuseError
from hlofuse.passes.registry import pass_names
from hlofuse.pipelines.targets import TARGETS

if TYPE_CHECKING:
    from hlofuse.rules.verdict import PluginRules


def check_names(rules: PluginRules) -> None:
    """HlofuseError for a rule about a target or pass that does not exist: it would keep silent for ever."""
    from hlofuse.plugins.active import ActiveRules

    for package in rules.packages if isinstance(rules, ActiveRules) else ():
        for entry in package.entries:
            where = f"rules package {package.name}: {entry.code}"
            for target in entry.targets:
                if target not in TARGETS:
                    raise HlofuseError(f"{where} is about target {target!r}; there are: {', '.join(TARGETS)}")
            names = set().union(*(pass_names(t) for t in entry.targets or TARGETS))
            for name in entry.passes:
                if name not in names:
                    raise HlofuseError(
                        f"{where} is about pass {name!r}; there are: {', '.join(sorted(names))}"
                    )
