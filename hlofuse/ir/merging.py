"""Merging a producer fusion into its consumer (`HloFusionInstruction::MergeFusionInstruction`).

XLA clones the whole producer and moves the clones into the consumer one by one, root first. A clone that
is yet to be moved is an operand of the consumer for a while, read through a parameter that goes when the
clone comes. What stays of all that are names, ids and the order of operands and users: they are kept
as if it had happened, but clones are linked to each other at once, with no parameter between."""

from collections.abc import Iterable

from .fusing import computation_of, module_of
from .graph import Instruction
from .names import NameUniquer


class Inside:
    """The content of a fusion, for merging it into several consumers in turn."""

    __slots__ = ("inner", "names", "order")

    def __init__(self, producer: Instruction) -> None:
        body = producer.fused_computation
        instructions = body.instructions
        self.names = [inner.name for inner in instructions]
        self.inner = [
            inner for inner in instructions if inner.opcode != "parameter" and inner is not body.root
        ]
        """Without the root, for which there is the parameter by which the consumer reads the fusion."""
        self.order = body.post_order(but_for=body.parameters, starts=(body.root,))
        if len(self.order) <= len(self.inner):  # it has dead code
            self.order = body.post_order(but_for=body.parameters)
        """Of those that are no parameters, what reads an instruction before it."""
        self.order.reverse()


def merge_fusion(fusion: Instruction, producer: Instruction, inside: Inside | None = None) -> None:
    """Move clones of a producer fusion's instructions into `fusion`, which reads it. The producer stays for
    its other users. As in XLA the whole producer is cloned first, which shows in names. What the clones do to
    the users of outer operands until they are moved undoes itself: finally `fusion` is the last of them."""
    names = module_of(computation_of(fusion)).instruction_names
    body = producer.fused_computation
    if inside is None:
        inside = Inside(producer)
    # XLA clones twice, for the producer and for the fusion. One object stands for both here; the first
    # clones' names are taken, but never visible.
    names.skip(inside.names)
    clones = {inner: inner.bare_copy() for inner in inside.inner}
    clones.update(zip(body.parameters, producer.operands, strict=True))
    merge = _Merge(fusion, names)
    root = body.root
    if root.opcode == "parameter":
        merge.replace(producer, clones[root])
    else:
        clones[root] = merge.fill(producer, root)
        names.skip(("constant",))  # a root to stand in while the clones are moved
    merge.move_in(inside.order, clones)


class _Merge:
    """A fusion into which clones are being moved."""

    def __init__(self, fusion: Instruction, names: NameUniquer) -> None:
        self._fusion = fusion
        self._operands = fusion.operands
        self._body = body = fusion.fused_computation
        self._names = names
        # None stands for the parameter of a clone that is yet to be moved.
        self._parameters: list[Instruction | None] = list(body.parameters)
        # From the last one on: an operand given twice is read by its first parameter.
        self._inner = dict(zip(reversed(self._operands), reversed(body.parameters), strict=True))
        """The parameter or clone by which the inside reads each operand."""

    def replace(self, producer: Instruction, operand: Instruction) -> None:
        producer.replace_use_with(self._fusion, operand)
        del self._inner[producer]
        self._inner[operand] = self._body.parameters[self._operands.index(operand)]

    def fill(self, producer: Instruction, root: Instruction) -> Instruction:
        """The fusion reads the clone of the producer's root in its place: what was its parameter."""
        clone = self._inner.pop(producer)
        producer.remove_user(self._fusion)
        self._operands[:] = [clone if operand is producer else operand for operand in self._operands]
        self._body.vacate(clone)
        clone.become(root)
        self._inner[clone] = clone
        return clone

    def move_in(self, order: Iterable[Instruction], clones: dict[Instruction, Instruction]) -> None:
        """Put in the clones of those in `order`, which has what reads an instruction before it."""
        fusion, body, inner, names = self._fusion, self._body, self._inner, self._names
        unique = names.unique
        operands, parameters = self._operands, self._parameters
        for original in order:
            clone = clones[original]
            clone.name = unique(clone.name)
            body.append_unnumbered(clone)
            if inner.pop(clone, None) is not None:
                number = operands.index(clone)
                del operands[number], parameters[number]
                if number < len(parameters):  # later ones get a new number, name and id (`RemoveParameter`)
                    body.renew_parameters(parameters, number)
            sources = clone.operands
            for operand in original.operands:
                operand = clones[operand]
                source = inner.get(operand)
                if source is None:  # a further operand: what the inside reads in its place
                    source = operand
                    if operand.computation is None:
                        names.skip_parameter(len(operands))
                        parameters.append(None)
                    else:
                        source = body.add_parameter(operand.shape, len(operands))
                        parameters.append(source)
                        operand.add_user(fusion)
                    operands.append(operand)
                    inner[operand] = source
                sources.append(source)
                users = source.users
                if not users or users[-1] is not clone:  # a new one can only be the last of them
                    users.append(clone)
        body.parameters = [p for p in parameters if p is not None]
