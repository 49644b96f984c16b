"""Rules the driver itself applies, before and after asking a target's rules."""

from hlofuse.rules.catalogue import essential, outcome, register

OPERAND_NOT_FUSIBLE = essential(
    "IF001", "The operand is not fusible", lasting=True, message="Operand is not fusible"
)

CANNOT_BE_DUPLICATED = register(
    "IF002",
    "The producer cannot go into all of its users, and copies would read more memory",
    lasting=True,
    message="operand can not be duplicated",
)

MULTI_OUTPUT_UNSUPPORTED = outcome(
    "IF021",
    "This pass makes no multi-output fusions",
    message="multi-output fusion not supported by this pass",
)

MULTI_OUTPUT_CYCLE = essential(
    "IF022",
    "A multi-output fusion of the two would depend on itself",
    message="multi-output fusion creates a cycle",
)

NOTHING_AGAINST = outcome("IF030", "Nothing speaks against it", allows=True)
