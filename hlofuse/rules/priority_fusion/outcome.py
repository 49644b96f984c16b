"""What settles a producer once its users have been asked, and why it is fused."""

from hlofuse.rules.catalogue import outcome, register

_FILE = "xla/backends/gpu/transforms/priority_fusion.cc"
_QUEUE = f"{_FILE}: PriorityFusionQueue"

NO_USERS = outcome(
    code="PF030",
    title="Nobody uses the producer",
    condition="Has the producer no users?",
    why="There is nothing to fuse it into.",
    mirrors=f"{_QUEUE}::CanFuseWithAllNonBitcastUsers",
    message="No users to fuse",
)
ONLY_BITCASTS = outcome(
    code="PF031",
    title="Only bitcasts use the producer",
    condition="Are all users of the producer bitcasts?",
    why="Bitcasts are fused into their own users first. These are left because their users take nothing "
    "in (library calls, the results of the computation): then they cost nothing as they are.",
    mirrors=f"{_QUEUE}::CanFuseWithAllNonBitcastUsers",
    message="not fusing because there are only bitcast users",
)
PAYS = outcome(
    code="PF040",
    title="Fusing the producer into all its users saves time",
    condition="Do the kernels take less time, by XLA's model, with the producer in all of its users than "
    "without? The producer that saves most goes first.",
    why="Each fusion saves the launch of a kernel and the traffic of an intermediate result; against "
    "that stand operands that several users now read, and work done more than once.",
    mirrors=f"{_QUEUE}::CalculateProducerPriority",
    allows=True,
)
BITCAST_FIRST = outcome(
    code="PF041",
    title="Bitcasts are fused first",
    condition="Is the producer a bitcast? It goes into every user that can take it.",
    why="It needs no code, and the operations on both of its sides can be fused only once it is inside.",
    mirrors=f"{_QUEUE}::CalculateProducerPriority",
    allows=True,
)
SMALL_CONSTANT = outcome(
    code="PF042",
    title="Scalar constants become part of the code",
    condition="Is the producer a constant of one element? After everything else is fused it goes into "
    "all users that can take it.",
    why="A scalar in the code costs nothing, a parameter has to be read. The cost model would misjudge "
    "it, so it is not asked.",
    mirrors=f"{_FILE}: PriorityFusion::CanFuseConstant",
    allows=True,
)


# The verdict of the cost model: no rule forbids the fusion, but it would not pay.
#
# XLA gives no words for it: such a producer has a priority below zero and never enters the queue.

DOES_NOT_PAY = register(
    code="PF032",
    title="Fusing the producer into all its users would cost time",
    condition="Do the kernels take longer, by XLA's model, with the producer in all of its users than "
    "without?",
    why="What fusing saves (a launch, the traffic of an intermediate result) is less than what it adds: "
    "work done once for each user, operands read again, reads that lose their coalescing, a launch with "
    "fewer threads.",
    advice="Avoid recomputing the expensive operation, or make the array between the two larger; hlofuse why "
    "PRODUCER CONSUMER shows the terms.",
    mirrors="xla/backends/gpu/transforms/priority_fusion.cc: PriorityFusionQueue::CalculateProducerPriority",
    estimated=True,
)
