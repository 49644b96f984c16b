"""What settles a producer once its users have been asked, and why it is fused."""

from hlofuse.rules.catalogue import outcome, register

NO_USERS = outcome("PF030", "Nobody uses the producer", message="No users to fuse")
ONLY_BITCASTS = outcome(
    "PF031", "Only bitcasts use the producer", message="not fusing because there are only bitcast users"
)
PAYS = outcome("PF040", "Fusing the producer into all its users saves time", allows=True)
BITCAST_FIRST = outcome("PF041", "Bitcasts are fused first", allows=True)
SMALL_CONSTANT = outcome("PF042", "Scalar constants become part of the code", allows=True)


# The verdict of the cost model: no rule forbids the fusion, but it would not pay.
#
# XLA gives no words for it: such a producer has a priority below zero and never enters the queue.

DOES_NOT_PAY = register("PF032", "Fusing the producer into all its users would cost time", estimated=True)
