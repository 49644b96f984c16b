"""Evaluating the rules of a pass in order, with the settings of the replay and the rules of plugins."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from hlofuse.ir.graph import Instruction
from hlofuse.releases import Release
from hlofuse.rules.settings import Settings
from hlofuse.rules.verdict import Verdict

Q = TypeVar("Q")
"""The question a pass puts to its rules."""


@lru_cache(maxsize=256)
def in_force(
    rules: tuple[Callable[[Q], Verdict | None], ...], release: Release
) -> tuple[Callable[[Q], Verdict | None], ...]:
    """The rules in that release of XLA, in their order."""
    spans = ((evaluate, getattr(evaluate, "rule", None)) for evaluate in rules)
    return tuple(evaluate for evaluate, rule in spans if rule is None or release.has(rule.span, rule.code))


def first_verdict(
    rules: Iterable[Callable[[Q], Verdict | None]], candidate: Q, settings: Settings
) -> Verdict | None:
    """The answer of the first rule that has one; rules switched off are passed over."""
    for evaluate in rules:
        verdict = evaluate(candidate)
        if verdict is not None and verdict.rule.code not in settings.disabled:
            if settings.lifted and not verdict.allows and not verdict.rule.fixed:
                continue
            return verdict
    return None


def pair_verdict(
    rules: Iterable[Callable[[Q], Verdict | None]],
    candidate: Q,
    settings: Settings,
    producer: Instruction,
    consumer: Instruction,
) -> Verdict | None:
    """The answer about a pair: what rules from outside refuse, then XLA's, then what those allow.

    A rule from outside that allows lifts the refusals that could be disabled as well, no others: without
    them the program would be wrong. Its own verdict comes back only where it was needed.
    """
    plugins = settings.plugins
    if plugins is None:
        return first_verdict(rules, candidate, settings)
    own = plugins.verdict(producer, consumer)
    if own is not None and not own.allows:
        return own
    verdict = first_verdict(rules, candidate, settings)
    if own is not None and verdict is not None and not verdict.allows:
        verdict = first_verdict(rules, candidate, replace(settings, lifted=True))
        if verdict is None or verdict.allows:
            verdict = own
    return verdict


def pair_refusal(
    rules: Iterable[Callable[[Q], Verdict | None]],
    candidate: Q,
    settings: Settings,
    producer: Instruction,
    consumer: Instruction,
) -> Verdict | None:
    """The same where XLA's rules only ever refuse: None if the pair is allowed."""
    verdict = pair_verdict(rules, candidate, settings, producer, consumer)
    return None if verdict is None or verdict.allows else verdict
