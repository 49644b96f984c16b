"""A tracked chain of reshapes and transposes moves the elements as the chain does, however short it gets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hlofuse.passes.dot.shape_tracker import ShapeTracker, Step, zipped

SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)


def transposed(elements: Sequence[int], sizes: Sequence[int], permutation: Sequence[int]) -> list[int]:
    """A row-major array's elements with its dimensions in another order."""
    strides = [math.prod(sizes[d + 1 :]) for d in permutation]
    places = itertools.product(*(range(sizes[d]) for d in permutation))
    return [elements[sum(i * s for i, s in zip(place, strides, strict=True))] for place in places]


def moved(sizes: Sequence[int], steps: Sequence[Step]) -> tuple[list[int], tuple[int, ...]]:
    """The elements 0, 1, 2, ... of an array behind these steps, and its sizes."""
    elements, now = list(range(math.prod(sizes))), tuple(sizes)
    for kind, values in steps:
        if kind == "transpose":
            elements = transposed(elements, now, values)
            now = tuple(now[d] for d in values)
        else:
            now = values
    return elements, now


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[int], list[Step]]:
    sizes = draw(SIZES)
    now, steps = tuple(sizes), []
    for _ in range(draw(st.integers(0, 5))):
        step: Step
        if draw(st.booleans()):
            step = ("transpose", tuple(draw(st.permutations(range(len(now))))))
            now = tuple(now[d] for d in step[1])
        else:
            factors = [p for n in now for p in {4: (2, 2), 6: (2, 3)}.get(n, (n,)) if p > 1]
            cuts = sorted(draw(st.sets(st.integers(0, len(factors)), max_size=4)) | {0, len(factors)})
            now = tuple(math.prod(factors[a:b]) for a, b in itertools.pairwise(cuts)) or (1,)
            step = ("reshape", now)
        steps.append(step)
    return sizes, steps


def tracked(sizes: Sequence[int], steps: Sequence[Step]) -> ShapeTracker:
    tracker = ShapeTracker.of(sizes)
    for kind, values in steps:
        (tracker.transpose if kind == "transpose" else tracker.reshape)(values)
    return tracker


@given(chains())
def test_the_steps_and_those_of_the_chain_move_the_elements_alike(
    chain: tuple[list[int], list[Step]],
) -> None:
    sizes, steps = chain
    tracker = tracked(sizes, steps)
    assert moved(sizes, tracker.steps()) == moved(sizes, steps)
    assert moved(sizes, tracker.uncombined_steps()) == moved(sizes, steps)


@given(chains())
def test_the_inverse_puts_every_element_back(chain: tuple[list[int], list[Step]]) -> None:
    sizes, _ = chain
    tracker = tracked(*chain)
    there_and_back = [*tracker.steps(), *tracker.inverted().steps()]
    assert moved(sizes, there_and_back) == (list(range(math.prod(sizes))), tuple(sizes))


@given(chains(), chains())
def test_zipped_trackers_move_each_its_own_dimensions(
    one: tuple[list[int], list[Step]], two: tuple[list[int], list[Step]]
) -> None:
    first, second = tracked(*one), tracked(*two)
    both = zipped([first, second])
    elements, sizes = moved(both.source, both.steps())
    (outer, outer_sizes), (inner, inner_sizes) = moved(*one), moved(*two)
    assert sizes == (*outer_sizes, *inner_sizes)
    assert elements == [a * len(inner) + b for a in outer for b in inner]
