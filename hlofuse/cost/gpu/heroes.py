"""Roots of a kernel and their heroes, which decide its emitter. Mirrors `FindNonTrivialHero`
(`xla/service/gpu/ir_emission_utils.cc`) and `FindHero` (`xla/codegen/ir_emission_utils.cc`). The result of a
search composes: it has the candidates found for each root, and the parameters at which the search left the
fusion. Fusing a producer there needs no new traversal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from .atoms import Atom
from .shapes import ShapeFacts

Candidate = tuple[Atom, bool]  # A possible hero, and True if only elementwise and similar operations use it
_NOWHERE: Sequence[bool] = ()


@dataclass(slots=True, eq=False)
class Root:
    """One output of a kernel, and the candidates found above it."""

    result: ShapeFacts
    atom: Atom | None  # None when the root is a parameter, with the number `parameter`
    parameter: int = -1
    chain_end: Atom | None = None  # Start of the chain of one-operand element-wise operations above the root
    chain_is_root: bool = False
    transposes: tuple[Candidate, ...] = ()  # Tiled transposes found, at most two: two make none a hero
    concatenates: tuple[Candidate, ...] = ()
    reached: Sequence[bool] = _NOWHERE
    """For each parameter, True if the search left the fusion there; empty if it did nowhere."""
    update: ShapeFacts | None = None  # The update's shape for a dynamic-update-slice root or a bitcast of one
    updated_parameter: int = -1  # The parameter read by a root bitcast; -1 for other roots

    @property
    def hero(self) -> tuple[Atom | None, bool]:
        """The hero, and True if it is the root itself (`FindNonTrivialHero`)."""
        for found in (self.transposes, self.concatenates):
            if len(found) == 1 and found[0][1]:
                return found[0][0], False
        if self.chain_end is not None and self.chain_end.opcode == "reduce":
            return self.chain_end, self.chain_is_root
        return self.atom, True

    @property
    def is_reduction(self) -> bool:
        return is_real_reduction(*self.hero)


def is_real_reduction(hero: Atom | None, is_root: bool) -> bool:
    """True if the hero is a reduce for the reduction emitter (`IsRealReductionHero`)."""
    return hero is not None and hero.reduction is not None and (is_root or hero.race_free)


def roots_of_atom(atom: Atom, slots: int) -> list[Root]:
    everywhere = [True] * slots if atom.intermediate else _NOWHERE
    return [
        Root(
            atom.result,
            atom,
            chain_end=atom,
            chain_is_root=True,
            transposes=((atom, True),) if atom.transpose is not None else (),
            concatenates=((atom, True),) if atom.opcode == "concatenate" else (),
            reached=everywhere,
            update=atom.operands[1] if atom.opcode == "dynamic-update-slice" else None,
            updated_parameter=0 if atom.opcode == "bitcast" else -1,
        )
    ]


def root_of_output(
    output: Instruction,
    atoms: Mapping[Instruction, Atom],
    clean: Mapping[Instruction, bool],
    found: Iterable[Instruction],
    reached: Sequence[bool],
    facts: Callable[[Shape], ShapeFacts],
) -> Root:
    """The root for an output; `clean` is True for instructions that only intermediate operations use. The
    search from the output ended at the transposes and concatenates `found`, and at parameters `reached`."""
    result = facts(output.shape)
    if output.is_parameter:
        return Root(result, None, parameter=output.parameter_number)
    root = Root(result, atoms[output])
    end = output
    while atoms[end].intermediate_chain and not end.operand.is_parameter:
        end = end.operand
    root.chain_end, root.chain_is_root = atoms[end], end is output
    candidates = [(atoms[node], clean[node]) for node in found]
    root.transposes = tuple([(a, c) for a, c in candidates if a.transpose is not None][:2])
    root.concatenates = tuple([(a, c) for a, c in candidates if a.transpose is None][:2])
    if True in reached:
        root.reached = reached
    updater = output.past("bitcast")
    if updater.opcode == "dynamic-update-slice":
        root.update = facts(updater.second.shape)
    elif updater.is_parameter and updater is not output:
        root.updated_parameter = updater.parameter_number
    return root


def fuse_root(root: Root, clean: bool, slot: int, producer: Root) -> Root:
    """The consumer's root after the producer's replaced a parameter, whose entry is `clean`; else `root`."""
    if root.atom is None:
        return producer if root.parameter == slot else root
    if producer.atom is None or not root.reached or not root.reached[slot]:
        return root
    chain_end = root.chain_end
    chain_is_root = root.chain_is_root
    if chain_end is not None and chain_end.intermediate_chain:
        # The chain went on to the parameter, there being no other way for it to end in such a one.
        chain_end = producer.chain_end
        chain_is_root = False
    update = root.update
    if root.updated_parameter == slot and producer.atom.opcode == "dynamic-update-slice":
        update = producer.update
    transposes = root.transposes
    concatenates = root.concatenates
    if producer.transposes or producer.concatenates:
        transposes += tuple([(a, c and clean) for a, c in producer.transposes])
        concatenates += tuple([(a, c and clean) for a, c in producer.concatenates])
    return Root(
        root.result,
        root.atom,
        -1,
        chain_end,
        chain_is_root,
        transposes[:2],
        concatenates[:2],
        _NOWHERE,
        update,
    )
