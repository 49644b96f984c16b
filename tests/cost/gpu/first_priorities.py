"""What the model says of pairs before anything is fused, beside XLA's first record of each producer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import fp32, microseconds
from hlofuse.ir.graph import Instruction, Module
from hlofuse.trace.priority_record import PriorityStep
from ...fixtures import Case, read_cases
from ..records import first_priorities, steps_of

COMPACT = read_cases(Path(__file__).parent / "modules")


@dataclass(frozen=True)
class Comparison:
    """A record beside what the model says, in XLA's single-precision microseconds."""

    record: PriorityStep
    opcode: str
    us_fused: float
    us_unfused: float

    @property
    def agrees(self) -> bool:
        recorded = fp32(self.record.us_fused), fp32(self.record.us_unfused)
        return (self.us_fused, self.us_unfused) == recorded


def compare(module: Module, model: KernelModel, priorities: dict[str, PriorityStep]) -> Iterator[Comparison]:
    """The first priorities that involve no generic Triton fusion, which is costed by tiles."""
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        for producer in computation:
            record = priorities.get(producer.name)
            if record is None or {u.name for u in producer.users} != set(record.consumers):
                continue
            if any(is_generic_triton_fusion(i) for i in (producer, *producer.users)):
                continue
            fused, unfused = full_sums(model, producer)
            yield Comparison(record, producer.opcode, microseconds(fused), microseconds(unfused))


def full_sums(model: KernelModel, producer: Instruction) -> tuple[int, int]:
    """Ticks with the producer fused into all its users, and with none fused (`EstimateRunTimes`)."""
    count = len(producer.users)
    fused = model.device.launch_ticks * count
    unfused = model.device.launch_ticks * (count + 1) + model.run_time(producer).ticks
    for user in producer.users:
        unfused += model.run_time(user).ticks
        fused += model.pair_time(producer, user).ticks
    return fused, unfused


def load_compact(case: Case) -> tuple[Module, dict[str, PriorityStep]]:
    """A compact module with the priorities XLA recorded for it."""
    return case.module(), first_priorities(steps_of(case))
