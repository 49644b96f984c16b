"""What differs between releases for one target: rules, behaviours, passes and knobs, from their spans."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.pipelines.targets import TARGETS
from hlofuse.releases import behaviours, release_of
from hlofuse.rules.catalogue import catalogue

_BACKENDS = ("cpu", "gpu")


def groups(target: str, releases: Sequence[str]) -> list[tuple[str, ...]]:
    """The releases in groups that decide alike on a target, each in the order of the releases."""
    found: dict[frozenset[str], list[str]] = {}
    for release in releases:
        found.setdefault(_traits(target, release), []).append(release)
    return [tuple(group) for group in found.values()]


def differences(target: str, releases: Sequence[str]) -> list[str]:
    """Codes of rules, and names of behaviours, passes, options and knobs that some of the releases have."""
    traits = [_traits(target, release) for release in releases]
    if not traits:
        return []
    differing = frozenset.union(*traits) - frozenset.intersection(*traits)
    return sorted({trait.partition(" ")[0] for trait in differing})


def _traits(target: str, release: str) -> frozenset[str]:
    """All that a release has on a target; what a space follows is a value."""
    data, version = TARGETS[target], release_of(release)
    found = {step.text for step in data.steps if version.has(step.span, step.text)}
    found |= {option for option in data.options if data.has_by_default(option, version)}
    for name, behaviour in behaviours().items():
        if _concerns(behaviour.source, data.backend):
            found.add(f"{name} {getattr(version, name)}")
    for code, rule in catalogue().items():
        if rule.package or not _concerns(rule.mirrors, data.backend):
            continue
        if version.has(rule.span, code):
            found.add(code)
        for knob in rule.knobs:
            found.add(f"{knob.name} {knob.default}")
    return frozenset(found)


def _concerns(source: str, backend: str) -> bool:
    """False for XLA files that are another backend's."""
    return f"/{backend}/" in source or not any(f"/{other}/" in source for other in _BACKENDS)
