"""What allowing a rule would save: XLA takes in what pays, and leaves the rest apart."""

from __future__ import annotations

import pytest

from hlofuse.reports.common.model import Place, Refusal
from hlofuse.reports.explain.model import BlockingRule
from hlofuse.reports.explain.phrases import at_stake_text, if_allowed
from hlofuse.rules.catalogue import Rule


def refusal(producer: str, us: float | None) -> Refusal:
    return Refusal(
        Place(producer), "c", "c", "PF005", None, {}, (1,), True, 32,
        us_at_stake=us,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("refused", "us", "row", "rule"),
    [
        ([("a", 3.0), ("a", 3.0), ("b", -9.0), ("c", None)], 3.0, "saves 3.00 µs", ", −3.00 µs if allowed"),
        ([("a", -2.0), ("b", -9.0)], -11.0, "costs 11.00 µs", ", 11.00 µs slower if fused"),
        ([("a", None)], None, "–", ""),
    ],
)
def test_what_pays_is_at_stake(
    refused: list[tuple[str, float | None]], us: float | None, row: str, rule: str
) -> None:
    refusals = tuple(refusal(producer, worth) for producer, worth in refused)
    blocking_rule = BlockingRule(Rule("PF005", "", page={}), refusals)
    assert blocking_rule.us_at_stake == us
    assert at_stake_text(refusals) == row
    assert if_allowed(blocking_rule) == rule
