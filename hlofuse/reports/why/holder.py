"""What an operation is a part of: the fusion, reduce or sort that passes decide about."""

from __future__ import annotations

from hlofuse.analysis.kernels import launched_computations
from hlofuse.ir.graph import Instruction
from hlofuse.reports.explain.facts import Facts


def holder_of(name: str, facts: Facts) -> Instruction | None:
    """What `name` is a part of, where it is not an instruction the passes look at.

    That is an operation inside a fusion (of a library, or copied into one of ours) or of the function that
    a reduce, sort or scatter applies.
    """
    instruction, module = facts.before.get(name), facts.replay.before
    if instruction is None:
        if name in facts.after or name in facts.lineage.known():
            return None
        module = facts.replay.after
        instruction = next((i for i in module.instructions() if i.name == name), None)
    running = set(launched_computations(module))
    holder = instruction
    seen: set[Instruction] = set()
    while holder is not None and holder.computation not in running and holder not in seen:
        seen.add(holder)
        home = holder.computation
        holder = (home.fusion or home.first_caller) if home is not None else None
    return holder if holder is not instruction and holder not in seen else None
