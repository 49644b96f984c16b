"""What GPU multi-output fusion asks its rules."""

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction
from hlofuse.rules.settings import Settings


@dataclass(slots=True)
class MultiOutputState:
    """What a run of the pass knows besides the graph."""

    model: KernelModel
    settings: Settings
    reaches: Callable[[Instruction, Instruction], bool]
    """Does the second depend on the first, or is it the first?"""


@dataclass(slots=True)
class SiblingPair:
    """A candidate: `other` merged into `fusion`, both reading `parent`."""

    fusion: Instruction
    other: Instruction
    parent: Instruction
    state: MultiOutputState


@dataclass(slots=True)
class LoneProducer:
    """A candidate: `producer` as a further result of any consumer's kernel."""

    producer: Instruction
    state: MultiOutputState


@dataclass(slots=True)
class ProducerPair:
    """A candidate: `producer` as a further result of `consumer`'s kernel."""

    producer: Instruction
    consumer: Instruction
    state: MultiOutputState
