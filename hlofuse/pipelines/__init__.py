"""Which passes run, in which order, for which target; and running them."""

from hlofuse.pipelines.device import ASKS_FOR_DEVICE, device_of
from hlofuse.pipelines.replay import Checkpoint, PassResult, Replay, passes_of, replay
from hlofuse.pipelines.targets import TARGETS, Target
from hlofuse.pipelines.variant import Variant, variant_of

__all__ = [
    "ASKS_FOR_DEVICE",
    "TARGETS",
    "Checkpoint",
    "PassResult",
    "Replay",
    "Target",
    "Variant",
    "device_of",
    "passes_of",
    "replay",
    "variant_of",
]
