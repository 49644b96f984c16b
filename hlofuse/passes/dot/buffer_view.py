"""Walks over the elements of a row-major array (`BufferView`, `xla/hlo/analysis/shape_tracker.h`)."""

import math
from collections.abc import Sequence

View = tuple[tuple[int, int], ...]
"""Pairs of stride and extent, the outermost first; no extent is 1 but in a view of one element."""


def compact(sizes: Sequence[int]) -> View:
    """All elements in the order they lie in."""
    return ((1, math.prod(sizes)),)


def of_dimensions(sizes: Sequence[int], dimensions: Sequence[int]) -> View:
    """These dimensions of a row-major array."""
    return tuple((math.prod(sizes[d + 1 :]), sizes[d]) for d in dimensions)


def elements(view: View) -> int:
    return math.prod(extent for _, extent in view) if view else 0


def joined(parts: Sequence[View]) -> View:
    """One behind the other, neighbours that continue each other made one."""
    out: list[tuple[int, int]] = []
    for part in parts:
        for stride, extent in part:
            if out and stride * extent == out[-1][0]:
                out[-1] = (stride, out[-1][1] * extent)
            else:
                out.append((stride, extent))
    return tuple(out)


def normalized(view: View) -> View:
    """By falling strides."""
    return joined([tuple(sorted(view, key=lambda part: -part[0]))])


def packed(view: View) -> View:
    """The same order of elements with no gap between them."""
    out = list(view)
    running = 1
    for k in sorted(range(len(view)), key=lambda k: view[k][0]):
        out[k] = (running, view[k][1])
        running *= view[k][1]
    return tuple(out)


def split(view: View, sizes: Sequence[int]) -> list[View] | None:
    """The view of every dimension when it is cut into these; None where a cut goes through a piece."""
    parts: list[View] = []
    remaining = iter(view)
    stride, left = next(remaining)
    for size in sizes:
        part: list[tuple[int, int]] = []
        missing = size
        while missing > 1:
            taken = min(left, missing)
            if left % taken or missing % taken:
                return None
            left //= taken
            missing //= taken
            part.append((stride * left, taken))
            if left == 1:
                stride, left = next(remaining, (stride, left))
        parts.append(tuple(part))
    return parts


def sorted_transposed(view: View) -> tuple[list[int], list[int]]:
    """As a reshape of the array and a transpose behind it."""
    order = sorted(range(len(view)), key=lambda k: -view[k][0])
    permutation = [0] * len(view)
    for place, k in enumerate(order):
        permutation[k] = place
    return [view[k][1] for k in order], permutation


def intersection(view: View, other: View) -> View | None:
    """What of `other` is in `view`, in the order of `view`; None where strides do not divide each other."""
    second = normalized(other)
    out: list[tuple[int, int]] = []
    for stride, extent in view:
        for other_stride, other_extent in second:
            low, high = sorted((stride, other_stride))
            end = min(stride * extent, other_stride * other_extent)
            if high % low:
                return None
            if end <= high:
                continue
            if end % high:
                return None
            out.append((high, end // high))
    return tuple(out)


def fold(views: list[View]) -> None:
    """Make one of the last two as long as that needs no copy between them."""
    while len(views) > 1:
        sizes, permutation = sorted_transposed(views[-1])
        parts = split(views[-2], sizes)
        if parts is None:
            return
        views[-2:] = [joined([parts[k] for k in permutation])]


def sliced(views: Sequence[View], part: View) -> tuple[list[View], View] | None:
    """The views of some of the elements only, and where these are finally (`SliceProjectionChain`)."""
    expected = elements(part)
    out: list[View] = []
    for view in views:
        overlap = intersection(view, part)
        if overlap is None or elements(overlap) != expected:
            return None
        places = packed(view)
        following: list[tuple[int, int]] = []
        for stride, extent in overlap:
            for (whole, size), (place, _) in zip(view, places, strict=True):
                if stride % whole == 0 and stride * extent <= whole * size:
                    following.append((place * (stride // whole), extent))
                    break
            else:
                return None
        out.append(overlap)
        fold(out)
        out[-1] = packed(out[-1])
        part = tuple(following)
    return out, part
