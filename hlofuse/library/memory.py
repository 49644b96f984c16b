"""The answer of `memory`: bytes of arguments, results and temporaries, and what is alive at the peak."""

import re

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tpu import TpuDevice
from hlofuse.inputs.companions import companions_of
from hlofuse.ir import HlofuseError, Json, replace
from hlofuse.reports.check.baseline import parse_bytes
from hlofuse.reports.common.head import OWN_DECISIONS
from hlofuse.reports.memory import MemoryUse, memory_use
from hlofuse.reports.memory.changes import memory_changes
from hlofuse.reports.memory.model import memory_json
from hlofuse.reports.memory.text import fitting_first, print_memory
from .answer import Answer
from .heads import rests_on
from .program import Program
from .questions import Memory


def _available(device: DeviceDescription | TpuDevice | None, options: Memory) -> Json:
    if options.memory is not None:
        return {"available": parse_bytes(str(options.memory))}
    if device is None or not device.device_memory_size:
        return {}
    return {"available": device.device_memory_size, "device": device.name}


_REMATERIALIZED = re.compile(r"\.remat\d*(\.|$)")
"""In the name of an instruction that XLA's rematerialization adds (`hlo_rematerialization.cc`)."""


def memory(report: Program, options: Memory) -> Answer[MemoryUse]:
    """The answer of `memory`; HlofuseError where the final module is not known."""
    account = report.account
    if account.totals.memory_bytes is None:
        raise HlofuseError(
            "memory needs the module that runs: give its dump after optimizations, or all dumps"
        )
    device = report.loaded.device or account.machine
    gpu = device if isinstance(device, DeviceDescription) else None
    again = [r for r in account.rows if _REMATERIALIZED.search(r.instruction.name)]
    again_us = [r.total_us for r in again if r.total_us is not None and not r.is_floor]
    found = replace(
        memory_use(account.module, account.memory, gpu),
        **_available(device, options),
        rematerialized=(len(again), sum(again_us) if 0 < len(again_us) == len(again) else None),
        is_estimated=report.counted == "replayed",
        recorded_temporary=companions_of(report.module).temporary_bytes,
        recorded_total=companions_of(report.module).memory_bytes,
    )
    if not report.is_fused:
        report.draw_figures = lambda console: print_memory(found, console)
        changes = memory_changes(report.observed, report.facts, lambda: report.verdict)
        found = replace(found, changes=fitting_first(changes, found))
    rest = rests_on(report)
    if report.counted == "xla":  # for these figures no other dump is needed
        rest["note"] = rest["note"].partition(OWN_DECISIONS)[0]
    return Answer(
        "memory",
        lambda: found,
        json=memory_json,
        body=lambda console: print_memory(found, console),
        limit=20,
        rows_of="alive",
        **rest,
    )
