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
    "Duplicate constants are merged",
    "Two constants of a computation have the same shape, including layout, and the same value.",
    "Fusion clones constants into every kernel that reads them, so one kernel can contain several.",
    "xla/service/hlo_cse.cc: CombineConstants",
)
EQUAL_INSTRUCTIONS = _tidies(
    "CS002",
    "Duplicate operations on equal operands are merged",
    "Two operations agree in opcode, shape with layout, operands (in any order if commutative), attributes"
    " and called computations, and neither has a side effect.",
    "A producer that is fused along several paths leaves duplicates in one kernel.",
    _CSE,
)
EQUAL_IOTAS = _tidies(
    "CS003",
    "Duplicate iotas of one operation become one operand",
    "An operation has two iotas of the same shape and dimension as operands.",
    "Iotas count as equal operands when operations are compared, so one is enough.",
    _CSE,
)
EQUAL_OUTPUTS = _tidies(
    "CS004",
    "Duplicate results of a kernel are read from the first one",
    "Two results of a multi-output fusion are the same instruction.",
    "The second result becomes unused, so DCE can remove it.",
    _CSE,
)
DEAD_INSTRUCTION = _tidies(
    "DC001",
    "An unused operation is removed",
    "The operation is neither used nor a result, and has no side effect and no control dependency.",
    "A producer stays behind after its last user has been fused with it.",
    f"{_DCE}: HloDCE::RunOnComputation, RemoveDeadRoots",
)
UNUSED_OUTPUT = _tidies(
    "DC002",
    "An unused result of a kernel is removed",
    "No get-tuple-element reads an element of a multi-output fusion's tuple.",
    "Otherwise the kernel would compute and write the result for nothing.",
    f"{_DCE}: RemoveMultiOutputFusionsUnusedOutputs",
)
DEAD_PARAMETER = _tidies(
    "DC003",
    "An unused input of a kernel is removed",
    "A parameter of a fused computation is unused.",
    "The kernel would receive an unused array, and the array would stay alive for it.",
    f"{_DCE}: RemoveDeadParameters",
)
DEAD_COMPUTATION = _tidies(
    "DC004",
    "A computation without callers is removed",
    "The computation cannot be reached from the entry computation.",
    "Merging fusions leaves their old computations behind.",
    f"{_DCE}: RemoveDanglingComputations",
)
WHOLE_TUPLE = _tidies(
    "TS001",
    "A tuple rebuilt from its own elements is the tuple itself",
    "A tuple consists of all elements of one other tuple, in order.",
    "Multi-output fusion can leave such pairs behind.",
    f"{_TUPLE}::RemoveWholeTuple",
)
ELEMENT_OF_TUPLE = _tidies(
    "TS002",
    "An element of a tuple operation is the operand itself",
    "A get-tuple-element reads a tuple operation, directly or through others.",
    "The tuple is then not needed.",
    f"{_TUPLE}::RunImpl",
)


# Rules of the passes before PriorityFusion: VariadicOpSplitter (VS…), SortIotaFusion (SI…).

MAX_CONCATENATE_OPERANDS = Knob(
    "gpu-max-concatenate-operands", 128, "operands", "A concatenate with more is split into several."
)

MANY_OPERANDS = register(
    code="VS001",
    title="A concatenate of very many arrays is split",
    condition="A concatenate has more than 128 operands. Batches of 128 are concatenated first, then the"
    " results. An incomplete last batch waits for the next round.",
    why="The space for kernel parameters on a GPU is small.",
    advice="Concatenate in two steps to choose what goes together, or stack the parts when they are created.",
    mirrors="xla/backends/gpu/transforms/variadic_op_splitter.cc: SplitConcatenate",
    allows=True,
    knobs=(MAX_CONCATENATE_OPERANDS,),
)
IOTA_INTO_SORT = register(
    code="SI001",
    title="An iota is computed inside the sort that reads it",
    condition="An operand of a sort is an iota (as in argsort and top-k).",
    why="The sort kernel can compute the index itself; the iota is neither written nor read.",
    mirrors="xla/backends/gpu/transforms/sort_iota_fusion.cc: SortIotaFusionGroupVisitor::HandleSort",
    allows=True,
)
