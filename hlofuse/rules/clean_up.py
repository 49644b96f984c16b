"""Rules of the passes that tidy up after fusion: CSE (CS…), DCE (DC…), TupleSimplifier (TS…)."""

from functools import partial

from hlofuse.rules.catalogue import Knob, outcome, register

_tidies = partial(outcome, allows=True)

EQUAL_CONSTANTS = _tidies("CS001", "Equal constants become one")
EQUAL_INSTRUCTIONS = _tidies("CS002", "Equal operations on equal operands become one")
EQUAL_IOTAS = _tidies("CS003", "Equal iotas of one operation become one operand")
EQUAL_OUTPUTS = _tidies("CS004", "Equal results of a kernel are read from the first of them")
DEAD_INSTRUCTION = _tidies("DC001", "An operation nobody uses is removed")
UNUSED_OUTPUT = _tidies("DC002", "A kernel's result nobody uses is taken out")
DEAD_PARAMETER = _tidies("DC003", "A kernel's input nobody reads is taken out")
DEAD_COMPUTATION = _tidies("DC004", "A computation nobody calls is removed")
WHOLE_TUPLE = register("TS001", "A tuple taken apart and put together again is the tuple itself", allows=True)
ELEMENT_OF_TUPLE = register("TS002", "An element of a tuple just made is the element itself", allows=True)


# Rules of the passes before PriorityFusion: VariadicOpSplitter (VS…), SortIotaFusion (SI…).

MAX_CONCATENATE_OPERANDS = Knob(
    "gpu-max-concatenate-operands", 128, "operands", "A concatenate with more is split into several."
)

MANY_OPERANDS = register(
    "VS001", "A concatenate of very many arrays is split", allows=True, knobs=(MAX_CONCATENATE_OPERANDS,)
)
IOTA_INTO_SORT = register("SI001", "An iota is made inside the sort that reads it", allows=True)
