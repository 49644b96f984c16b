"""Rules of passes before and after fusion: what fusion has to work on (RW…), and what tidies up after it.
Loops, reductions, products, library fusions, expanders and copies; CSE, DCE, TupleSimplifier."""

from functools import partial

from .catalogue import Knob, Rule, outcome, register


def rewrites(
    code: str,
    pass_name: str,
    title: str,
    *,
    allows: bool = True,
    essential: bool = False,
) -> Rule:
    """A rewrite by a pass, which `--xla_disable_hlo_passes` can disable. Without an `essential` pass, the
    program would be compiled to something else, or not at all."""
    flag = "" if essential else f"--xla_disable_hlo_passes={pass_name}"
    return outcome(code, title, allows=allows, essential=essential, pass_name=pass_name, flag=flag)


cuts = partial(rewrites, allows=False)  # The rule of a pass that stops including operations; XLA logs nothing
STRENGTH_REDUCED = rewrites(
    "RW010", "dot-strength-reduction", "A matrix-vector product becomes multiply and reduce"
)
WIDENED = rewrites("RW015", "gemv-rewriter", "A matrix-vector product becomes a matmul with one column")
SPLIT_K = rewrites("RW011", "splitk-rewriter", "A dot with a long contracting dimension is split (split-K)")
TRITON_PRODUCT = rewrites(
    "RW012", "triton-gemm-rewriter", "A dot becomes a Triton GEMM fusion with its neighbours"
)
EPILOGUE_READERS = cuts(
    "RW013", "triton-gemm-rewriter", "The GEMM fusion ends at a value with several readers"
)
EPILOGUE_USER = cuts(
    "RW014", "triton-gemm-rewriter", "The GEMM fusion ends at an operation it cannot contain"
)
LONG_SUM_ON_CPU = rewrites(
    "RW001", "tree_reduction_rewriter", "A reduction over more than 32 elements runs in two steps"
)
LONG_SUM_ON_GPU = rewrites(
    "RW002", "tree-reduction-rewriter", "A reduction too long for one block runs in two steps", essential=True
)
SPLIT_DIMENSIONS = rewrites(
    "RW003", "reduction-splitter", "A reduction over non-adjacent dimensions is split in two"
)
GROUPED_DIMENSIONS = rewrites(
    "RW004", "reduction-dimension-grouper", "Adjacent reduced dimensions become one", essential=True
)
SINGLE_ITERATION = rewrites(
    "RW050", "simplify-while-loops", "The body of a loop that runs once replaces the loop"
)
INVARIANT = rewrites("RW051", "while-loop-invariant-code-motion", "An operation moves out of the loop")
SMALL_LOOP = rewrites("RW052", "small-while-loop-hoisting", "A loop over little data is one kernel")
TRITON_SOFTMAX = rewrites(
    "RW020", "triton-softmax-rewriter", "A normalization over rows becomes one Triton kernel"
)
LIBRARY = rewrites("RW021", "dot-library-rewriter", "Operations move to YNNPACK")
LOGISTIC = rewrites(
    "RW030", "logistic-expander", "The logistic function becomes a division and an exponential"
)
BATCH_NORM = rewrites("RW031", "batchnorm_expander", "A batch normalization becomes plain operations")
RANDOM_BITS = rewrites(
    "RW032",
    "rng-bit-generator-expander",
    "Random bits become the arithmetic of their generator",
    essential=True,
)
COPY = rewrites(
    "RW040", "copy-insertion", "A value is copied because another would overwrite it", essential=True
)
COPY_IN_FUSION = rewrites("RW041", "copy_fusion", "A fusion writes the copy of its result itself")
LAYOUT_COPY = rewrites(
    "RW042", "layout-assignment", "A value is copied to the layout that its reader requires", essential=True
)


# Tidying up: CSE (CS…), DCE (DC…), TupleSimplifier (TS…).

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


# Before PriorityFusion: VariadicOpSplitter (VS…), SortIotaFusion (SI…).

MAX_CONCATENATE_OPERANDS = Knob("gpu-max-concatenate-operands", 128)
MANY_OPERANDS = register(
    "VS001", "A concatenate of very many arrays is split", allows=True, knobs=(MAX_CONCATENATE_OPERANDS,)
)
IOTA_INTO_SORT = register("SI001", "An iota is computed inside the sort that reads it", allows=True)
