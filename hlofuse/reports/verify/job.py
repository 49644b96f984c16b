"""One module of a verification: read it, see what wrote it, replay it and compare."""

from dataclasses import dataclass, replace

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.inputs import read_text
from hlofuse.inputs.choose_target import choose_target, requested_target
from hlofuse.inputs.companions import compiled_with, recorded_device
from hlofuse.inputs.identity import identify
from hlofuse.inputs.ordered import replay_input
from hlofuse.inputs.stage import stage_of
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module, OrderSource
from hlofuse.pipelines import TARGETS, device_of
from hlofuse.pipelines.identity import Fact, Identity
from hlofuse.replay.config import replay_config
from hlofuse.reports.common.head import Head
from hlofuse.reports.verify.cases import Case, Until
from hlofuse.reports.verify.compare import verify_module
from hlofuse.reports.verify.final_kernels import verify_final
from hlofuse.reports.verify.model import Verdict
from hlofuse.trace.priority_record import read_priority_record


@dataclass(frozen=True, slots=True)
class Job:
    """A module to verify, and how."""

    case: Case
    target: str = "cpu"
    device: str | None = None
    """A name or file; None where the dump decides."""
    xla: str | None = None
    """The release that is asked for; None where the dump decides."""
    option: str | None = None
    order: OrderSource | None = None
    """The one source of ids and use-lists; None for the best that lies beside the module."""
    ids: str | None = None
    """The file with XLA's ids."""
    ties_from_record: bool = False
    until: Until = "fusion"
    """With `end` the final modules are compared."""
    flags: tuple[str, ...] = ()
    """XLA flags besides those of the dump."""
    tried: str | None = None
    """A release to replay as, of those that the dump leaves open."""


def _device(job: Job) -> str | DeviceDescription | None:
    if job.device is not None or not TARGETS[job.target].needs_device:
        return job.device
    found = recorded_device(str(job.case.before))
    return found.device if found is not None else None


def _identity(before: Module, device: DeviceDescription | None, job: Job) -> Identity:
    chosen = choose_target(str(job.case.before), device=job.device is not None, read=before)
    if chosen.name != job.target:
        chosen = requested_target(job.target)
    on = Fact(device.name, "asked" if job.device is not None else "directory") if device is not None else None
    found = identify(before, chosen, on, compiled_with(before), job.xla)
    return replace(found, replayed=job.tried) if job.tried is not None else found


def _head(identity: Identity, verdict: Verdict, job: Job) -> Head:
    depends = TARGETS[job.target].depends_on_order
    return Head(identity, verdict.order if depends else None, verdict.record is not None)


def run(job: Job) -> Verdict:
    """The verdict; what cannot be read or replayed becomes a verdict with an error."""
    try:
        before, after, passes = job.case.load()
        before.requested_flags = job.flags
        stage = stage_of(before, job.target)
        if stage.foreign_to(job.target):
            backend = str(stage.backend).upper()
            raise HlofuseError(f"the module is for {backend}, not for target {job.target} ({stage.evidence})")
        record = None
        if job.case.record is not None and TARGETS[job.target].has_history:
            record = read_priority_record(read_text(job.case.record, as_module=False))
        device = _device(job)
        on = device_of(job.target, device)[0]
        identity = _identity(before, on, job)
        flags = compiled_with(before)
        input = replay_input(before, job.target, on, order=job.order, ids_file=job.ids)
        if job.until == "end":
            config = replay_config(
                job.target, device, xla=identity.replayed, option=job.option, xla_flags=flags
            )
            verdict = verify_final(input.module, after, name=job.case.name, config=config, ids=input.ids)
            return replace(verdict, head=_head(identity, verdict, job))
        verdict = verify_module(
            input.module,
            after,
            name=job.case.name,
            target=job.target,
            device=device,
            xla=identity.replayed,
            option=job.option,
            flags=flags,
            ids=input.ids,
            after_passes=passes,
            recorded=job.case.recorded,
            complete=job.case.complete,
            record=record,
            ties_from_record=job.ties_from_record,
        )
        verdict = replace(verdict, head=_head(identity, verdict, job))
        if job.case.doubt is None or (verdict.exact and all(p.exact for p in verdict.passes)):
            return verdict
        return replace(verdict, note=" ".join(filter(None, (job.case.doubt, verdict.note))))
    except HlofuseError as e:
        error = str(e)
    except Exception as e:  # one module's trouble is not the others'
        error = f"internal error: {type(e).__name__}: {str(e)[:200]}"
    return Verdict(job.case.name, False, False, (), 0, 0, 0, None, error, 0.0)
