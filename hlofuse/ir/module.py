"""A whole program (`xla/hlo/ir/hlo_module.h`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from hlofuse.ir.attributes.attributes import NO_ATTRIBUTES, Attributes
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.names import NameUniquer
from hlofuse.ir.print_options import PrintOptions
from hlofuse.ir.stack_frames import SourceLocation, StackFrames

OrderSource: TypeAlias = Literal["xla", "replayed", "estimated", "text"]
"""XLA's ids; its earlier passes, repeated; an estimate; the order of the text."""


class Module:
    """Computations, one of them the entry, with the header's attributes and the source tables.

    `computations` is XLA's processing order for a freshly read dump (callees first), later
    additions at the end; `computation_post_order` works the order out anew.
    """

    __slots__ = (
        "__weakref__",
        "_stack_frames",
        "attributes",
        "computation_names",
        "computations",
        "entry",
        "filename",
        "instruction_names",
        "lowered_from",
        "name",
        "order_source",
        "print_options",
        "processing_order",
    )

    def __init__(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> None:
        self.name = name
        self.attributes = attributes
        """Header attributes: `is_scheduled`, `entry_computation_layout`, `input_output_alias`…"""
        self.computations: list[Computation] = []
        self.entry: Computation = None  # type: ignore[assignment]  # set by the reader
        self._stack_frames: StackFrames | Callable[[], StackFrames] = StackFrames()
        self.instruction_names = NameUniquer()
        self.computation_names = NameUniquer()
        self.filename: str | None = None
        self.lowered_from: str | None = None
        """The form of a program that it was lowered from (StableHLO); None for a module that XLA wrote."""
        self.print_options = PrintOptions()
        """How the module was written, and is printed unless asked otherwise."""
        self.processing_order: list[Computation] = []
        """The order in which passes go through computations, where it is known to be another one."""
        self.order_source: OrderSource | None = None
        """Where ids and use-lists come from; None until it is decided (`hlofuse.order`)."""

    def __repr__(self) -> str:
        return f"<module {self.name}>"

    @property
    def stack_frames(self) -> StackFrames:
        """The source tables of the dump; empty where it has none."""
        frames = self._stack_frames
        if not isinstance(frames, StackFrames):
            frames = self._stack_frames = frames()
        return frames

    @stack_frames.setter
    def stack_frames(self, frames: StackFrames) -> None:
        self._stack_frames = frames

    def defer_stack_frames(self, read: Callable[[], StackFrames]) -> None:
        """Have the tables made by `read` when they are first looked at."""
        self._stack_frames = read

    @property
    def is_scheduled(self) -> bool:
        return self.attributes.raw("is_scheduled") == "true"

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of every computation."""
        for computation in self.computations:
            yield from computation

    def find_computation(self, name: str) -> Computation | None:
        return next((c for c in self.computations if c.name == name), None)

    def find(self, name: str) -> Instruction | None:
        """The instruction of that name (a leading % is ignored); a linear search."""
        name = name.lstrip("%")
        return next((i for i in self.instructions() if i.name == name), None)

    def add_computation(self, computation: Computation) -> Computation:
        """Take in a computation; its name and its instructions' names are made unique."""
        computation.name = self.computation_names.unique(computation.name)
        for instruction in computation:
            instruction.name = self.instruction_names.unique(instruction.name)
        computation.module = self
        self.computations.append(computation)
        return computation

    def remove_computation(self, computation: Computation) -> None:
        """Take out a computation nobody calls."""
        for instruction in computation:
            for _, callee in instruction.called:
                callee.callers.pop(instruction, None)
        self.computations.remove(computation)
        computation.module = None

    def non_fusion_computations(self) -> list[Computation]:
        """Those that are not a fusion's body, callees first (`MakeNonfusionComputations`)."""
        return [c for c in self.computation_post_order() if c.fusion is None]

    def computation_post_order(self) -> list[Computation]:
        """Callees before callers, as XLA orders (and prints) them (`MakeComputationPostOrder`)."""
        order: list[Computation] = []
        done: set[Computation] = set()
        roots = [c for c in self.computations if not c.callers]
        for start in (*roots, *self.computations):
            stack: list[tuple[Computation, Iterator[Computation]]] = []
            if start not in done:
                done.add(start)
                stack.append((start, _callees(start)))
            while stack:
                computation, callees = stack[-1]
                for callee in callees:
                    if callee not in done:
                        done.add(callee)
                        stack.append((callee, _callees(callee)))
                        break
                else:
                    stack.pop()
                    order.append(computation)
        return order

    def source_of(self, instruction: Instruction) -> SourceLocation | None:
        """The line of the user's program the instruction came from, where the dump says."""
        metadata = instruction.attributes.get("metadata")
        if metadata is None:
            return None
        if metadata.stack_frame_id:
            return self.stack_frames.location(metadata.stack_frame_id)
        if metadata.source_file:
            return SourceLocation(metadata.source_file, metadata.source_line or 0)
        return None

    def called_from(self, instruction: Instruction) -> SourceLocation | None:
        """The user's own line, where the instruction came from one of an installed package."""
        metadata = instruction.attributes.get("metadata")
        if metadata is None or not metadata.stack_frame_id:
            return None
        frames = self.stack_frames.trace(metadata.stack_frame_id)
        innermost = next(frames, None)
        if innermost is None or not innermost.installed:
            return None
        return next((frame for frame in frames if not frame.installed), None)


def _callees(computation: Computation) -> Iterator[Computation]:
    for instruction in computation:
        for _, callee in instruction.called:
            yield callee
