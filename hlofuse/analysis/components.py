"""What lies on cycles of a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def components(edges: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """The strongly connected components of more than one node, as Tarjan finds them.

    R. Tarjan, "Depth-first search and linear graph algorithms", 1972; iterative, as graphs here are deep.
    Every node is a key of `edges`, with those that it leads to.
    """
    found: list[list[T]] = []
    index: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    place: dict[T, int] = {}
    closed: set[T] = set()
    for start in edges:
        pending: list[tuple[T, Iterator[T]]] = [(start, iter(edges[start]))] if start not in index else []
        while pending:
            here, rest = pending[-1]
            if here not in index:
                index[here] = low[here] = len(index)
                place[here] = len(stack)
                stack.append(here)
            for there in rest:
                if there not in index:
                    pending.append((there, iter(edges[there])))
                    break
                if there not in closed:
                    low[here] = min(low[here], index[there])
            else:
                pending.pop()
                if pending:
                    reader = pending[-1][0]
                    low[reader] = min(low[reader], low[here])
                if low[here] == index[here]:
                    at = place[here]
                    if len(stack) - at > 1:
                        found.append(stack[at:])
                    closed.update(stack[at:])
                    del stack[at:]
    return found
