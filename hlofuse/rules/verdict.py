"""What a rule says when it is asked, and asking a pass's rules in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

from hlofuse.rules.catalogue import Rule, register
from hlofuse.rules.settings import Settings

Q = TypeVar("Q")
"""The question a pass puts to its rules."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rule's answer: it settles the question, and these are the figures it rested on."""

    rule: Rule
    figures: dict[str, Any] = field(default_factory=dict)
    words: Any = None
    """XLA's words where they differ from case to case; made a text only when asked for."""

    @property
    def allows(self) -> bool:
        return self.rule.allows

    @property
    def reason(self) -> str:
        """XLA's words; the rule's title where XLA has none."""
        return str(self.words) if self.words is not None else self.rule.message or self.rule.title


def asks(rule: Rule) -> Callable[[Callable[[Q], dict[str, Any] | None]], Callable[[Q], Verdict | None]]:
    """Enter a rule into the catalogue and tie it to its predicate.

    The predicate returns the figures when the rule settles the question, None to pass it on.
    """
    register(rule)

    def tie(predicate: Callable[[Q], dict[str, Any] | None]) -> Callable[[Q], Verdict | None]:
        @wraps(predicate)
        def ask(question: Q) -> Verdict | None:
            figures = predicate(question)
            return None if figures is None else Verdict(rule, figures)

        return ask

    return tie


def first_verdict(
    rules: Iterable[Callable[[Q], Verdict | None]], question: Q, settings: Settings
) -> Verdict | None:
    """The answer of the first rule that has one; rules switched off are passed over."""
    for ask in rules:
        verdict = ask(question)
        if verdict is not None and verdict.rule.code not in settings.disabled:
            if settings.lifted and not verdict.allows and not verdict.rule.fixed:
                continue
            return verdict
    return None
