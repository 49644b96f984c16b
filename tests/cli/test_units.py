"""Quantities as people read them."""

from __future__ import annotations

import pytest

from hlofuse.format.escape import command_line
from hlofuse.format.units import bytes_text, change_percent, plural, quantity, ranges, us_text
from hlofuse.inputs.suggest import close_matches, did_you_mean


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (9_994, "9.99 kB"),
        (9_996, "10.0 kB"),
        (99_949, "99.9 kB"),
        (99_951, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (8_388_608, "8.39 MB"),
        (-12, "−12 B"),
        (10**30, "1000000000000 EB"),
    ],
)
def test_bytes(value: int, text: str) -> None:
    assert bytes_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 µs"),
        (0.005, "0.01 µs"),
        (12.345, "12.35 µs"),
        (99.94, "99.94 µs"),
        (99.96, "100.0 µs"),
        (999.4, "999.4 µs"),
        (999.5, "1.00 ms"),
        (5_500, "5.50 ms"),
        (9_994, "9.99 ms"),
        (9_996, "10.0 ms"),
        (999_499, "999 ms"),
        (999_500, "1.00 s"),
        (2_669_600, "2.67 s"),
        (-12_345_678, "−12.3 s"),
        (7_200_000_000, "7,200 s"),
    ],
)
def test_times(value: float, text: str) -> None:
    assert us_text(value) == text
    assert us_text(value, at_least=True) == (f"≥ {text}" if value else text)


def test_a_time_never_reads_as_nothing() -> None:
    for value in (0.0049, -0.001, 1e-9):
        assert us_text(value) == "<0.01 µs"
        assert us_text(value, at_least=True) == "> 0 µs"


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (1000.04, "±0%"),
        (1000.06, "+0.006%"),
        (900.4, "−10%"),
        (900.6, "−9.9%"),
        (6, "−99%"),
        (4, "−99.6%"),
        (0.4, "−99.96%"),
        (0.01, "−99.99%"),
        (0, "−100%"),
        (2000, "+100%"),
        (3.5e6, "+349,900%"),
    ],
)
def test_changes_in_percent(after: float, text: str) -> None:
    assert change_percent(1000, after) == text


def test_counts() -> None:
    assert quantity(12.5, "us") == "12.5 us"
    assert (plural(1, "edge"), plural(1234, "edge"), plural(2, "body", "bodies")) == (
        "1 edge",
        "1,234 edges",
        "2 bodies",
    )


def test_runs_of_steps_are_drawn_together() -> None:
    assert ranges([1, 2, 3, 5, 9, 10]) == "1–3, 5, 9–10"
    assert ranges([]) == ""


def test_suggestions() -> None:
    names = ["reduce.3", "reduce.12", "add.1", "multiply_reduce_fusion"]
    assert close_matches("reduce", names)[0] == "reduce.3"
    assert close_matches("REDUCE.12", names)[0] == "reduce.12"
    assert did_you_mean("zzz", names) == ""
    assert did_you_mean("ad.1", names) == "; did you mean add.1?"


def test_commands_to_go_on_with_are_quoted() -> None:
    text = command_line("why", "my dump.hlo", None, "a;b", "\x1b[0m")
    assert text == "hlofuse why 'my dump.hlo' 'a;b' '\\x1b[0m'"
