"""Modules that the compiler was given as a text.

The parser numbers instructions as they are written, which is operands first (`HloParserImpl`), whereas
JAX's exporter numbers them in the order of the program, constants in front.
"""

from __future__ import annotations

from hlofuse.ir.module import Module
from hlofuse.pipelines.names import stack_frame

_OPTIONS = (
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
)


def is_given_as_text(module: Module) -> bool:
    """Does the header lack what JAX tells the compiler of shardings, with each program?

    Of a dump whose tables of places were cut off, but not the numbers of places, the header tells nothing.
    """
    return not any(option in module.attributes for option in _OPTIONS) and not _is_shortened(module)


def _is_shortened(module: Module) -> bool:
    """Do instructions name places in the source that no table lists? XLA writes all of it."""
    return not module.stack_frames and any(stack_frame(x) for x in module.instructions())
