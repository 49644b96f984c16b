"""The queue of priority fusion: whoever chooses among equals is shown all of them, the greatest id first."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.fusion.priority_fusion.driver import PriorityQueue


@pytest.mark.parametrize("seed", range(20))
def test_a_chooser_sees_all_equals_in_order(seed: int) -> None:
    random_ = random.Random(seed)
    producers = [Instruction(f"p{k}", Shape("f32"), "add") for k in range(30)]
    for k, producer in enumerate(producers):
        producer.id = k
    priorities: dict[Instruction, int] = {}
    shown: list[Sequence[Instruction]] = []

    def choose(equal: Sequence[Instruction]) -> Instruction:
        shown.append(equal)
        return random_.choice(equal)

    queue = PriorityQueue(choose)
    for _ in range(400):
        producer = random_.choice(producers)
        match random_.randrange(4):
            case 0 | 1:
                priorities[producer] = random_.randrange(3)
                queue.set(producer, priorities[producer])
            case 2:
                priorities.pop(producer, None)
                queue.discard(producer)
            case _:
                taken = queue.pop()
                assert (taken is None) == (not priorities)
                if taken is not None:
                    greatest = max(priorities.values())
                    assert shown[-1] == [p for p in reversed(producers) if priorities.get(p) == greatest]
                    assert taken == (taken[0], greatest)
                    assert taken[0] in shown[-1]
                    del priorities[taken[0]]


@pytest.mark.parametrize("condition", [False, True])
def test_what_got_another_id_has_the_place_of_that(condition: bool) -> None:
    one, two, three, four = (Instruction(f"p{k}", Shape("f32"), "add") for k in range(4))
    queue = PriorityQueue((lambda equal: equal[0]) if condition else None)
    for k, producer in enumerate((one, two, three)):
        producer.id = k
        queue.set(producer, 5)
    queue.discard(one)
    one.id, four.id = 3, 4
    queue.set(one, 5)
    popped = [queue.pop()]
    queue.set(four, 5)
    assert [*popped, *(queue.pop() for _ in range(4))] == [(one, 5), (four, 5), (three, 5), (two, 5), None]
