"""Turns that never fall."""

from __future__ import annotations

from hlofuse.pipelines.likely_ids.never_back import never_back


def test_as_much_as_possible_of_what_is_told_is_agreed_with() -> None:
    assert never_back([0, 0, 1, 0, 0, 1], [1, 1]) == [0, 0, 0, 0, 0, 1]
    assert never_back([0, None, 1, 1, 0], [1, 1]) == [0, 0, 1, 1, 1]


def test_what_is_told_surely_counts_more_than_what_is_not() -> None:
    assert never_back([0, 1, 0, 0, 0], [1, 1], sure=[1]) == [0, 1, 1, 1, 1]


def test_a_turn_begins_where_something_speaks_against_the_one_before() -> None:
    told = [0, 1, 0, 0, 1, 1]
    assert never_back(told, [1, 1]) == [0, 0, 0, 0, 1, 1]
    assert never_back([0, 0, 0, 1, 0, 1], [1, 1], falls={2: 2}) == [0, 0, 1, 1, 1, 1]
