"""Rules the driver itself applies, before and after asking a target's rules."""

from hlofuse.rules.catalogue import essential, outcome, register

_FILE = "xla/service/instruction_fusion.cc"

OPERAND_NOT_FUSIBLE = essential(
    code="IF001",
    title="The operand is not fusible",
    condition="Is the operand a parameter, a while, conditional, call or domain, or does it have a side "
    "effect?",
    why="Such an operation cannot be emitted inside a kernel: its value comes from outside, it is "
    "control flow with computations of its own, or it must happen exactly once.",
    advice="Mostly nothing: a parameter has to be read from memory. Where a side effect is in the way "
    "(jax.debug.print, a host callback, random bits from the stateful rng op), move it out of the hot "
    "path, and use jax.random, whose default generator is plain arithmetic. A loop whose trip count is "
    "known and small can be unrolled (jax.lax.scan(..., unroll=True)) so that its body becomes "
    "ordinary operations.",
    lasting=True,
    mirrors=f"{_FILE}: InstructionFusion::RunImpl; xla/hlo/ir/hlo_instruction.cc: HloInstruction::IsFusible",
    message="Operand is not fusible",
)

CANNOT_BE_DUPLICATED = register(
    code="IF002",
    title="The producer cannot go into all of its users, and copies would read more memory",
    condition="Does the producer read at least two full-size operands, more elements than it writes, and "
    "is there a path to one of its users on which fusion stops?",
    why="A producer that is fused into some users and kept for another is computed twice and its "
    "inputs are read twice. For an operation with one large input that costs nothing extra; with two "
    "it raises memory traffic, so XLA fuses it into all of its users, on all paths, or into none.",
    advice="Look at the user named in the figures: it is the one that does not fuse. Where that user "
    "is a dot, a convolution or a second output of the jitted function, compute its input separately "
    "or return it later, so that the remaining users can take the producer in.",
    lasting=True,
    mirrors=f"{_FILE}: InstructionFusion::ComputeGloballyUnfusible, CanFuseOnAllPaths, "
    "EffectivelyAtMostUnary",
    message="operand can not be duplicated",
)

MULTI_OUTPUT_UNSUPPORTED = outcome(
    code="IF021",
    title="This pass makes no multi-output fusions",
    condition="After a plain fusion was refused: could the producer become a further output of the "
    "consumer's kernel?",
    why="The driver offers the choice to targets that want it; CPU and GPU leave multi-output fusion "
    "to a pass of its own.",
    advice="On CPU ask for that pass: "
    "XLA_FLAGS=--xla_backend_extra_options=xla_cpu_use_multi_output_fusion (`hlofuse replay --option "
    "multi-output` shows what it would do).",
    mirrors="xla/service/instruction_fusion.h: InstructionFusion::IsConsumerSuitableForMultiOutputFusion",
    message="multi-output fusion not supported by this pass",
)

MULTI_OUTPUT_CYCLE = essential(
    code="IF022",
    title="A multi-output fusion of the two would depend on itself",
    condition="Is another operand of the consumer reachable from the producer?",
    why="Producer and consumer would be one kernel, and something between them would need that "
    "kernel's result before the kernel can run.",
    advice="The operations between the two have to fuse first: see what refuses them.",
    mirrors=f"{_FILE}: MultiOutputFusionCreatesCycle",
    message="multi-output fusion creates a cycle",
)

NOTHING_AGAINST = outcome(
    code="IF030",
    title="Nothing speaks against it",
    condition="Has every rule passed the pair on?",
    why="The base class allows whatever it has no reason to refuse; targets add their own conditions.",
    mirrors=f"{_FILE}: InstructionFusion::ShouldFuse",
    allows=True,
)
