"""Units of work in processes of this machine, each within limits of time and memory."""

import faulthandler
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from hlofuse.ir import Progress
from hlofuse.library.loading import read
from hlofuse.library.options import ReplayOptions
from .sources import Item, items
from .store import Store
from .summary import index, summary
from .work import Rows, Task, failure, worked

_EACH = 8  # units handed out for each worker: enough that none waits, few enough that little is lost
_UNITS = 200  # units of one child: a new one has no memory of the old


def results(items: Iterable[Item], task: Task, workers: int) -> Iterator[Rows]:
    """The rows of every item, as they come."""
    waiting: dict[Future[Rows], Item] = {}
    pool = ThreadPoolExecutor(workers)

    def collected(most: int) -> Iterator[Rows]:
        while len(waiting) > most:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                item = waiting.pop(future)
                try:
                    yield future.result()
                except Exception as error:
                    yield failure(item, "engine", f"no process for it: {str(error)[:200]}", task)

    try:
        for item in items:
            waiting[pool.submit(in_child, item, task)] = item
            yield from collected(workers * _EACH)
        yield from collected(0)
    finally:
        pool.shutdown(cancel_futures=True)


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
        [sys.executable, "-c", "from hlofuse.batch.processes import serve; serve()"],
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
    workers: int = 1,
    progress: Progress = lambda done, of: None,
) -> tuple[int, int]:
    """Work on everything in the sources and write the tables into `out`; the units worked out, and all. What
    an earlier run into `out` has worked out with the same options is taken from there. HlofuseError for wrong
    options, sources that hold nothing, a missing package and a folder that cannot be written."""
    is_for_one = task.request.get("target") or task.request.get("device")
    request = {**task.request, **({} if is_for_one else {"target": "gpu", "option": None})}
    read(ReplayOptions("-", given=_MODULE, **request), any_stage=True)
    store = Store(out)
    listed = items(sources, json.dumps(task.settings, sort_keys=True))
    finished = store.finished(task)
    left = list({item.key: item for item in listed if item.key not in finished}.values())
    if left:
        if task.pages is not None:
            task.pages.mkdir(parents=True, exist_ok=True)
        try:
            for done, rows in enumerate(results(left, task, workers), 1):
                store.add(rows)
                progress(done, len(left))
        finally:
            store.flush()
    store.finish(listed, task)
    found = summary(out)
    (out / "summary.md").write_text(found.to_markdown(limit=50) + "\n", encoding="utf-8")
    if task.pages is not None:
        (out / "index.html").write_text(index(out), encoding="utf-8")
    return len(left), len(listed)
