"""The shortest chains of reshapes and transposes, by `BufferView` (`xla/hlo/analysis/shape_tracker.cc`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from msgspec import Struct

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Dims, Instruction, Ints
from hlofuse.passes.common.make import added
from hlofuse.passes.common.shapes import array, is_identity, permute, permuted

View = tuple[tuple[int, int], ...]
"""Pairs of stride and extent, the outermost first; no extent is 1 but in a view of one element."""


def compact(sizes: Ints) -> View:
    """All elements in the order they lie in."""
    return ((1, math.prod(sizes)),)


def of_dimensions(sizes: Ints, dimensions: Ints) -> View:
    """These dimensions of a row-major array."""
    return tuple((math.prod(sizes[d + 1 :]), sizes[d]) for d in dimensions)


def elements(view: View) -> int:
    return math.prod(extent for _, extent in view) if view else 0


def joined(parts: Sequence[View]) -> View:
    """The concatenation, with contiguous neighbours merged."""
    out = list[tuple[int, int]]()
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


def split(view: View, sizes: Ints) -> list[View] | None:
    """The view of every dimension when it is cut into these; None where a cut goes through a piece."""
    parts = []
    remaining = iter(view)
    stride, left = next(remaining)
    for size in sizes:
        part = []
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
    """The view as a reshape of the array followed by a transpose."""
    order = sorted(range(len(view)), key=lambda k: -view[k][0])
    permutation = [0] * len(view)
    for place, k in enumerate(order):
        permutation[k] = place
    return [view[k][1] for k in order], permutation


def intersection(view: View, other: View) -> View | None:
    """The part of `other` in `view`, in the order of `view`; None where strides do not divide each other."""
    second = normalized(other)
    out = []
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
    out = []
    for view in views:
        overlap = intersection(view, part)
        if overlap is None or elements(overlap) != expected:
            return None
        places = packed(view)
        following = []
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


Step = tuple[str, Dims]  # `reshape` with sizes or `transpose` with a permutation


class NotTracked(Exception):
    """XLA reports an error here."""


class ShapeTracker(Struct):
    """From an array of the sizes `source` to one of the sizes `result`; layouts do not count. `views` are
    transposes with a copy between any two. An array of one element needs none."""

    source: Dims
    result: Dims
    views: list[View]

    @classmethod
    def of(cls, sizes: Ints) -> ShapeTracker:
        """From an array to itself."""
        return cls(tuple(sizes), tuple(sizes), [compact(sizes)])

    @classmethod
    def between(cls, producer: Instruction, consumer: Instruction) -> ShapeTracker:
        """From one instruction to a later one (`FromProducerConsumer`)."""
        chain = []
        while consumer is not producer:
            chain.append(consumer)
            consumer = consumer.operand
        tracker = cls.of(producer.sizes)
        for instruction in reversed(chain):
            tracker.append(instruction)
        return tracker

    @classmethod
    def siblings(cls, source: Instruction, result: Instruction) -> ShapeTracker:
        """By way of what both are made of (`FromSiblings`)."""
        above = _lineage(source)
        common = next((i for i in _lineage(result) if i in above), None)
        if common is None:
            raise NotTracked
        tracker = cls.between(common, source).inverted()
        tracker.extend(cls.between(common, result))
        return tracker

    def append(self, instruction: Instruction) -> None:
        """Follow a transpose or reshape; NotTracked for anything else."""
        if instruction.is_transpose:
            self.transpose(instruction.dimensions)
        elif instruction.is_reshape:
            self.reshape(instruction.sizes)
        else:
            raise NotTracked

    def reshape(self, sizes: Ints) -> None:
        """Follow a reshape of the result; NotTracked where it has another number of elements."""
        if math.prod(sizes) != math.prod(self.result):
            raise NotTracked
        self.result = tuple(sizes)

    def transpose(self, permutation: Ints) -> None:
        before, self.result = self.result, permute(self.result, permutation)
        if math.prod(before) == 1:
            return
        wide = [d for d, size in enumerate(before) if size != 1]
        sizes = [before[d] for d in wide]
        parts = split(self.views[-1], sizes)
        if parts is None:
            self.views.append(compact(sizes))
            parts = split(self.views[-1], sizes)
            assert parts is not None
        self.views[-1] = joined([parts[wide.index(d)] for d in permutation if before[d] != 1])
        fold(self.views)

    def transpose_first(self, permutation: Ints) -> None:
        """Put a transpose ahead of everything."""
        if is_identity(permutation):
            return
        back = self.inverted()
        back.transpose(inverse(tuple(permutation)))
        there = back.inverted()
        self.source, self.result, self.views = there.source, there.result, there.views

    def extend(self, other: ShapeTracker) -> None:
        """Follow all that `other` does; NotTracked where it begins with another shape."""
        if self.result != other.source:
            raise NotTracked
        for kind, numbers_ in other.steps():
            if kind == "reshape":
                self.reshape(numbers_)
            else:
                self.transpose(numbers_)
        self.result = other.result

    def inverted(self) -> ShapeTracker:
        """The way back, from the result to the source."""
        back = ShapeTracker.of(self.result)
        if math.prod(self.result) != 1:
            for view in reversed(self.views):
                sizes, permutation = sorted_transposed(view)
                back.reshape(permute(sizes, permutation))
                back.transpose(inverse(tuple(permutation)))
        back.reshape(self.source)
        return back

    def narrow(self, dimensions: Ints) -> ShapeTracker:
        """Only these of the source's dimensions, in this order; the result has no dimension of size 1."""
        ordered = sorted(dimensions)
        remaining = ShapeTracker.of([self.source[d] for d in ordered])
        if math.prod(remaining.source) == 1:
            remaining.reshape(())
            return remaining
        remaining.transpose_first(sorted(range(len(ordered)), key=lambda k: dimensions[k]))
        found = sliced(self.views, of_dimensions(self.source, ordered))
        if found is None:
            raise NotTracked
        for view in found[0]:
            remaining.views.append(view)
            fold(remaining.views)
        remaining.result = tuple(extent for _, extent in found[0][-1])
        return remaining

    def mapped(self, dimensions: Ints) -> list[int] | None:
        """The dimensions that hold what these did, without ones (`MapInputDimensionsToOutputUnordered`)."""
        wide = [d for d in dimensions if self.source[d] != 1]
        if not wide:
            return []
        found = sliced(self.views, normalized(of_dimensions(self.source, wide)))
        parts = split(self.views[-1], self.result)
        if found is None or parts is None:
            return None
        out = []
        for dimension, part in enumerate(parts):
            if self.result[dimension] == 1:
                continue
            common = intersection(part, found[1])
            if common is None or (common and common != part):
                return None
            if common:
                out.append(dimension)
        return out

    def steps(self) -> list[Step]:
        """Reshapes, by sizes, and transposes, by permutation, that do the same."""
        out = []
        sizes = self.source
        if math.prod(self.source) != 1:
            for k, view in enumerate(self.views):
                cut, permutation = sorted_transposed(view)
                moves = not is_identity(permutation)
                if not moves and k == len(self.views) - 1:
                    continue
                if tuple(cut) != sizes:
                    sizes = tuple(cut)
                    out.append(("reshape", sizes))
                if moves:
                    sizes = permute(sizes, permutation)
                    out.append(("transpose", tuple(permutation)))
        if sizes != self.result:
            out.append(("reshape", self.result))
        return out

    def chain(self, source: Instruction) -> Instruction:
        """The instructions after `source` (`ToInstructionChain`)."""
        current = source
        for kind, values in self.uncombined_steps():
            if kind == "reshape":
                current = added(source, kind, array(current.element_type, values), [current])
            else:
                shape = permuted(current.shape, values)
                current = added(source, kind, shape, [current], dimensions=values)
        return current

    def uncombined_steps(self) -> list[Step]:
        """The steps; dimensions that a reshape need not join before a transpose stay (`OptimizeSteps`)."""
        steps = self.steps()
        if math.prod(self.source) == 1:
            return steps
        if steps and steps[-1][0] == "reshape":
            del steps[-1]
        out = []
        sizes = self.source
        last_of = list(range(len(sizes)))
        for kind, values in steps:
            if kind == "reshape":
                cut, last_of = _finer(values, sizes)
                if cut != sizes:
                    out.append((kind, cut))
                sizes = cut
            else:
                firsts = [0, *(last + 1 for last in last_of)]
                permutation = tuple(k for d in values for k in range(firsts[d], last_of[d] + 1))
                sizes = permute(sizes, permutation)
                out.append((kind, permutation))
        if sizes != self.result:
            out.append(("reshape", self.result))
        return out


def zipped(trackers: Sequence[ShapeTracker]) -> ShapeTracker:
    """Side by side, each on dimensions of its own (`ShapeTracker::Zip`)."""
    source = [size for t in trackers for size in t.source]
    out = ShapeTracker.of(source)
    out.result = tuple(size for t in trackers for size in t.result)
    scale = math.prod(source)
    if scale == 1:
        return out
    parts = []
    for tracker in trackers:
        count = math.prod(tracker.source)
        scale //= count
        if count > 1:
            parts.append([tuple((s * scale, e) for s, e in view) for view in tracker.views])
            parts[-1].append(((scale, count),))
    layers = max(len(part) for part in parts) - 1
    out.views = [joined([part[min(layer, len(part) - 1)] for part in parts]) for layer in range(layers)]
    return out


def _lineage(instruction: Instruction) -> dict[Instruction, None]:
    """The instruction and what it is made of, while that is one."""
    found = {instruction: None}
    while instruction.operand_count == 1:
        instruction = instruction.operand
        found[instruction] = None
    return found


def _finer(wanted: Ints, present: Ints) -> tuple[Dims, list[int]]:
    """`wanted` with the further cuts of `present`, and the end of each wanted dimension in it."""
    needed = list(accumulate(wanted, mul))
    there = list(accumulate(present, mul))
    cuts = list[int]()
    last_of = []
    at = 0
    for cut in needed:
        while there[at] < cut:
            if cut % there[at] == 0 and (not cuts or there[at] % cuts[-1] == 0):
                cuts.append(there[at])
            at += 1
        last_of.append(len(cuts))
        cuts.append(cut)
        at += there[at] == cut
    return tuple(b // a for a, b in zip([1, *cuts], cuts, strict=False)), last_of
