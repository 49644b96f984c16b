"""Rules the driver itself applies, before and after asking a target's rules."""

from hlofuse.rules.catalogue import essential, outcome, register

_FILE = "xla/service/instruction_fusion.cc"

OPERAND_NOT_FUSIBLE = essential(
    code="IF001",
    title="The operand is not fusible",
    condition="The operand is a parameter, while, conditional, call or domain, or has a side effect.",
    why="Such an operation cannot be emitted inside a kernel: its value comes from outside, it is control"
    " flow with its own computations, or it must run exactly once.",
    advice="A parameter has to be read from memory. Move a side effect (jax.debug.print, a host callback, the"
    " stateful rng op) out of the hot path; jax.random is plain arithmetic by default. Unroll a loop with a"
    " small, known trip count (jax.lax.scan(..., unroll=True)).",
    lasting=True,
    mirrors=f"{_FILE}: InstructionFusion::RunImpl; xla/hlo/ir/hlo_instruction.cc: HloInstruction::IsFusible",
    message="Operand is not fusible",
)

CANNOT_BE_DUPLICATED = register(
    code="IF002",
    title="The producer cannot be fused into all of its users, and duplicating it would read more memory",
    condition="The producer reads at least two full-size operands and more elements than it writes, and"
    " fusion stops on a path to one of its users.",
    why="A producer fused into only some users is computed twice and reads its inputs twice. With one large"
    " input that is free; with two it adds memory traffic. XLA therefore fuses it into all of its users, on"
    " all paths, or into none.",
    advice="See the user named in the figures: it does not fuse. If it is a dot, a convolution or a second"
    " output of the jitted function, compute its input separately or return it later, so that the other users"
    " can fuse with the producer.",
    lasting=True,
    mirrors=f"{_FILE}: InstructionFusion::ComputeGloballyUnfusible, CanFuseOnAllPaths, "
    "EffectivelyAtMostUnary",
    message="operand can not be duplicated",
)

MULTI_OUTPUT_UNSUPPORTED = outcome(
    code="IF021",
    title="This pass creates no multi-output fusions",
    condition="A plain fusion was refused, and the producer could become another output of the consumer's"
    " kernel.",
    why="The driver offers this option to targets; CPU and GPU use a separate pass for multi-output fusion.",
    advice="On CPU enable that pass: XLA_FLAGS=--xla_backend_extra_options=xla_cpu_use_multi_output_fusion"
    " (`hlofuse replay --option multi-output` shows its effect).",
    mirrors="xla/service/instruction_fusion.h: InstructionFusion::IsConsumerSuitableForMultiOutputFusion",
    message="multi-output fusion not supported by this pass",
)

MULTI_OUTPUT_CYCLE = essential(
    code="IF022",
    title="A multi-output fusion of the two would depend on itself",
    condition="Another operand of the consumer is reachable from the producer.",
    why="An operation between the two would need the fused kernel's result before the kernel can run.",
    advice="The operations between the two have to fuse first: see what refuses them.",
    mirrors=f"{_FILE}: MultiOutputFusionCreatesCycle",
    message="multi-output fusion creates a cycle",
)

NOTHING_AGAINST = outcome(
    code="IF030",
    title="No rule forbids it",
    condition="No rule refused the pair.",
    why="The base class allows whatever it has no reason to refuse; targets add their own conditions.",
    mirrors=f"{_FILE}: InstructionFusion::ShouldFuse",
    allows=True,
)
