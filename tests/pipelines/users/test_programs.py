"""The order of users in small programs (`tools/corpus/users.py`) against XLA's record, a rule each."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.history import restore_history
from hlofuse.trace.priority_record import PriorityStep

from ..gpu_cases import Case, cases

CASES = cases("gpu-users")


def xlas_order(case: Case) -> dict[str, list[str]]:
    """The users of each producer when XLA first looked at it."""
    found: dict[str, list[str]] = {}
    for step in case.record.steps:
        if isinstance(step, PriorityStep):
            found.setdefault(step.producer, list(step.consumers))
    return found


def our_order(case: Case, *, ids: bool) -> dict[str, list[str]]:
    module = parse_module(case.before)
    restore_history(module, case.ids if ids else None)
    return {x.name: [u.name for u in x.users] for c in module.computations if c.fusion is None for x in c}


def test_there_is_a_device_that_widens_and_one_that_does_not() -> None:
    assert {c.device for c in CASES.values()} == {"v100", "h100_sxm"}
    assert len(CASES) == 56


@pytest.mark.parametrize("name", sorted(CASES))
def test_users_stand_as_in_xlas_record(name: str) -> None:
    case = CASES[name]
    ours = our_order(case, ids=True)
    # What fusion itself made in between is no part of the module it was given.
    for producer, users in xlas_order(case).items():
        if set(users) == set(ours.get(producer, ())):
            assert ours[producer] == users, producer


# Which of these ids are not needed for: what is told from names, types and places in the source.
FROM_TEXT = sorted(
    name
    for name in CASES
    if name.rpartition("/")[2]
    in {
        "cast_there_and_back",
        "divided_and_multiplied",
        "expanded_in_two_ways",
        "expanded_once",
        "summed_again",
        "summed_once",
        "wide_product_read_narrow",
        "widened_sum_read_wide_and_narrow",
    }
)


@pytest.mark.parametrize("name", FROM_TEXT)
def test_users_stand_as_in_xlas_record_from_text_alone(name: str) -> None:
    case = CASES[name]
    ours = our_order(case, ids=False)
    for producer, users in xlas_order(case).items():
        if set(users) == set(ours.get(producer, ())):
            assert ours[producer] == users, producer
