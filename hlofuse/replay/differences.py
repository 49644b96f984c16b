"""What differs between two releases, one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

from hlofuse.pipelines.targets import TARGETS
from hlofuse.releases import Release, Span, behaviours
from hlofuse.rules.catalogue import catalogue

Kind = Literal["behaviour", "rule", "pass"]


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """Something that one of two releases has, or has otherwise."""

    kind: Kind
    name: str
    """The field of `Release`, the rule's code, or the pass or option."""
    title: str
    """In words."""
    source: str
    """XLA's file and function; empty for a pass."""
    span: Span
    """The releases that have it."""

    def turned(self, release: Release) -> Release:
        """`release` with this as in the other one."""
        if self.kind == "behaviour":
            changes: dict[str, Any] = {self.name: not getattr(release, self.name)}
            return replace(release, **changes)
        return replace(release, flipped=release.flipped ^ {self.name})


def differences(target: str, old: Release, new: Release) -> tuple[ReleaseDifference, ...]:
    """What two releases do differently in the fusion passes of a target, as far as it is known."""
    found = [
        ReleaseDifference("behaviour", f.name, f.name.replace("_", " "), known.source, known.span)
        for f in fields(Release)
        if (known := behaviours().get(f.name)) is not None and getattr(old, f.name) != getattr(new, f.name)
    ]
    only_one = partial(_only_one, old, new)
    found += [
        ReleaseDifference("rule", rule.code, rule.title, rule.mirrors, rule.span)
        for rule in catalogue().values()
        if only_one(rule.span, rule.code)
    ]
    cached = TARGETS[target]
    steps = dict.fromkeys(s for listed in (cached.steps, *cached.options.values()) for s in listed)
    found += [
        ReleaseDifference("pass", step.text, f"pass {step.text}", "", step.span)
        for step in steps
        if only_one(step.span, step.text)
    ]
    found += [
        ReleaseDifference("pass", option, f"{option} is on by default", "", span)
        for option, span in cached.default_options.items()
        if only_one(span, option)
    ]
    return tuple(d for d in found if _concerns(d, cached.backend))


def _only_one(old: Release, new: Release, span: Span, name: str) -> bool:
    return old.has(span, name) is not new.has(span, name)


def _concerns(difference: ReleaseDifference, backend: str) -> bool:
    """By the folder of XLA's file: those of the other backend do not."""
    other = {"cpu": "/gpu/", "gpu": "/cpu/"}[backend]
    own = f"/{backend}/"
    source = f"/{difference.source}"
    return other not in source or own in source
