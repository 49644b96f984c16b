"""Engines: local processes, Ray or Dask. Each runs `in_child`, so limits are the same everywhere."""

import faulthandler
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from hlofuse.batch.sources import Item, items, package
from hlofuse.batch.store import Store
from hlofuse.batch.summary import html_page, summary
from hlofuse.batch.work import Rows, Task, failure, worked
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.loading import read
from hlofuse.library.options import ReplayOptions

Submit: TypeAlias = Callable[..., "Future[Rows]"]
"""Calls a function with arguments somewhere, as `Executor.submit`."""

_LOST = 20
"""Retries of a unit that the engine lost: the death of a worker is not the unit's fault."""
_EACH = 8
"""Units handed out for each worker: enough that none waits, few enough that little is lost."""
_UNITS = 200
"""Units of one child: a new one has no memory of the old."""


@contextmanager
def _local(workers: int, address: str | None) -> Iterator[Submit]:
    if address is not None:
        raise HlofuseError("--address needs --engine ray or dask")
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool.submit
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _ray(workers: int, address: str | None) -> Iterator[Submit]:
    ray = package("ray", "batch-ray")
    cpus = workers if address is None else None
    ray.init(address, num_cpus=cpus, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    try:
        remote = cache(ray.remote)  # a function is sent once
        yield lambda function, *arguments: remote(function).remote(*arguments).future()
    finally:
        ray.shutdown()


@contextmanager
def _dask(workers: int, address: str | None) -> Iterator[Submit]:
    distributed = package("distributed", "batch-dask")
    own = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.Client(address, **(own if address is None else {})) as client:
        yield client.get_executor(pure=False).submit


_ENGINES = {"local": _local, "ray": _ray, "dask": _dask}
"""Each takes the number of workers to start, or the address of a cluster."""


@contextmanager
def engine(name: str, workers: int, address: str | None) -> Iterator[Submit]:
    """A function that hands out units; HlofuseError where the engine cannot be started or reached."""
    with ExitStack() as stack:
        try:
            submit = stack.enter_context(_ENGINES[name](workers, address))
        except HlofuseError:
            raise
        except Exception as error:
            place = f" at {printable(address)}" if address is not None else ""
            raise HlofuseError(f"cannot start {name}{place}: {printable(str(error)[:200])}") from None
        yield submit


def results(items: Iterable[Item], submit: Submit, task: Task, workers: int) -> Iterator[Rows]:
    """The rows of every item, as they come. What an engine loses is handed out again."""
    waiting: dict[Future[Rows], tuple[Item, int]] = {}

    def collected(most: int) -> Iterator[Rows]:
        while len(waiting) > most:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                item, lost = waiting.pop(future)
                try:
                    yield future.result()
                except Exception as error:
                    if lost < _LOST:
                        waiting[submit(in_child, item, task)] = item, lost + 1
                    else:
                        yield failure(item, "engine", f"lost by the engine: {str(error)[:200]}", task)

    for item in items:
        waiting[submit(in_child, item, task)] = item, 0
        yield from collected(workers * _EACH)
    yield from collected(0)


# A child works in a process of its own, which may be killed: a worker of an engine must not be.

_THREAD = threading.local()
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def in_child(item: Item, task: Task) -> Rows:
    """`worked` in the process of this thread, or the failure of that process to stay within the limits."""
    child = getattr(_THREAD, "child", None) or _start()
    start = time.monotonic()
    try:
        pickle.dump((item, task), child.stdin)
        child.stdin.flush()
        rows, goes_on = pickle.load(child.stdout)
    except (EOFError, OSError, pickle.UnpicklingError):
        problem = f"its process died with status {child.wait()}"
        if time.monotonic() - start >= task.seconds:
            problem = f"took over {task.seconds:g} s"
        rows, goes_on = failure(item, "limit", problem, task), False
    _THREAD.child = child if goes_on else None
    if not goes_on:
        child.communicate()
    found: Rows = rows
    return found


def _start() -> Any:
    return subprocess.Popen(
        [sys.executable, "-c", "from hlofuse.batch.engines import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **_ENVIRONMENT},
    )


def serve() -> None:
    """Read units from standard input and write their rows to standard output until there are no more."""
    units, rows = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints is no row
    for left in reversed(range(_UNITS)):
        try:
            item, task = pickle.load(units)
        except EOFError:
            return
        with suppress(ImportError):  # Windows has no such limits
            import resource

            most = resource.getrlimit(resource.RLIMIT_AS)[1]
            own = task.memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (own if most < 0 else min(own, most), most))
        # Ends the process from a thread of its own, whatever Python is doing.
        faulthandler.dump_traceback_later(task.seconds, exit=True)
        pickle.dump((worked(item, task), left > 0), rows)
        faulthandler.cancel_dump_traceback_later()
        rows.flush()


_MODULE = "HloModule m\nENTRY %e (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"
"""Read before all others: what is wrong with the options is an error of the call."""


def run(
    sources: Sequence[str],
    out: Path,
    task: Task,
    engine_name: str = "local",
    workers: int = 1,
    address: str | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[int, int]:
    """Work on everything in the sources and write the tables into `out`; the units worked out, and all.

    What an earlier run into `out` has worked out with the same options is taken from there. HlofuseError for
    wrong options, sources that hold nothing, a missing package and a folder that cannot be written.
    """
    is_for_one = task.request.get("target") or task.request.get("device")
    request = {**task.request, **({} if is_for_one else {"target": "gpu", "option": None})}
    read(ReplayOptions("-", given=_MODULE, **request), any_stage=True)
    store = Store(out)
    listed = items(sources, json.dumps(task.settings, sort_keys=True))
    finished = store.finished(task)
    left = list({item.key: item for item in listed if item.key not in finished}.values())
    if left:
        with engine(engine_name, workers, address) as submit:
            try:
                for done, rows in enumerate(results(left, submit, task, workers), 1):
                    store.add(rows)
                    progress(done, len(left))
            finally:
                store.flush()
    store.finish(listed, task)
    found = summary(out)
    (out / "summary.md").write_text(found.to_markdown(limit=50) + "\n", encoding="utf-8")
    (out / "summary.html").write_text(html_page(found), encoding="utf-8")
    return len(left), len(listed)
