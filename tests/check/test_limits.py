"""Quantities as people write them."""

from __future__ import annotations

import pytest

from hlofuse.ir import HlofuseError
from hlofuse.reports.check.baseline import most_significant, parse_bytes, parse_time
from hlofuse.reports.check.model import RefusedEdge, Where
from hlofuse.reports.common.model import Place


@pytest.mark.parametrize(
    ("text", "value"),
    [("1500000", 1_500_000),
     ("1.5MB", 1_500_000), ("2 GiB", 2 << 30), ("3kb", 3000), ("2e3", 2000), ("7 B", 7),
     ("2_000", 2000), ("1,000 KiB", 1_024_000)],
)  # fmt: skip
def test_bytes(text: str, value: int) -> None:
    assert parse_bytes(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("120us", 120), ("120 µs", 120), ("0.5ms", 500), ("2s", 2e6), ("10ns", 0.01), (".5 ms", 500)],
)
def test_times_are_in_microseconds(text: str, value: float) -> None:
    assert parse_time(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "MB", "-3", "3 parsec", "1e999", "nan", "0x10", "3 us us"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    for parse in (parse_bytes, parse_time):
        with pytest.raises(HlofuseError, match="expected"):
            parse(text)


def test_a_time_without_a_unit_is_refused() -> None:
    with pytest.raises(HlofuseError, match="units: ns, us, ms, s"):
        parse_time("3")


def test_a_producer_that_a_rule_keeps_from_several_users_is_named_once() -> None:
    def pair(rule: str, producer: str, consumer: str) -> RefusedEdge:
        return RefusedEdge(rule, "", "", Place(producer), Place(consumer), frozenset(), Where(), 8, None)

    refused = [pair("PF002", "dot", "a"), pair("PF002", "dot", "b"), pair("PF031", "dot", "c")]
    refused += [pair("PF002", f"dot.{k}", "a") for k in range(9)]
    reported = [(h.rule, h.producer.name, h.consumer and h.consumer.name) for h in most_significant(refused)]
    assert reported[:3] == [("PF002", "dot", "a"), ("PF031", "dot", "c"), ("PF002", "dot.0", "a")]
    assert len(reported) == 5
