"""What settles a producer once its users have been asked, and why it is fused."""

from hlofuse.rules.catalogue import outcome, register

_FILE = "xla/backends/gpu/transforms/priority_fusion.cc"
_QUEUE = f"{_FILE}: PriorityFusionQueue"

NO_USERS = outcome(
    code="PF030",
    title="The producer has no users",
    condition="The producer has no users.",
    why="There is nothing to fuse it into.",
    mirrors=f"{_QUEUE}::CanFuseWithAllNonBitcastUsers",
    message="No users to fuse",
)
ONLY_BITCASTS = outcome(
    code="PF031",
    title="Only bitcasts use the producer",
    condition="All users of the producer are bitcasts.",
    why="Bitcasts are fused into their own users first. These remain because their users cannot be fused into"
    " (library calls, results of the computation); a bitcast by itself costs nothing.",
    mirrors=f"{_QUEUE}::CanFuseWithAllNonBitcastUsers",
    message="not fusing because there are only bitcast users",
)
PAYS = outcome(
    code="PF040",
    title="Fusing the producer into all its users saves time",
    condition="By XLA's model, the kernels take less time with the producer in all of its users than without."
    " The producer that saves most is fused first.",
    why="Each fusion saves a kernel launch and the traffic of an intermediate result. Against that count"
    " operands that several users now read, and repeated work.",
    mirrors=f"{_QUEUE}::CalculateProducerPriority",
    allows=True,
)
BITCAST_FIRST = outcome(
    code="PF041",
    title="Bitcasts are fused first",
    condition="The producer is a bitcast. It is fused into every user that allows it.",
    why="It needs no code, and the operations on both sides can fuse only once it is inside.",
    mirrors=f"{_QUEUE}::CalculateProducerPriority",
    allows=True,
)
SMALL_CONSTANT = outcome(
    code="PF042",
    title="Scalar constants become part of the code",
    condition="The producer is a constant of one element. After all other fusions it is fused into all users"
    " that allow it.",
    why="A scalar in the code is free, a parameter has to be read. The cost model would misjudge it, so it is"
    " not used.",
    mirrors=f"{_FILE}: PriorityFusion::CanFuseConstant",
    allows=True,
)


# The verdict of the cost model: no rule forbids the fusion, but it would not pay.
#
# XLA gives no words for it: such a producer has a priority below zero and never enters the queue.

DOES_NOT_PAY = register(
    code="PF032",
    title="Fusing the producer into all its users would cost time",
    condition="By XLA's model, the kernels take longer with the producer in all of its users than without.",
    why="Fusing saves a launch and the traffic of an intermediate result. It adds more: work repeated per"
    " user, operands read again, uncoalesced reads, or fewer threads.",
    advice="Avoid recomputing the expensive operation, or make the array between the two larger; hlofuse why "
    "PRODUCER CONSUMER shows the terms.",
    mirrors="xla/backends/gpu/transforms/priority_fusion.cc: PriorityFusionQueue::CalculateProducerPriority",
    estimated=True,
)
