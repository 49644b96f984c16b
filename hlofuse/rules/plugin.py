"""Rules that are not XLA's, as a pass meets them (`hlofuse.plugins` has what is behind)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from hlofuse.ir.instruction import Instruction
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.settings import Settings
from hlofuse.rules.verdict import Verdict, first_verdict

Q = TypeVar("Q")
"""The question a pass puts to its rules."""


class OutsideRules(Protocol):
    """What a replay asks of rules from outside."""

    @property
    def names(self) -> tuple[str, ...]:
        """The packages they come from, in words."""
        ...

    @property
    def rules(self) -> Mapping[str, Rule]:
        """Their catalogue entries, by code."""
        ...

    def in_pass(self, name: str, target: str, disabled: Collection[str] = ()) -> OutsideRules:
        """Those that are about a pass (XLA's name) of a target, the disabled ones left out."""
        ...

    def ask(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """The first answer to whether the two may be one kernel; None if none has one."""
        ...

    def keep_apart(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """Why the two stay apart although every rule would let them: one is a kernel from outside."""
        ...


def pair_verdict(
    rules: Iterable[Callable[[Q], Verdict | None]],
    question: Q,
    settings: Settings,
    producer: Instruction,
    consumer: Instruction,
) -> Verdict | None:
    """The answer about a pair: what rules from outside refuse, then XLA's, then what those allow.

    A rule from outside that allows lifts the refusals that could be disabled as well, no others: without
    them the program would be wrong. Its own verdict comes back only where it was needed.
    """
    outside = settings.outside
    if outside is None:
        return first_verdict(rules, question, settings)
    own = outside.ask(producer, consumer)
    if own is not None and not own.allows:
        return own
    verdict = first_verdict(rules, question, settings)
    if own is not None and verdict is not None and not verdict.allows:
        verdict = first_verdict(rules, question, replace(settings, lifted=True))
        if verdict is None or verdict.allows:
            verdict = own
    if verdict is not None and not verdict.allows:
        return verdict
    return outside.keep_apart(producer, consumer) or verdict


def pair_refusal(
    rules: Iterable[Callable[[Q], Verdict | None]],
    question: Q,
    settings: Settings,
    producer: Instruction,
    consumer: Instruction,
) -> Verdict | None:
    """The same where XLA's rules only ever refuse: None if the pair is allowed."""
    verdict = pair_verdict(rules, question, settings, producer, consumer)
    return None if verdict is None or verdict.allows else verdict
