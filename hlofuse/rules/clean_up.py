"""Rules of the passes that tidy up after fusion: CSE (CS…), DCE (DC…), TupleSimplifier (TS…)."""

from functools import partial

from hlofuse.rules.catalogue import Knob, outcome, register

_tidies = partial(outcome, allows=True)

EQUAL_CONSTANTS = _tidies("CS001", "Duplicate constants are merged")
EQUAL_INSTRUCTIONS = _tidies("CS002", "Duplicate operations on equal operands are merged")
EQUAL_IOTAS = _tidies("CS003", "Duplicate iotas of one operation become one operand")
EQUAL_OUTPUTS = _tidies("CS004", "Duplicate results of a kernel are read from the first one")
DEAD_INSTRUCTION = _tidies("DC001", "An unused operation is removed")
UNUSED_OUTPUT = _tidies("DC002", "An unused result of a kernel is removed")
DEAD_PARAMETER = _tidies("DC003", "An unused input of a kernel is removed")
DEAD_COMPUTATION = _tidies("DC004", "A computation without callers is removed")
WHOLE_TUPLE = register("TS001", "A tuple rebuilt from its own elements is the tuple itself", allows=True)
ELEMENT_OF_TUPLE = register("TS002", "An element of a tuple operation is the operand itself", allows=True)


# Rules of the passes before PriorityFusion: VariadicOpSplitter (VS…), SortIotaFusion (SI…).

MAX_CONCATENATE_OPERANDS = Knob("gpu-max-concatenate-operands", 128)

MANY_OPERANDS = register(
    "VS001", "A concatenate of very many arrays is split", allows=True, knobs=(MAX_CONCATENATE_OPERANDS,)
)
IOTA_INTO_SORT = register("SI001", "An iota is computed inside the sort that reads it", allows=True)
