"""Elements of tuples that a text leaves out, as nobody reads them."""

from __future__ import annotations

import pytest

from hlofuse.inputs.ordered import in_creation_order, restore_unread_elements
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.ir.unique_ids import ComputationIds, Element, UniqueIds
from ..fixtures import companion_texts

TEXTS = companion_texts(__file__)

CALL = TEXTS["call"]
LOOP = TEXTS["loop"]


def elements(module: Module, computation: str, source: str) -> list[int]:
    """Indices of those that stand right behind what they are of, with nothing between."""
    order = list(next(c for c in module.computations if c.name == computation))
    place = next(k for k, i in enumerate(order) if i.name == source)
    found = []
    for i in order[place + 1 :]:
        if i.opcode != "get-tuple-element":
            break
        found.append(i.tuple_index)
    return found


def test_a_call_is_taken_apart_whole() -> None:
    module = parse_module(CALL)
    restore_unread_elements(module, None)
    assert elements(module, "main", "call") == [0, 1]


@pytest.mark.parametrize(
    ("computation", "source", "indices"),
    [
        ("main", "while", [0, 1]),  # the last is handed in for the body to read
        ("body", "p", [0, 1, 2]),
        ("condition", "q", [0, 1, 2]),
        ("main", "begin", []),
    ],
)
def test_what_a_loop_reads_from_outside_does_not_come_out(
    computation: str, source: str, indices: list[int]
) -> None:
    module = parse_module(LOOP)
    restore_unread_elements(module, None)
    assert elements(module, computation, source) == indices


@pytest.mark.parametrize("cached", [(0,), (0, 1)])
def test_ids_tell_which_there_are(cached: tuple[int, ...]) -> None:
    module = parse_module(CALL)
    names = {"y": 0, "call": 1, "exp": 4, **{f"gte.{k}": 2 + k for k in cached}}
    found = {(1, k): Element(f"gte.{k}", False) for k in cached}
    in_creation_order(module, UniqueIds({"main": ComputationIds(names, found)}))
    assert [i.name for i in module.entry] == ["y", "call", *(f"gte.{k}" for k in cached), "exp"]
