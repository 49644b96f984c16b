"""A policy that sb3-contrib has learned in `hlofuse.gym`, for `hlofuse optimize --search policy`."""

from collections import Counter

import numpy as np

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.opcodes import OPCODES
from hlofuse.search.space import ACTIONS, Moves, Space
from hlofuse.search.strategies import Policy

NUMBERS = {opcode: n for n, opcode in enumerate(sorted(OPCODES))}
"""The place of an opcode in the counts, and its number in the graph."""
COUNTS = len(NUMBERS) + 2


def counts_array(counts: Counter[str], computations: int, steps: int) -> np.ndarray:
    """log(1 + n) for the instructions of each opcode, then for the computations and the steps so far."""
    return np.log1p(np.array([*map(counts.__getitem__, NUMBERS), computations, steps], np.float32))


def load_policy(file: str) -> Policy:
    """The likeliest action of a MaskablePPO on opcode counts, as its `save` wrote it. HlofuseError without
    sb3-contrib, for a file that is none, and for one of other actions or observations."""
    try:
        from sb3_contrib import MaskablePPO
    except ImportError as error:
        raise HlofuseError(
            f'--policy needs sb3-contrib: pip install "hlofuse[gym-policy]" ({error})'
        ) from None
    try:
        model = MaskablePPO.load(file, device="cpu")
    except (OSError, ValueError, KeyError) as error:
        raise HlofuseError(f"{file}: not a saved MaskablePPO: {error}") from None
    names = tuple(ACTIONS)
    if model.observation_space.shape != (COUNTS,) or model.action_space.n != len(names) + 1:
        raise HlofuseError(f"{file}: trained with different passes or observations than this version's")

    def policy(space: Space, moves: Moves) -> str | None:
        module = space.module(moves)
        counts = Counter(i.opcode for i in module.instructions())
        seen = counts_array(counts, len(module.computations), len(moves))
        mask = np.array([*(n in space.moves and space.changes(moves, n) for n in names), True])
        action, _ = model.predict(seen, deterministic=True, action_masks=mask)
        return names[int(action)] if action < len(names) else None

    return policy
