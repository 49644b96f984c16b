"""The verdict of the cost model: no rule forbids the fusion, but it would not pay.

XLA gives no words for it: such a producer has a priority below zero and never enters the queue.
"""

from __future__ import annotations

from hlofuse.rules.catalogue import Rule, register

DOES_NOT_PAY = register(
    Rule(
        code="PF032",
        title="Fusing the producer into all its users would cost time",
        asks="Do the kernels take longer, by XLA's model, with the producer in all of its users than "
        "without?",
        why="What fusing saves (a launch, the traffic of an intermediate result) is less than what it adds: "
        "work done once for each user, operands read again, reads that lose their coalescing, a launch with "
        "fewer threads.",
        advice="hlofuse why PRODUCER CONSUMER shows the terms and what would turn them. Mostly: keep the "
        "dear operation from being evaluated again, or make the array between the two larger.",
        mirrors="xla/backends/gpu/transforms/priority_fusion.cc: "
        "PriorityFusionQueue::CalculateProducerPriority",
    )
)
