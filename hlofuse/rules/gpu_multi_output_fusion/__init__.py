"""Rules of GPU multi-output fusion (`xla/backends/gpu/transforms/multi_output_fusion.cc`): codes GM….

`SIBLING_RULES`, `PRODUCER_RULES` and `CONSUMER_RULES` are the orders in which it asks.
"""

from hlofuse.rules.gpu_multi_output_fusion.candidate import (
    LoneProducer,
    MultiOutputState,
    ProducerPair,
    SiblingPair,
)
from hlofuse.rules.gpu_multi_output_fusion.producer import CONSUMER_RULES, PRODUCER_RULES
from hlofuse.rules.gpu_multi_output_fusion.siblings import SIBLING_RULES

__all__ = [
    "CONSUMER_RULES",
    "PRODUCER_RULES",
    "SIBLING_RULES",
    "LoneProducer",
    "MultiOutputState",
    "ProducerPair",
    "SiblingPair",
]
