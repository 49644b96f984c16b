"""Large broadcasts are kernels of their own: a rule for `hlofuse explain --rules large-broadcasts`."""

from hlofuse.plugins import Candidate, FusionRule

_LARGE = 1 << 16
"""Bytes."""


def is_large(pair: Candidate) -> bool:
    """True where the producer fills memory with copies of a smaller array."""
    return pair.producer_root.opcode == "broadcast" and pair.producer.shape.byte_size > _LARGE


RULES = FusionRule(
    code="LARGE001",
    title="Large broadcasts stay on their own",
    condition="Does the producer fill more than 64 KiB with copies?",
    why="What would it cost to write them to memory once, as a runtime with a cache of them would?",
    advice="Leave the rule out: XLA computes a broadcast where it is read.",
    applies=is_large,
)
