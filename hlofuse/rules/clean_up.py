"""Rules of the passes that tidy up after fusion: CSE (CS…), DCE (DC…), TupleSimplifier (TS…)."""

from hlofuse.rules.catalogue import Knob, Rule, register

_CSE = "xla/service/hlo_cse.cc: HloCSE::RunOnComputation"
_DCE = "xla/hlo/transforms/simplifiers/hlo_dce.cc"
_TUPLE = "xla/hlo/transforms/simplifiers/tuple_simplifier.cc: TupleSimplifier"


def _tidies(code: str, title: str, condition: str, why: str, mirrors: str) -> Rule:
    return register(
        code=code,
        title=title,
        condition=condition,
        why=why,
        mirrors=mirrors,
        allows=True,
        outcome=not code.startswith("TS"),
    )


EQUAL_CONSTANTS = _tidies(
    "CS001",
    "Equal constants become one",
    "Have two constants of a computation the same shape, layout included, and the same value?",
    "Fusing clones constants into every kernel that reads them, and several may meet in one.",
    "xla/service/hlo_cse.cc: CombineConstants",
)
EQUAL_INSTRUCTIONS = _tidies(
    "CS002",
    "Equal operations on equal operands become one",
    "Do two operations agree in opcode, shape with layout, operands (in any order where it does not matter), "
    "attributes and called computations, and have they no side effect?",
    "A producer fused along several paths leaves several copies in one kernel.",
    _CSE,
)
EQUAL_IOTAS = _tidies(
    "CS003",
    "Equal iotas of one operation become one operand",
    "Does an operation have two iotas of the same shape and dimension as operands?",
    "Iotas count as equal operands when operations are compared, so one of them is enough.",
    _CSE,
)
EQUAL_OUTPUTS = _tidies(
    "CS004",
    "Equal results of a kernel are read from the first of them",
    "Are two results of a multi-output fusion now the same instruction?",
    "Nobody reads the second one any more, so that DCE can take it out.",
    _CSE,
)
DEAD_INSTRUCTION = _tidies(
    "DC001",
    "An operation nobody uses is removed",
    "Is the operation neither used nor a result, without side effect and control dependencies?",
    "Fusing leaves producers behind when their last user has taken them in.",
    f"{_DCE}: HloDCE::RunOnComputation, RemoveDeadRoots",
)
UNUSED_OUTPUT = _tidies(
    "DC002",
    "A kernel's result nobody uses is taken out",
    "Is an element of a multi-output fusion's tuple read by no get-tuple-element?",
    "Otherwise the kernel would compute and write it for nothing.",
    f"{_DCE}: RemoveMultiOutputFusionsUnusedOutputs",
)
DEAD_PARAMETER = _tidies(
    "DC003",
    "A kernel's input nobody reads is taken out",
    "Is a parameter of a fusion's computation unused?",
    "The kernel would be handed an array for nothing, and the array would be kept alive for it.",
    f"{_DCE}: RemoveDeadParameters",
)
DEAD_COMPUTATION = _tidies(
    "DC004",
    "A computation nobody calls is removed",
    "Can the computation not be reached from the entry computation?",
    "Merging fusions leaves the bodies of those that went.",
    f"{_DCE}: RemoveDanglingComputations",
)
WHOLE_TUPLE = _tidies(
    "TS001",
    "A tuple taken apart and put together again is the tuple itself",
    "Is a tuple made of all elements of one other tuple, in order?",
    "Multi-output fusion may leave such pairs behind.",
    f"{_TUPLE}::RemoveWholeTuple",
)
ELEMENT_OF_TUPLE = _tidies(
    "TS002",
    "An element of a tuple just made is the element itself",
    "Does a get-tuple-element read a tuple operation, directly or through others?",
    "The tuple need not be made for it.",
    f"{_TUPLE}::RunImpl",
)


# Rules of the passes before PriorityFusion: VariadicOpSplitter (VS…), SortIotaFusion (SI…).

MAX_CONCATENATE_OPERANDS = Knob(
    "gpu-max-concatenate-operands", 128, "operands", "A concatenate with more is split into several."
)

MANY_OPERANDS = register(
    code="VS001",
    title="A concatenate of very many arrays is split",
    condition="Has a concatenate more than 128 operands? Batches of 128 are concatenated first, then the "
    "results; an incomplete last batch waits for the next round.",
    why="Kernel parameters live in a small space on the GPU.",
    advice="Concatenate in two steps yourself to choose what goes together, or stack the parts as "
    "they are made.",
    mirrors="xla/backends/gpu/transforms/variadic_op_splitter.cc: SplitConcatenate",
    allows=True,
    knobs=(MAX_CONCATENATE_OPERANDS,),
)
IOTA_INTO_SORT = register(
    code="SI001",
    title="An iota is made inside the sort that reads it",
    condition="Is an operand of a sort an iota (as for argsort and top-k)?",
    why="The sort's kernel can count by itself; the iota need not be written and read.",
    mirrors="xla/backends/gpu/transforms/sort_iota_fusion.cc: SortIotaFusionGroupVisitor::HandleSort",
    allows=True,
)
