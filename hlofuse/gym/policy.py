"""A policy that sb3-contrib has learned in the environment, for `hlofuse optimize --search policy`."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hlofuse.gym.env import counts_array, counts_space
from hlofuse.ir.errors import HlofuseError
from hlofuse.search.actions import ACTIONS
from hlofuse.search.space import Moves, Space
from hlofuse.search.strategies import Policy


def load_policy(file: str) -> Policy:
    """The likeliest action of a MaskablePPO on opcode counts, as its `save` wrote it.

    HlofuseError without sb3-contrib, for a file that is none, and for one of other actions or observations.
    """
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
    if model.observation_space != counts_space() or model.action_space.n != len(names) + 1:
        raise HlofuseError(f"{file}: trained with different passes or observations than this version's")

    def policy(space: Space, moves: Moves) -> str | None:
        module = space.module(moves)
        counts = Counter(i.opcode for i in module.instructions())
        seen = counts_array(counts, len(module.computations), len(moves))
        mask = np.array([*(n in space.moves and space.changes(moves, n) for n in names), True])
        action, _ = model.predict(seen, deterministic=True, action_masks=mask)
        return names[int(action)] if action < len(names) else None

    return policy
