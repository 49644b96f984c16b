"""Opcodes by name with their traits, and the few facts about them that the graph itself needs. The names are
those of XLA's text (`hlo/ir/hlo_opcode.h`) in all releases that hlofuse reads."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from .record import Record, Strings


class OpcodeFacts(NamedTuple):
    """The facts of a row of `text/signatures.csv`."""

    operands: str  # The number of operands; `*` for any
    required: str  # Attributes that it must have
    optional: str  # Attributes that it may have
    traits: frozenset[str]


def values(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _read() -> dict[str, OpcodeFacts]:
    table = Path(__file__).parent / "text" / "signatures.csv"
    found = {}
    for row in table.read_text(encoding="utf-8").splitlines()[1:]:
        opcodes, operands, required, optional, traits = row.split("|")
        facts = OpcodeFacts(operands, required, optional, values(traits))
        found.update(dict.fromkeys(opcodes.split(), facts))
    return found


OPCODE_FACTS = _read()
OPCODES = frozenset(OPCODE_FACTS)


@cache
def with_trait(trait: str) -> frozenset[str]:
    """The opcodes that have a trait, such as `elementwise`; ValueError for a trait that none has. Two lists
    of XLA's that differ are two traits, or one of them stays where it is used."""
    found = frozenset(opcode for opcode, facts in OPCODE_FACTS.items() if trait in facts.traits)
    if not found:
        raise ValueError(f"no opcode has the trait {trait!r}")
    return found


def with_operands(count: int) -> frozenset[str]:
    return frozenset(opcode for opcode, facts in OPCODE_FACTS.items() if facts.operands == str(count))


# Attributes whose value names computations, in the order XLA keeps them in `called_computations()`
# (a while has its body first although its condition is printed first: `HloWhileInstruction`).
CALLED_COMPUTATION_ATTRIBUTES: Strings = tuple(
    (
        "calls to_apply body condition true_computation false_computation branch_computations select"
        " scatter called_computations"
    ).split()
)


class PrintOptions(Record):
    """Named after what they show; the defaults are those of XLA's own dumps (`hlo_print_options.h`).

    A module read from text remembers how it was written (`Module.print_options`)."""

    percent: bool = True  # `%` before names
    signatures: bool = True  # Parameters and result of a computation before its brace (`print_program_shape`)
    operand_shapes: bool = False  # The shape of each operand before its name
    metadata: bool = True  # `metadata={…}` and the source tables
    backend_config: bool = True
    large_constants: bool = True
    """Constants of more than ten elements in full where the module has them, otherwise `{...}`."""
    operand_numbers: int = 5  # The interval of `/*index=5*/` comments among operands; 0 for none
    compact_elements: bool = False  # `%x#1` for an operand that is an element of x, without its instruction
    names_after_braces: bool = False  # `} // name` after computations of more than five instructions
