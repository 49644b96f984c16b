"""Opcodes by name, and the few facts about them that the graph itself needs.

The names are those of XLA's text (`hlo/ir/hlo_opcode.h`); `ragged-dot` and others came with
later releases, so the set is the union over the releases hlofuse reads.
"""

from __future__ import annotations

from dataclasses import dataclass

OPCODES: frozenset[str] = frozenset(
    """
    abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start all-reduce
    all-reduce-done all-reduce-start all-to-all and asin asinh async-done async-start async-update atan2
    atanh batch-norm-grad batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast call
    cbrt ceil cholesky clamp collective-broadcast collective-permute collective-permute-done
    collective-permute-start compare complex concatenate conditional constant convert convolution copy
    copy-done copy-start cosine cosh count-leading-zeros custom-call divide domain dot dynamic-reshape
    dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft floor fusion gather
    get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one logistic map maximum
    minimum mulhi multiply negate not opt-barrier or outfeed pad parameter partition-id popcnt power
    ragged-all-to-all ragged-dot real recv recv-done reduce reduce-precision reduce-scatter reduce-window
    remainder replica-id reshape reverse rng rng-bit-generator rng-get-and-update-state round-nearest-afz
    round-nearest-even rsqrt scaled-dot scan scatter select select-and-scatter send send-done
    set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice sort sqrt
    stochastic-convert subtract tan tanh topk transpose triangular-solve tuple while xor
    """.split()
)

# Attributes whose value names computations, in the order XLA keeps them in `called_computations()`
# (a while has its body first although its condition is printed first: `HloWhileInstruction`).
CALLED_COMPUTATION_ATTRIBUTES: tuple[str, ...] = tuple(
    (
        "calls to_apply body condition true_computation false_computation branch_computations select"
        " scatter called_computations"
    ).split()
)


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """Named after what they show; the defaults are those of XLA's own dumps
    (`xla/hlo/ir/hlo_print_options.h`).

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
    """The interval of `/*index=5*/` comments among operands; 0 for none."""
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
        """A text equal for equal modules (`HloPrintOptions::Canonical`); it cannot be read again."""
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
