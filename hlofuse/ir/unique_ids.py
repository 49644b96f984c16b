"""Unique ids of instructions, which XLA's passes read and a text dump lacks."""

from typing import NamedTuple

from msgspec import Struct

from .graph import Computation, Instruction, Module


class Element(NamedTuple):
    """A get-tuple-element that a text may write as `%operand#index`, without its name and metadata."""

    name: str
    has_metadata: bool  # True if the operand's metadata applies; XLA's passes create elements without


class ComputationIds(Struct):
    by_name: dict[str, int] = {}
    elements: dict[tuple[int, int], Element] = {}


class UniqueIds(Struct):
    """Ids of a module, computations in the order in which passes visit them."""

    computations: dict[str, ComputationIds] = {}

    def fit(self, module: Module) -> bool:
        entry = self.computations.get(module.entry.name)
        return entry is not None and module.entry.root.name in entry.by_name

    def apply(self, module: Module) -> None:
        """Give the module's instructions these ids, and get-tuple-elements their names."""
        existing = [
            (c, self.computations[c.name]) for c in module.computations if c.name in self.computations
        ]
        for computation, ids in existing:
            _name_elements(computation, ids)
            # An instruction without a known name (a pass ran in between) stays after its operands.
            order = dict[Instruction, float]()
            for instruction in computation:
                number = ids.by_name.get(instruction.name)
                before = max((order[o] for o in instruction.operands if o in order), default=-1.0)
                order[instruction] = before + 0.5 if number is None else float(number)
            computation.reorder(sorted(order, key=order.__getitem__))
        place = {name: k for k, name in enumerate(self.computations)}
        module.processing_order = sorted((c for c, _ in existing), key=lambda c: place[c.name])

    def give_metadata(self, module: Module) -> None:
        """Give folded get-tuple-elements their operands' metadata; not before users are restored by text."""
        for computation in module.computations:
            ids = self.computations.get(computation.name)
            described = (
                {e.name for e in ids.elements.values() if e.has_metadata} if ids is not None else set()
            )
            for instruction in computation if described else ():
                if instruction.name not in described or "metadata" in instruction.attributes:
                    continue
                if (metadata := instruction.operand.raw("metadata")) is not None:
                    instruction.attributes = instruction.attributes.updated(metadata=metadata)


def _name_elements(computation: Computation, ids: ComputationIds) -> None:
    """Name the get-tuple-elements that the text folded into operands."""
    for instruction in computation:
        if not instruction.is_get_tuple_element or instruction.name in ids.by_name:
            continue
        source = ids.by_name.get(instruction.operand.name)
        existing = ids.elements.get((source, instruction.tuple_index)) if source is not None else None
        if existing is None:
            continue
        instruction.name = existing.name
        if computation.module is not None:
            computation.module.instruction_names.reserve([existing.name])
