"""`verify`: whole corpora, in several processes where that pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from hlofuse.ir.graph import OrderSource
from hlofuse.reports.verify.cases import Case, Until
from hlofuse.reports.verify.job import Job, run
from hlofuse.reports.verify.model import Report, Verdict
from hlofuse.reports.verify.releases import with_best_release

Progress = Callable[[int, int], None]
"""Called with how many cases are done, of how many."""


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
    flags: tuple[str, ...] = (),
    until: Until = "fusion",
    jobs: int = 1,
    skipped: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Compare our replay with XLA's result for every case (see `find_cases`).

    `device` is a name or file, `xla` a release; without them what the dump says is taken. `order` asks for
    one source of ids and use-lists alone, and `ids` names the file with XLA's; without them the best source
    that lies beside each module is taken. With `until="end"` the final modules are compared. `flags` are XLA
    flags besides those of the dumps.

    Where the dumps leave their release open, modules that differ are replayed as the others, too, and the
    report is that of the best.

    A case that cannot be read or replayed becomes a verdict with an error and does not stop the rest.
    """
    work = [
        Job(case, target, device, xla, option, order, ids, ties_from_record, until, flags) for case in cases
    ]

    def run_all(jobs_left: Sequence[Job]) -> list[Verdict]:
        return _run_all(jobs_left, jobs, progress)

    verdicts, tried = with_best_release(work, run_all(work), run_all)
    return Report(target, tuple(verdicts), tuple(skipped), tried)


def _run_all(work: Sequence[Job], processes: int, progress: Progress | None) -> list[Verdict]:
    verdicts: dict[int, Verdict] = {}
    processes = min(processes, len(work))
    if processes <= 1:
        for n, job in enumerate(work):
            verdicts[n] = run(job)
            if progress is not None:
                progress(n + 1, len(work))
    else:
        with ProcessPoolExecutor(processes) as pool:
            numbers = {pool.submit(run, job): n for n, job in enumerate(work)}
            for done, future in enumerate(as_completed(numbers), 1):
                verdicts[numbers[future]] = future.result()
                if progress is not None:
                    progress(done, len(work))
    return [verdicts[n] for n in range(len(work))]
