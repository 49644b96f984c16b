"""What a printed module shows (`xla/hlo/ir/hlo_print_options.h`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """Named after what they show; the defaults are those of XLA's own dumps.

    A module read from text remembers how it was written (`Module.print_options`).
    """

    percent: bool = True
    """`%` before names."""
    signatures: bool = True
    """Parameters and result of a computation before its brace (`print_program_shape`)."""
    operand_shapes: bool = False
    """The shape of each operand before its name."""
    layouts: bool = True
    """Layouts in shapes; without them the text may mean another program."""
    metadata: bool = True
    """`metadata={…}` and the source tables."""
    backend_config: bool = True
    control_dependencies: bool = True
    large_constants: bool = True
    """Constants of more than ten elements in full where the module has them, otherwise `{...}`."""
    operand_numbers: int = 5
    """Every how many operands a `/*index=5*/` stands; 0 for never."""
    compact_elements: bool = False
    """`%x#1` for an operand that is an element of x, without the instruction that takes it."""
    names_after_braces: bool = False
    """`} // name` after computations of more than five instructions."""
    nested_bodies: bool = False
    """Computations in full where they are called (`kFullBodies`) instead of their names."""
    canonical_names: bool = False
    """Instructions numbered `tmp_0`, `tmp_1`… in each computation instead of their names."""

    @classmethod
    def short(cls) -> PrintOptions:
        """The shortest text that can be read again (`HloPrintOptions::ShortParsable`)."""
        return cls(
            metadata=False, operand_numbers=0, signatures=False, percent=False, control_dependencies=False
        )

    @classmethod
    def canonical(cls) -> PrintOptions:
        """A text that is equal for modules that are (`HloPrintOptions::Canonical`); not for reading again."""
        return cls(
            nested_bodies=True,
            metadata=False,
            backend_config=False,
            operand_shapes=True,
            operand_numbers=0,
            signatures=False,
            percent=False,
            control_dependencies=False,
            canonical_names=True,
            large_constants=False,
        )
