"""What decides the emitter of a kernel: its roots and the operations behind them.

Mirrors `FindNonTrivialHero` (`xla/service/gpu/ir_emission_utils.cc`) and `FindHero`
(`xla/codegen/ir_emission_utils.cc`). The search is kept in a form that composes: for each root what
was found inside, and which parameters the search left through. What a producer adds when it is
fused at one of them follows without walking the graph again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.ir.graph import Instruction

Candidate = tuple[Atom, bool]
"""A possible hero, and whether only elementwise and similar operations use it."""
_NOWHERE: Sequence[bool] = ()


@dataclass(slots=True, eq=False)
class Root:
    """One output of a kernel, and what was found above it."""

    result: ShapeFacts
    atom: Atom | None
    """None when the root is a parameter, whose number is then `parameter`."""
    parameter: int = -1
    chain_end: Atom | None = None
    """Where the chain of one-operand element-wise operations above the root ends."""
    chain_is_root: bool = False
    transposes: tuple[Candidate, ...] = ()
    """Tiled transposes met, at most two: two make none a hero."""
    concatenates: tuple[Candidate, ...] = ()
    reached: Sequence[bool] = _NOWHERE
    """For each parameter: did the search leave the fusion there? Empty where it did nowhere."""
    update: ShapeFacts | None = None
    """The update's shape when the root is a dynamic-update-slice or a bitcast of one."""
    updated_parameter: int = -1
    """The parameter that a root bitcast reads; -1 for other roots."""

    @property
    def hero(self) -> tuple[Atom | None, bool]:
        """The hero, and whether it is the root itself (`FindNonTrivialHero`)."""
        transposes = self.transposes
        if len(transposes) == 1 and transposes[0][1]:
            return transposes[0][0], False
        concatenates = self.concatenates
        if len(concatenates) == 1 and concatenates[0][1]:
            return concatenates[0][0], False
        if self.chain_end is not None and self.chain_end.opcode == "reduce":
            return self.chain_end, self.chain_is_root
        return self.atom, True

    @property
    def updates(self) -> bool:
        """The root is a dynamic-update-slice."""
        return self.atom is not None and self.atom.opcode == "dynamic-update-slice"

    @property
    def is_reduction(self) -> bool:
        """The hero is a reduce for the reduction emitter (`IsRealReductionHero`)."""
        hero, is_root = self.hero
        return hero is not None and hero.reduction is not None and (is_root or hero.race_free)


def roots_of_atom(atom: Atom, slots: int) -> list[Root]:
    """The root of an instruction on its own."""
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
    facts: Callable[[Instruction], ShapeFacts],
    count: int,
) -> Root:
    """The root that an output of a fused computation of `count` parameters is; `clean` tells what only
    Intermediate operations use."""
    if output.opcode == "parameter":
        return Root(facts(output), None, parameter=output.parameter_number)
    root = Root(facts(output), atoms[output])
    end = output
    while atoms[end].intermediate_chain and end.operands[0].opcode != "parameter":
        end = end.operands[0]
    root.chain_end, root.chain_is_root = atoms[end], end is output
    transposes: list[Candidate] = []
    concatenates: list[Candidate] = []
    reached: list[bool] = []
    queue, seen = [output], {output}
    for node in queue:
        atom = atoms[node]
        if atom.transpose is not None:
            transposes.append((atom, clean[node]))
        elif atom.opcode == "concatenate":
            concatenates.append((atom, clean[node]))
        elif atom.intermediate:
            for operand in node.operands:
                if operand.opcode == "parameter":
                    reached = reached or [False] * count
                    reached[operand.parameter_number] = True
                elif operand not in seen:
                    seen.add(operand)
                    queue.append(operand)
    root.transposes, root.concatenates = tuple(transposes[:2]), tuple(concatenates[:2])
    root.reached = reached
    updater = output.operands[0] if output.opcode == "bitcast" else output
    if updater.opcode == "dynamic-update-slice":
        root.update = facts(updater.operands[1])
    elif updater.opcode == "parameter" and updater is not output:
        root.updated_parameter = updater.parameter_number
    return root


def fuse_root(root: Root, clean: bool, slot: int, producer: Root) -> Root:
    """A root of a consumer with the producer's root in place of a parameter; `clean` is what the consumer
    says of that. The same object if nothing changes, otherwise one that reaches nothing yet."""
    if root.atom is None:
        return producer if root.parameter == slot else root
    if producer.atom is None or not root.reached or not root.reached[slot]:
        return root
    chain_end, chain_is_root = root.chain_end, root.chain_is_root
    if chain_end is not None and chain_end.intermediate_chain:
        # The chain went on to the parameter, there being no other way for it to end in such a one.
        chain_end, chain_is_root = producer.chain_end, False
    update = root.update
    if root.updated_parameter == slot and producer.atom.opcode == "dynamic-update-slice":
        update = producer.update
    transposes, concatenates = root.transposes, root.concatenates
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
