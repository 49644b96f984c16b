"""One unit of work: from a module to the rows of every table."""

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import field

from hlofuse import __version__
from hlofuse.account.functions import functions_of
from hlofuse.inputs.profile import is_profile
from hlofuse.inputs.text import input_limit
from hlofuse.ir import HlofuseError, Json, Record
from hlofuse.library.answer import flat
from hlofuse.library.loading import each_module
from hlofuse.library.options import ReplayOptions
from hlofuse.library.reasons import final_of_tpu
from hlofuse.library.report import Report
from hlofuse.reports.check.check import profile_of_replay, profile_of_result, refused_edges, where_is
from hlofuse.reports.check.model import RefusedEdge, kernel_json, refused_edge_json, where_json
from hlofuse.reports.common.functions import functions_json
from hlofuse.reports.common.model import totals_json
from hlofuse.reports.common.xla_result import compare_with_result
from hlofuse.reports.verdict.json import verdict_json
from .sources import SCHEMA, Item

Rows: TypeAlias = dict[str, list[Json]]  # Rows by the name of their table; columns that are missing are null
_BACK = '<header><a href="../index.html">All modules</a>'


class Task(Record):
    """The work on every unit, and the limits of one unit."""

    request: Mapping[str, Any] = field(default_factory=dict)
    """Options of the replay: the fields of `ReplayOptions` that are not of one module."""
    suggests: bool = True  # Try changes, too, for what each could gain. It takes most of the time.
    seconds: float = 600
    memory_bytes: int = 4 << 30
    file_bytes: int = field(default_factory=input_limit)
    pages: Path | None = None  # The folder for the page of each module; None for none

    @property
    def limits(self) -> str:
        return f"{self.seconds:g} s, {self.memory_bytes >> 20} MiB, files of {self.file_bytes >> 20} MiB"

    @property
    def settings(self) -> Json:
        """The settings that rows depend on; rows are computed again where they change."""
        options = {name: value for name, value in self.request.items() if value}
        pages = {"pages": True} if self.pages else {}
        settings = {
            "schema": SCHEMA,
            "hlofuse": __version__,
            "options": options,
            "suggestions": self.suggests,
        }
        return settings | pages


def page_name(key: str, module: str | None) -> str:
    """The file of a module's page, in the folder `pages` of a run."""
    return f"{key}-{re.sub(r'[^A-Za-z0-9_.-]', '_', module or '')[-120:]}.html"


def worked(item: Item, task: Task) -> Rows:
    """The rows of all modules of a unit. What cannot be read or replayed is a row with its error."""
    start = time.monotonic()
    unit: Json = {"limits": task.limits}
    found: Rows = {table: [] for table in ("modules", "kernels", "functions", "edges", "suggestions")}
    found["work"] = [unit]
    for rows in _of_each(item, task):
        for table, more in rows.items():
            found[table] += more
    unit |= {"seconds": time.monotonic() - start, "memory_bytes": _peak_memory()}
    for row in (row for rows in found.values() for row in rows):
        row["key"] = item.key
    return found


def failure(item: Item, kind: str, message: str, task: Task) -> Rows:
    """The rows of a unit that could not be worked out."""
    row = {"key": item.key, "module": item.name, "error": message, "error_kind": kind}
    return {"modules": [row], "work": [{"key": item.key, "limits": task.limits}]}


def _of_each(item: Item, task: Task) -> Iterator[Rows]:
    name: str | None = item.name
    path = ""
    try:
        with item.local(task.file_bytes) as path:
            for options, _ in each_module(ReplayOptions(path, item.module, **task.request)):
                try:
                    name = options.module if is_profile(path) else item.name
                    report = Report(options)
                    rows = _rows(report, task.suggests)
                    if task.pages is not None:
                        with suppress(HlofuseError):  # the figures stand without a page
                            own = (final_of_tpu(report) or report).explore(timeline=False)
                            name_of_page = page_name(item.key, rows["modules"][0]["module"])
                            page = own.replace("<header>", _BACK, 1)
                            (task.pages / name_of_page).write_text(page, encoding="utf-8")
                    yield rows
                except Exception as error:
                    yield _error(item, name, path, error, task)
    except Exception as error:
        yield _error(item, name, path, error, task)


def _error(
    item: Item,
    name: str | None,
    path: str,
    error: Exception,
    task: Task,
) -> Rows:
    """Places are left out of the message: the row has the file's, and copies lie anywhere."""
    kind = "input"
    if isinstance(error, HlofuseError):
        message = error.first_line
        for place in filter(None, (path, item.source)):
            message = message.replace(f"{place}/", "").replace(f"{place}:", "").replace(place, "it").strip()
    elif isinstance(error, MemoryError):
        kind, message = "limit", f"needs over {task.memory_bytes >> 20} MiB of memory"
    elif isinstance(error, RecursionError):
        message = "is nested too deeply"
    elif isinstance(error, OSError):
        message = f"cannot be read: {error.strerror or type(error).__name__}"
    else:
        kind, message = "internal", f"internal error: {type(error).__name__}: {str(error)[:200]}"
    return {"modules": [{"module": name, "error": message, "error_kind": kind}]}


def _rows(report: Report, with_verdict: bool) -> Rows:
    """The columns are those of the JSON reports, as `Answer.rows` names them."""
    found = report.kernels.to_json()
    row = {**found, **found["xla"], **totals_json(report.account.totals)}
    row |= {"source": None, "counted": report.counted}
    if is_profile(report.options.input):
        row["module"] = report.options.module
    root, loaded = Path(), report.loaded
    if report.is_fused:
        profile = profile_of_result(loaded.module.name, report.account, loaded.target, loaded.device, root)
        edges = list(_boundaries(report, root))
    else:
        profile = profile_of_replay(loaded.module.name, report.facts, root)
        edges = [_edge(e) for e in refused_edges(report.facts, root)]
        row["before"] = totals_json(report.facts.totals_before)
        result = compare_with_result(report.replay)
        row["xla_result"] = result.to_json() if result is not None else {}
    suggestions = []
    if with_verdict:
        verdict = verdict_json(report.verdict_as_it_is if report.is_fused else report.verdict)
        suggestions = [
            {**s, **s["tried"], "rank": rank, "source_line": s["source"], "what": s["text"]}
            for rank, s in enumerate(verdict["suggestions"], 1)
        ]
        own = (s for s in suggestions if s["kind"] != "report")  # no limitations of XLA
        row |= {**verdict["verdict"], "best": next(own, None)}
    contents = {k.name: {**kernel_json(k), **(where_json(k.where) or {})} for k in profile.kernels}
    kernels = [
        {**contents.get(k["name"], {}), **k, "time_us": k["us"], "bytes": k["bytes_accessed"]}
        for k in found["kernels"]
    ]
    tables = {"modules": [row], "kernels": kernels, "edges": edges, "suggestions": suggestions}
    tables["functions"] = functions_json(functions_of(report.account, 1))["rows"]
    return {
        table: [dict(flat({**r, "module": row["module"]})) for r in rows] for table, rows in tables.items()
    }


def _edge(edge: RefusedEdge) -> Json:
    found = {**refused_edge_json(edge), **(where_json(edge.where) or {})}
    user = found["consumer_input_name"]
    return {**found, "producer_kernel": next(iter(edge.kernels - {user}), user), "consumer_kernel": user}


def _boundaries(report: Report, root: Path) -> Iterator[Json]:
    """Pairs of kernels in a fused module, with the rule that keeps them apart."""
    explained = report.explain().to_json()
    for edge in explained.get("boundaries", ()):
        producer = report.module.find(edge["producer"])
        where = where_json(where_is(report.module, producer, root)) if producer is not None else None
        rule = explained["rules"].get(edge["rule"], {})
        ends = {"producer_kernel": edge["producer"], "consumer_kernel": edge["consumer"]}
        yield {**edge, **ends, **(where or {}), "title": rule.get("title")}


def _peak_memory() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
