"""One replay of XLA's fusion passes: how it is configured, running it, its result."""

from hlofuse.replay.config import Variant, variant_of
from hlofuse.replay.replay import Checkpoint, PassResult, Replay, replay

__all__ = ["Checkpoint", "PassResult", "Replay", "Variant", "replay", "variant_of"]
