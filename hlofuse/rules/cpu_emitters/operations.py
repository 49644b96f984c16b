"""Instructions that stay outside fusions on CPU."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.verdict import runner

_EMIT = "xla/service/cpu/thunk_emitter.cc: ThunkEmitter::EmitHloInstruction"
_COLLECTIVES = frozenset("all-gather all-reduce all-to-all collective-permute reduce-scatter".split())
_RANDOM = frozenset("rng rng-bit-generator rng-get-and-update-state".split())


@runner(
    code="EC030",
    title="A sort in the C++ standard library",
    condition="The operation is a sort.",
    why="std::sort (or std::stable_sort) with a compiled comparator; plain ascending and descending orders"
    " have fast paths. It sorts in place, so the operands are copied first.",
    advice="Sort by one number in plain order.",
    mirrors="xla/service/cpu/thunk_emitter.cc: ThunkEmitter::EmitSortThunk",
    runs="sort",
)
def sort(kernel: Instruction) -> dict[str, Any] | None:
    return {"operands": len(kernel.operands)} if kernel.opcode == "sort" else None


@runner(
    code="EC031",
    title="A copy is a memcpy",
    condition="A copy of whole bytes.",
    why="A library transposes or copies; XLA generates no code.",
    advice="Such copies separate a loop's state or an argument from the result; donating the argument can"
    " remove them.",
    mirrors="xla/service/cpu/thunk_emitter.cc: ThunkEmitter::EmitCopyThunk",
    runs="memcpy",
)
def copy(kernel: Instruction) -> dict[str, Any] | None:
    is_copy = kernel.opcode == "copy" and kernel.shape.bit_width >= 8
    return {"bytes": kernel.shape.byte_size} if is_copy else None


@runner(
    code="EC032",
    title="A concatenate as one memcpy per part",
    condition="The concatenate is not in a fusion.",
    why="Each part is contiguous in memory, so copying needs no loop over elements.",
    mirrors="xla/service/cpu/thunk_emitter.cc: ThunkEmitter::EmitConcatenateKernelThunk",
    runs="memcpy kernel",
)
def concatenate(kernel: Instruction) -> dict[str, Any] | None:
    if kernel.opcode != "concatenate":
        return None
    return {"joins": f"{len(kernel.operands)} along dimension {kernel.dimensions[0]}"}


@runner(
    code="EC033",
    title="Processes talk to each other",
    condition="Is it a collective operation?",
    why="Gloo or MPI moves the data.",
    mirrors=_EMIT,
    runs="collective",
)
def collective(kernel: Instruction) -> dict[str, Any] | None:
    return {"opcode": kernel.opcode} if kernel.opcode in _COLLECTIVES else None


@runner(
    code="EC034",
    title="Random numbers",
    condition="Is it an rng, an rng-bit-generator or the update of a generator's state?",
    why="A kernel of its own keeps or advances the state.",
    advice="JAX's own keys (jax.random) are ordinary arithmetic and fuse.",
    mirrors=_EMIT,
    runs="random state kernel",
)
def random(kernel: Instruction) -> dict[str, Any] | None:
    return {"opcode": kernel.opcode} if kernel.opcode in _RANDOM else None


@runner(
    code="EC035",
    title="A kernel for one operation",
    condition="Is it any other operation that stands alone?",
    why="The elemental emitter writes a loop for it (a convolution Eigen cannot do, a "
    "select-and-scatter, a copy of less than bytes).",
    mirrors="xla/service/cpu/thunk_emitter.cc: ThunkEmitter::EmitElementalKernelThunk",
    runs="elemental emitter",
)
def elemental(kernel: Instruction) -> dict[str, Any] | None:
    return {"opcode": kernel.opcode}


RULES = (sort, copy, concatenate, collective, random, elemental)
