"""Passes that move operations into loops, out of them, or take loops away."""

from __future__ import annotations

from hlofuse.rules.rewrites.outcome import rewrites

SINGLE_ITERATION = rewrites(
    "RW050",
    "simplify-while-loops",
    "The body of a loop that runs once stands in its place",
    condition="Does the loop run exactly once, and has nothing in it a side effect?",
    why="A loop is a border that no fusion crosses; its body in the open fuses with what is around it.",
    mirrors="xla/service/while_loop_simplifier.cc: TryRemoveWhileLoop",
)
INVARIANT = rewrites(
    "RW051",
    "while-loop-invariant-code-motion",
    "An operation moves out of the loop",
    condition="Does it compute the same in each iteration, from values that the loop does not change?",
    why="Computed once before the loop it costs one iteration instead of all; the loop carries the result.",
    advice="A large result that was fused into its reader is now in memory.",
    mirrors="xla/service/while_loop_invariant_code_motion.cc:"
    " WhileLoopInvariantCodeMotion::TryHoistingInvariantInstructionsFromWhileBody",
)
SMALL_LOOP = rewrites(
    "RW052",
    "small-while-loop-hoisting",
    "A loop over little data is one kernel",
    condition="Does one iteration access fewer than 1,024 bytes, and is nothing in it that calls a library"
    " or communicates?",
    why="Compiled as one function, its iterations cost no launches.",
    mirrors="xla/service/cpu/small_while_loop_hoisting_pass.cc: SmallWhileLoopHoistingPass::RunImpl",
)
