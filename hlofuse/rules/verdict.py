"""Verdicts of XLA's rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Protocol, TypeAlias, TypeVar

from .catalogue import Rule, given_fields_of, register

Figures: TypeAlias = Mapping[str, Any]
"""The numbers that a verdict is based on, read-only: JSON values by name, the unit in the name (`us`)."""
Answer: TypeAlias = Figures | bool | None  # The answer of a predicate
Q = TypeVar("Q")  # The candidate that a pass evaluates its rules on


@dataclass(slots=True)
class Verdict:
    """A rule's decision about a candidate, and the figures it is based on."""

    rule: Rule
    figures: Figures = field(default_factory=dict)
    message: Any = None  # XLA's words where they differ from case to case; formatted on first use

    @property
    def allows(self) -> bool:
        return self.rule.allows

    @property
    def reason(self) -> str:
        """XLA's words; the rule's title where XLA has none."""
        return str(self.message) if self.message is not None else self.rule.message or self.rule.title


Decision: TypeAlias = Verdict | None  # None where a rule says nothing


class _Tie(Protocol):
    def __call__(self, predicate: Callable[[Q], Answer], /) -> Callable[[Q], Decision]: ...


@given_fields_of(register)
def condition(rule: Rule) -> _Tie:
    """Enter a rule into the catalogue and tie it to its predicate. The predicate returns the figures, or True
    without any, when the rule settles the question, None or False to pass it on."""

    def tie(predicate: Callable[[Q], Answer]) -> Callable[[Q], Decision]:
        @wraps(predicate)
        def evaluate(candidate: Q) -> Decision:
            answer = predicate(candidate)
            if answer is None or answer is False:
                return None
            return Verdict(rule, {} if answer is True else answer)

        evaluate.rule = rule  # type: ignore[attr-defined]
        return evaluate

    return tie


requirement = partial(condition, essential=True)
"""A condition without which the program would be wrong, or have no code."""
runner = partial(requirement, allows=True)  # A condition that settles who runs a kernel
