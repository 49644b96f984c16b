"""Modules that the compiler was given as a text."""

from __future__ import annotations

from hlofuse.ir.module import Module

_OPTIONS = (
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
)


def is_given_as_text(module: Module) -> bool:
    """Does the header lack what JAX tells the compiler of shardings, with each program?"""
    return not any(option in module.attributes for option in _OPTIONS)
