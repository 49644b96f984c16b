"""Chains of reshapes and transposes, made as short as may be (`xla/hlo/analysis/shape_tracker.cc`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.make import added, numbers
from hlofuse.passes.common.shapes import array, is_identity, permute, permuted
from hlofuse.passes.dot import buffer_view as views
from hlofuse.passes.dot.buffer_view import View

Step = tuple[str, tuple[int, ...]]
"""`reshape` with sizes or `transpose` with a permutation."""


class NotTracked(Exception):
    """XLA reports an error here."""


class ShapeTracker:
    """From an array of the sizes `source` to one of the sizes `result`; layouts do not count.

    `views` are transposes with a copy between any two. An array of one element needs none.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.source = self.result = tuple(sizes)
        self.views: list[View] = [views.compact(sizes)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeTracker):
            return NotImplemented
        own, other_ = ((t.source, t.result, t.views) for t in (self, other))
        return own == other_

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def between(cls, producer: Instruction, consumer: Instruction) -> ShapeTracker:
        """From one instruction to a later one (`FromProducerConsumer`)."""
        chain = []
        while consumer is not producer:
            chain.append(consumer)
            consumer = consumer.operands[0]
        tracker = cls(producer.shape.dimensions)
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
        if instruction.opcode == "transpose":
            self.transpose(instruction.dimensions)
        elif instruction.opcode == "reshape":
            self.reshape(instruction.shape.dimensions)
        else:
            raise NotTracked

    def reshape(self, sizes: Sequence[int]) -> None:
        """Follow a reshape of the result; NotTracked where it has another number of elements."""
        if math.prod(sizes) != math.prod(self.result):
            raise NotTracked
        self.result = tuple(sizes)

    def transpose(self, permutation: Sequence[int]) -> None:
        """Follow a transpose of the result."""
        before, self.result = self.result, permute(self.result, permutation)
        if math.prod(before) == 1:
            return
        wide = [d for d, size in enumerate(before) if size != 1]
        sizes = [before[d] for d in wide]
        parts = views.split(self.views[-1], sizes)
        if parts is None:
            self.views.append(views.compact(sizes))
            parts = views.split(self.views[-1], sizes)
            assert parts is not None
        self.views[-1] = views.joined([parts[wide.index(d)] for d in permutation if before[d] != 1])
        views.fold(self.views)

    def transpose_first(self, permutation: Sequence[int]) -> None:
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
        back = ShapeTracker(self.result)
        if math.prod(self.result) != 1:
            for view in reversed(self.views):
                sizes, permutation = views.sorted_transposed(view)
                back.reshape(permute(sizes, permutation))
                back.transpose(inverse(tuple(permutation)))
        back.reshape(self.source)
        return back

    def narrow(self, dimensions: Sequence[int]) -> ShapeTracker:
        """Only these of the source's dimensions, in this order; the result has no dimension of size 1."""
        ordered = sorted(dimensions)
        remaining = ShapeTracker([self.source[d] for d in ordered])
        if math.prod(remaining.source) == 1:
            remaining.reshape(())
            return remaining
        remaining.transpose_first(sorted(range(len(ordered)), key=lambda k: dimensions[k]))
        found = views.sliced(self.views, views.of_dimensions(self.source, ordered))
        if found is None:
            raise NotTracked
        for view in found[0]:
            remaining.views.append(view)
            views.fold(remaining.views)
        remaining.result = tuple(extent for _, extent in found[0][-1])
        return remaining

    def mapped(self, dimensions: Sequence[int]) -> list[int] | None:
        """The dimensions of the result that hold what these of the source do, without those of size 1
        (`MapInputDimensionsToOutputUnordered`)."""
        wide = [d for d in dimensions if self.source[d] != 1]
        if not wide:
            return []
        found = views.sliced(self.views, views.normalized(views.of_dimensions(self.source, wide)))
        parts = views.split(self.views[-1], self.result)
        if found is None or parts is None:
            return None
        out = []
        for dimension, part in enumerate(parts):
            if self.result[dimension] == 1:
                continue
            common = views.intersection(part, found[1])
            if common is None or (common and common != part):
                return None
            if common:
                out.append(dimension)
        return out

    def steps(self) -> list[Step]:
        """Reshapes, by sizes, and transposes, by permutation, that do the same."""
        out: list[Step] = []
        sizes = self.source
        if math.prod(self.source) != 1:
            for k, view in enumerate(self.views):
                cut, permutation = views.sorted_transposed(view)
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
        """The instructions behind `source` (`ToInstructionChain`)."""
        current = source
        for kind, values in self.uncombined_steps():
            if kind == "reshape":
                current = added(source, kind, array(current.shape.element_type, values), [current])
            else:
                shape = permuted(current.shape, values)
                current = added(source, kind, shape, [current], dimensions=numbers(values))
        return current

    def uncombined_steps(self) -> list[Step]:
        """The steps, but dimensions that a reshape ahead of a transpose need not make one stay apart
        (`OptimizeSteps`)."""
        steps = self.steps()
        if math.prod(self.source) == 1:
            return steps
        if steps and steps[-1][0] == "reshape":
            del steps[-1]
        out: list[Step] = []
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
    out = ShapeTracker(source)
    out.result = tuple(size for t in trackers for size in t.result)
    scale = math.prod(source)
    if scale == 1:
        return out
    parts: list[list[View]] = []
    for tracker in trackers:
        count = math.prod(tracker.source)
        scale //= count
        if count > 1:
            parts.append([tuple((s * scale, e) for s, e in view) for view in tracker.views])
            parts[-1].append(((scale, count),))
    layers = max(len(part) for part in parts) - 1
    out.views = [views.joined([part[min(layer, len(part) - 1)] for part in parts]) for layer in range(layers)]
    return out


def _lineage(instruction: Instruction) -> dict[Instruction, None]:
    """The instruction and what it is made of, while that is one."""
    found = {instruction: None}
    while len(instruction.operands) == 1:
        instruction = instruction.operands[0]
        found[instruction] = None
    return found


def _finer(wanted: Sequence[int], present: Sequence[int]) -> tuple[tuple[int, ...], list[int]]:
    """`wanted` with the cuts of `present` besides, and where in that each wanted dimension ends."""
    needed = list(accumulate(wanted, mul))
    there = list(accumulate(present, mul))
    cuts: list[int] = []
    last_of: list[int] = []
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
