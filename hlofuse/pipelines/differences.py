"""Differences between releases for one target: rules, behaviours, passes and knobs, from their spans."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

from hlofuse.ir import Record, Strings, grouped, replace
from hlofuse.releases import Release, Span, behaviours, release_of
from hlofuse.rules.catalogue import Knob, catalogue
from .targets import TARGETS

Kind = Literal["behaviour", "rule", "pass", "knob"]
_BACKENDS = ("cpu", "gpu")


class ReleaseDifference(Record):
    kind: Kind
    name: str  # The field of `Release`, the rule's code, the pass or option, or the knob
    title: str
    releases: str  # The releases that have it, such as `0.11 or later`
    source: str  # XLA's file and function; empty for a pass
    value_in: Callable[[Release], Any]

    def flipped_in(self, release: Release, other: Release) -> Release:
        """`release` with this as in `other`."""
        if self.kind == "behaviour":
            changes = {self.name: getattr(other, self.name)}
            return replace(release, **changes)
        return replace(release, flipped=release.flipped ^ {self.name})


@lru_cache(maxsize=64)
def differences(target: str, names: Strings) -> tuple[ReleaseDifference, ...]:
    """The differences of named releases in the fusion passes of a target, as far as known."""
    releases = [release_of(name) for name in names]
    return tuple(d for d in _all(target) if len({d.value_in(release) for release in releases}) > 1)


def groups(target: str, releases: Sequence[str]) -> list[Strings]:
    """The named releases in groups that decide alike on a target, each in the order given."""
    traits = list(_all(target))
    found = grouped((tuple(d.value_in(release_of(name)) for d in traits), name) for name in releases)
    return [tuple(group) for group in found.values()]


def _all(target: str) -> Iterator[ReleaseDifference]:
    data = TARGETS[target]
    for name, behaviour in behaviours().items():
        if _concerns(behaviour.source, data.backend):
            spans, source = str(behaviour.span), behaviour.source
            yield ReleaseDifference("behaviour", name, behaviour.text, spans, source, attrgetter(name))
    knobs = dict[str, tuple[Knob, str]]()
    for code, rule in catalogue().items():
        if not _concerns(rule.mirrors, data.backend):
            continue
        yield _of_span(rule.span, "rule", code, rule.title, rule.mirrors)
        knobs |= {k.name: (k, rule.mirrors) for k in rule.knobs if k.by_release}
    for knob, source in knobs.values():
        spans = ", ".join(f"{value:g} in {span}" for span, value in knob.by_release)
        title = f"{knob.summary or knob.name} ({spans}, else {knob.default:g})"
        yield ReleaseDifference("knob", knob.name, title, "", source, knob.value_in)
    for step in data.steps:
        yield _of_span(step.span, "pass", step.text, f"pass {step.text}")
    for option, span in data.default_options.items():
        yield _of_span(span, "pass", option, f"{option} is on by default")


def _of_span(span: Span, kind: Kind, name: str, title: str, source: str = "") -> ReleaseDifference:
    return ReleaseDifference(kind, name, title, str(span), source, lambda release: release.has(span, name))


def _concerns(source: str, backend: str) -> bool:
    """False for XLA files that are another backend's."""
    return f"/{backend}/" in source or not any(f"/{other}/" in source for other in _BACKENDS)
