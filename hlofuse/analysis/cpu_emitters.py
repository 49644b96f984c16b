"""What XLA:CPU's fusion emitters can express (`emitters::IsSupportedElementalOp`)."""

from __future__ import annotations

UNSUPPORTED_OPCODES = frozenset(
    """
    add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done
    all-reduce-start all-to-all async-done async-start async-update batch-norm-grad batch-norm-inference
    batch-norm-training call cholesky collective-permute collective-permute-done collective-permute-start
    conditional copy-done copy-start custom-call domain dynamic-reshape fft fusion get-dimension-size
    infeed opt-barrier outfeed partition-id recv recv-done reduce-scatter replica-id rng rng-bit-generator
    rng-get-and-update-state scatter select-and-scatter send send-done set-dimension-size sort
    stochastic-convert topk triangular-solve while
    """.split()
)


def is_supported_elemental_op(opcode: str) -> bool:
    """True for every opcode XLA has not listed as unsupported."""
    return opcode not in UNSUPPORTED_OPCODES
