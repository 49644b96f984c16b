"""XLA's record of PriorityFusion beside its module: kept with the tests, or in the reference corpus.

In a fixture, PRIORITIES has XLA's first record of each producer: `[producer, [consumer, ...], us_fused,
us_unfused]`, or `[producer, reason]` for a refusal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.trace.priority_record import IneligibleStep, PriorityStep, RecordedStep, read_priority_record
from ..fixtures import Case

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
FirstStep: TypeAlias = PriorityStep | IneligibleStep


def device_of(case: Case) -> DeviceDescription:
    """The device a compact module was compiled for; keys other than `device` override its numbers."""
    overrides = {key: value for key, value in case.options.items() if key != "device"}
    return load_device(case.options["device"]).with_overrides(overrides)


def steps_of(case: Case) -> list[RecordedStep]:
    """What a compact module's record says."""
    rows = json.loads(case.section("PRIORITIES"))
    return [IneligibleStep(*r) if len(r) == 2 else PriorityStep(r[0], tuple(r[1]), r[2], r[3]) for r in rows]


def load_corpus_case(folder: Path) -> tuple[Module, list[RecordedStep]]:
    """The module as it enters PriorityFusion, and the pass's record."""
    dumps = sorted(f for f in folder.iterdir() if "sort-iota" in f.name)
    source = dumps[0] if dumps else folder / "before.hlo"
    record = read_priority_record((folder / "priority_fusion.txtpb").read_text())
    return parse_module(source.read_text(), str(source)), record.steps


def first_steps(steps: list[RecordedStep]) -> dict[str, FirstStep]:
    """The first priority or refusal of each producer: XLA computed it before it fused anything."""
    first: dict[str, FirstStep] = {}
    for step in steps:
        if isinstance(step, PriorityStep | IneligibleStep):
            first.setdefault(step.producer, step)
    return first


def first_priorities(steps: list[RecordedStep]) -> dict[str, PriorityStep]:
    """The first priority of each producer, whether or not it was refused before."""
    first: dict[str, PriorityStep] = {}
    for step in steps:
        if isinstance(step, PriorityStep):
            first.setdefault(step.producer, step)
    return first
