"""`verify`: whole corpora, in several processes where that pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.inputs import read_text
from hlofuse.inputs.choose_target import choose_target, requested_target
from hlofuse.inputs.companions import flags_of, recorded_device
from hlofuse.inputs.identity import identify
from hlofuse.inputs.ordered import replay_input
from hlofuse.inputs.stage import stage_of
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module, OrderSource
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.device import device_of
from hlofuse.pipelines.identity import Fact, Identity
from hlofuse.reports.common.head import Head
from hlofuse.reports.verify.cases import Case, Until
from hlofuse.reports.verify.compare import verify_module
from hlofuse.reports.verify.final import verify_final
from hlofuse.reports.verify.model import Report, Verdict
from hlofuse.trace.priority_record import read_priority_record

Progress = Callable[[int, int], None]
"""Called with how many cases are done, of how many."""


@dataclass(frozen=True, slots=True)
class _Job:
    case: Case
    target: str
    device: str | None
    xla: str | None
    option: str | None
    order: OrderSource | None
    ids: str | None
    ties_from_record: bool
    until: Until


def verify(
    cases: Sequence[Case],
    *,
    target: str = "cpu",
    device: str | None = None,
    xla: str | None = None,
    option: str | None = None,
    order: OrderSource | None = None,
    ids: str | None = None,
    ties_from_record: bool = False,
    until: Until = "fusion",
    jobs: int = 1,
    skipped: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Compare our replay with XLA's result for every case (see `find_cases`).

    `device` is a name or file, `xla` a release; without them what the dump says is taken. `order` asks for
    one source of ids and use-lists alone, and `ids` names the file with XLA's; without them the best source
    that lies beside each module is taken. With `until="end"` the final modules are compared.

    A case that cannot be read or replayed becomes a verdict with an error and does not stop the rest.
    """
    work = [_Job(case, target, device, xla, option, order, ids, ties_from_record, until) for case in cases]
    verdicts: list[Verdict | None] = [None] * len(work)
    jobs = min(jobs, len(work))
    if jobs <= 1:
        for n, job in enumerate(work):
            verdicts[n] = _verify(job)
            if progress is not None:
                progress(n + 1, len(work))
    else:
        with ProcessPoolExecutor(jobs) as pool:
            numbers = {pool.submit(_verify, job): n for n, job in enumerate(work)}
            for done, future in enumerate(as_completed(numbers), 1):
                verdicts[numbers[future]] = future.result()
                if progress is not None:
                    progress(done, len(work))
    return Report(target, tuple(v for v in verdicts if v is not None), tuple(skipped))


def _device(job: _Job) -> str | DeviceDescription | None:
    if job.device is not None or not TARGETS[job.target].needs_device:
        return job.device
    found = recorded_device(str(job.case.before))
    return found.device if found is not None else None


def _identity(before: Module, device: DeviceDescription | None, job: _Job) -> Identity:
    chosen = choose_target(str(job.case.before), device=job.device is not None, read=before)
    if chosen.name != job.target:
        chosen = requested_target(job.target)
    on = Fact(device.name, "asked" if job.device is not None else "directory") if device is not None else None
    return identify(before, chosen, on, flags_of(before.filename), job.xla)


def _head(identity: Identity, verdict: Verdict, job: _Job) -> Head:
    depends = TARGETS[job.target].depends_on_order
    return Head(identity, verdict.order if depends else None, verdict.record is not None)


def _verify(job: _Job) -> Verdict:
    try:
        before, after, passes = job.case.load()
        stage = stage_of(before, job.target)
        if stage.foreign_to(job.target):
            backend = str(stage.backend).upper()
            raise HlofuseError(
                f"it is a module for {backend}, not for target {job.target} ({stage.evidence})"
            )
        record = None
        if job.case.record is not None and TARGETS[job.target].has_history:
            record = read_priority_record(read_text(job.case.record, as_module=False))
        device = _device(job)
        on = device_of(job.target, device)[0]
        identity = _identity(before, on, job)
        input = replay_input(before, job.target, on, order=job.order, ids_file=job.ids)
        if job.until == "end":
            verdict = verify_final(
                input.module,
                after,
                name=job.case.name,
                target=job.target,
                device=device,
                xla=identity.replayed,
                option=job.option,
                ids=input.ids,
            )
            return replace(verdict, head=_head(identity, verdict, job))
        verdict = verify_module(
            input.module,
            after,
            name=job.case.name,
            target=job.target,
            device=device,
            xla=identity.replayed,
            option=job.option,
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
