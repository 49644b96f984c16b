"""How to replay: a target, a device, the passes, and what of it is not as in XLA."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hlofuse.ir.module import Module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.passes import make_pass
from hlofuse.passes.registry import single_passes, split_passes
from hlofuse.pipelines import passes_of
from hlofuse.pipelines.device import device_of
from hlofuse.pipelines.targets import TARGETS
from hlofuse.replay.optional_passes import with_enabled
from hlofuse.replay.replay import Checkpoint, Replay, replay
from hlofuse.rules.parse_settings import parse_settings
from hlofuse.rules.settings import AS_XLA, Settings

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.cost.gpu.known import KnownStructures
    from hlofuse.passes.fusion.priority_fusion.guide import Guide
    from hlofuse.plugins.active import ActiveRules


@dataclass(frozen=True, slots=True)
class Variant:
    """Everything about a replay but the module."""

    target: str
    device: DeviceDescription | None
    passes: tuple[str, ...]
    settings: Settings = AS_XLA
    changes: tuple[str, ...] = ()
    """What differs from XLA, in words; empty when XLA itself is repeated."""
    xla: Variant | None = None
    """The same without the changes; None when there are none."""

    def replay(
        self,
        module: Module,
        *,
        ids: UniqueIds | None = None,
        guide: Guide | None = None,
        keep_modules: bool = False,
        known: KnownStructures | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Replay:
        """Repeat the passes on a copy of `module` (`hlofuse.replay`)."""
        return replay(
            module,
            self.target,
            device=self.device,
            passes=self.passes,
            keep_modules=keep_modules,
            settings=self.settings,
            ids=ids,
            guide=guide,
            known=known,
            checkpoint=checkpoint,
        )


def variant_of(
    target: str,
    device: str | DeviceDescription | None = None,
    *,
    option: str | None = None,
    overrides: Iterable[str] = (),
    disable: Iterable[str] = (),
    enable: Iterable[str] = (),
    rules: Iterable[str] = (),
    passes: str | None = None,
) -> Variant:
    """What `--set NAME=VALUE`, `--disable`, `--enable`, `--rules`, `--passes` and `--option` ask for.

    HlofuseError for whatever name is not known, with what may have been meant, and for a package of rules
    that cannot be used.
    """
    overrides, disable, enable = tuple(overrides), tuple(disable), tuple(enable)
    standard = passes_of(target, option)
    listed = with_enabled(target, standard, enable) if passes is None else split_passes(passes)
    if passes is not None:
        listed = with_enabled(target, listed, enable)
        for text in single_passes(listed):
            make_pass(text, target)
    stated, _ = device_of(target, device)
    described, knobs = device_of(target, device, overrides)
    outside = _packages(rules)
    added = outside.rules if outside is not None else {}
    settings = replace(
        parse_settings(knobs, disable, known=device_numbers(target), added=added), outside=outside
    )
    changes = (
        *overrides,
        *(f"without {code.upper()}" for code in disable),
        *(f"with {name}" for name in enable),
        *(f"with the rules of {package}" for package in (outside.names if outside is not None else ())),
        *((f"passes {', '.join(listed)}",) if passes is not None else ()),
    )
    if not changes:
        return Variant(target, stated, standard)
    return Variant(target, described, listed, settings, changes, Variant(target, stated, standard))


def _packages(rules: Iterable[str]) -> ActiveRules | None:
    """Those of these names; None where there are none, as nearly always."""
    rules = tuple(rules)
    if not rules:
        return None
    from hlofuse.plugins.installed import load_rules

    outside = load_rules(rules)
    return outside if outside.packages else None


def device_numbers(target: str) -> tuple[str, ...]:
    """The names of a device's numbers, which `--set` takes like knobs; none where no device is asked for."""
    if not TARGETS[target].needs_device:
        return ()
    from dataclasses import fields

    from hlofuse.cost.gpu.device import DeviceDescription

    return tuple(f.name for f in fields(DeviceDescription))
