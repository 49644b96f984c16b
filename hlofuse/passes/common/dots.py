"""Dimensions of a matrix product, and new products from it (`DotDimensionNumbers`)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from hlofuse.ir import Dims, Instruction, InstructionSequence, Ints, Record, Shape
from hlofuse.ir.attributes.attributes import written
from hlofuse.ir.attributes.parsers import parse_value
from .make import add
from .shapes import array, others


class DotDimensions(Record):
    lhs_batch: Dims = ()
    rhs_batch: Dims = ()
    lhs_contracting: Dims = ()
    rhs_contracting: Dims = ()

    @staticmethod
    def of(dot: Instruction) -> "DotDimensions":
        return _read(*map(dot.attributes.raw_items.get, _DIMENSIONS))

    def batch(self, operand: int) -> Dims:
        return self.rhs_batch if operand else self.lhs_batch

    def contracting(self, operand: int) -> Dims:
        return self.rhs_contracting if operand else self.lhs_contracting

    def fixed(self, operand: int) -> tuple[Dims, Dims]:
        return self.batch(operand), self.contracting(operand)

    def free(self, operand: int, rank: int) -> Dims:
        """Dimensions neither batch nor contracting (`GetNonContractingDims`)."""
        return tuple(others(rank, sum(self.fixed(operand), ())))

    def moved(self, *places: Mapping[int, int]) -> Iterator[list[list[int]]]:
        """Batch dimensions of both operands, then contracting ones, where `places` has them."""
        for of in (self.batch, self.contracting):
            yield [[own[d] for d in of(side) if d in own] for side, own in enumerate(places)]

    def raw(self) -> dict[str, str]:
        """As attributes, in the order XLA prints them."""
        found = {
            "lhs_batch_dims": self.lhs_batch,
            "lhs_contracting_dims": self.lhs_contracting,
            "rhs_batch_dims": self.rhs_batch,
            "rhs_contracting_dims": self.rhs_contracting,
        }
        return {name: written(value) for name, value in found.items() if value or "contracting" in name}


def free_dimensions(dot: Instruction) -> list[Dims]:
    """Dimensions neither batch nor contracting, of each operand."""
    dims = DotDimensions.of(dot)
    return [dims.free(k, o.rank) for k, o in enumerate(dot.operands)]


def free_sizes(dot: Instruction) -> list[list[int]]:
    sides = zip(dot.operands, free_dimensions(dot), strict=True)
    return [[o.sizes[d] for d in free] for o, free in sides]


_DIMENSIONS = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")


@lru_cache(maxsize=1024)
def _read(*texts: str | None) -> DotDimensions:
    lhs_batch, lhs_contracting, rhs_batch, rhs_contracting = (
        tuple(parse_value(name, text)) if text is not None else ()
        for name, text in zip(_DIMENSIONS, texts, strict=True)
    )
    return DotDimensions(lhs_batch, rhs_batch, lhs_contracting, rhs_contracting)


def dot_like(
    old: Instruction, shape: Shape, lhs: Instruction, rhs: Instruction, dimensions: DotDimensions
) -> Instruction:
    """A dot like `old` on other operands, added to its computation."""
    attributes = old.attributes.without(*_DIMENSIONS, "control-predecessors")
    raw = {**dimensions.raw(), **attributes.raw_items}
    new = Instruction("dot", shape, "dot", [lhs, rhs], type(attributes)(raw=raw))
    return old.parent.add_instruction(new)


def new_dot(
    at: Instruction,
    operands: InstructionSequence,
    batch: Sequence[Ints],
    contracting: Sequence[Ints],
    element_type: str | None = None,
    source: Instruction | None = None,
) -> Instruction:
    """A dot of these dimension numbers, with the precision of `source`, else `at` (`MakeDotHlo`)."""
    sizes = [operands[0].sizes[d] for d in batch[0]]
    for side in (0, 1):
        taken = {*batch[side], *contracting[side]}
        sizes += [n for d, n in enumerate(operands[side].sizes) if d not in taken]
    attributes = DotDimensions(*map(tuple, (*batch, *contracting))).raw()
    attributes |= (source or at).attributes.given("operand_precision", "algorithm")
    shape = array(element_type or at.element_type, sizes)
    return add(at, "dot", shape, operands, copied_attributes=attributes)
