"""Rules of GPU multi-output fusion (`xla/backends/gpu/transforms/multi_output_fusion.cc`): codes GM….

`SIBLING_RULES`, `PRODUCER_RULES` and `CONSUMER_RULES` are the orders in which it asks.
"""

from hlofuse.rules.gpu_multi_output_fusion.candidate import LoneProducer as LoneProducer
from hlofuse.rules.gpu_multi_output_fusion.candidate import MultiOutputState as MultiOutputState
from hlofuse.rules.gpu_multi_output_fusion.candidate import ProducerPair as ProducerPair
from hlofuse.rules.gpu_multi_output_fusion.candidate import SiblingPair as SiblingPair
from hlofuse.rules.gpu_multi_output_fusion.producer import CONSUMER_RULES as CONSUMER_RULES
from hlofuse.rules.gpu_multi_output_fusion.producer import PRODUCER_RULES as PRODUCER_RULES
from hlofuse.rules.gpu_multi_output_fusion.siblings import SIBLING_RULES as SIBLING_RULES
