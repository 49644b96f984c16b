"""A run from sources to tables."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from hlofuse.batch.engines import engine, results
from hlofuse.batch.sources import items
from hlofuse.batch.store import Store
from hlofuse.batch.summary import html_page, summary
from hlofuse.batch.work import Task
from hlofuse.library.loading import read
from hlofuse.library.options import ReplayOptions

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
