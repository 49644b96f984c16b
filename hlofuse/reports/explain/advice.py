"""What a rule of the catalogue tells a user to do."""

from __future__ import annotations

from hlofuse.reports.explain.model import RuleText

_NOTHING = "Nothing to do"


def can_be_acted_on(rule: RuleText) -> bool:
    """There is something a program could do about it."""
    return bool(rule.advice) and not rule.advice.startswith(_NOTHING)


def advice_line(rule: RuleText) -> str:
    """`What to do: …`; where that is nothing, the advice says so itself. Empty for none."""
    return f"What to do: {rule.advice}" if can_be_acted_on(rule) else rule.advice
