"""XLA's own record of PriorityFusion, read for what it computed before anything was fused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hlofuse.cost.gpu import DeviceDescription, KernelModel, load_device
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.ticks import fp32, microseconds
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.text.reader import parse_module

from ...fixtures import Case, read_cases

_STEP = re.compile(r"fusion_steps \{\n  (\w+) \{\n(.*?)\n  \}\n\}", re.DOTALL)
_TEXT = re.compile(r'\b(\w+): "((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(r"\b(us_\w+): (\S+)")


@dataclass(frozen=True)
class Priority:
    """One `update_priority` step."""

    producer: str
    consumers: tuple[str, ...]
    us_fused: float
    us_unfused: float


@dataclass(frozen=True)
class Comparison:
    """A record beside what the model says, in XLA's single-precision microseconds."""

    record: Priority
    opcode: str
    us_fused: float
    us_unfused: float

    @property
    def agrees(self) -> bool:
        return (self.us_fused, self.us_unfused) == (self.record.us_fused, self.record.us_unfused)


def read_priorities(text: str) -> dict[str, Priority]:
    """The first priority of every producer."""
    first: dict[str, Priority] = {}
    for kind, body in _STEP.findall(text):
        if kind != "update_priority":
            continue
        names: dict[str, list[str]] = {}
        for field, value in _TEXT.findall(body):
            names.setdefault(field, []).append(value)
        numbers = {field: fp32(float(value)) for field, value in _NUMBER.findall(body)}
        producer = names["producer_name"][0]
        consumers = tuple(names.get("consumer_names", ()))
        record = Priority(producer, consumers, numbers.get("us_fused", 0.0), numbers.get("us_unfused", 0.0))
        first.setdefault(producer, record)
    return first


def compare(module: Module, model: KernelModel, priorities: dict[str, Priority]) -> Iterator[Comparison]:
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


def load_case(folder: Path) -> tuple[Module, dict[str, Priority]]:
    """A corpus case: the module as it enters PriorityFusion, and the pass's record."""
    dumps = sorted(f for f in folder.iterdir() if "sort-iota" in f.name)
    source = dumps[0] if dumps else folder / "before.hlo"
    record = (folder / "priority_fusion.txtpb").read_text()
    return parse_module(source.read_text(), str(source)), read_priorities(record)


COMPACT = read_cases(Path(__file__).parent / "modules")
"""Modules with records of XLA's: producer, consumers, us_fused, us_unfused."""


def device_of(case: Case) -> DeviceDescription:
    """The device a compact module was compiled for; keys other than `device` override its numbers."""
    overrides = {key: value for key, value in case.options.items() if key != "device"}
    return load_device(case.options["device"]).with_overrides(overrides)


def load_compact(case: Case) -> tuple[Module, dict[str, Priority]]:
    """A compact module with its records."""
    records = json.loads(case.section("PRIORITIES"))
    return case.module(), {r[0]: Priority(r[0], tuple(r[1]), fp32(r[2]), fp32(r[3])) for r in records}
