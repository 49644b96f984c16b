"""Two runs, reported as `hlofuse check` reports a baseline and what came of it."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hlofuse.format.terminal import Page
from hlofuse.ir import Json, grouped, replace
from hlofuse.library.answer import Answer
from hlofuse.library.measuring import check_answer
from hlofuse.reports.check import Baseline, Check, Code, Finding, Level, Measured, Profile, check_modules
from hlofuse.reports.check.model import BaselineKernel, Figures, RefusedEdge, Where
from hlofuse.reports.check.text import print_check
from hlofuse.reports.common.model import Place
from .sources import document
from .store import opened

if TYPE_CHECKING:
    import duckdb

ByModule: TypeAlias = dict[tuple[str, str], list[Json]]


def compared(before: Path, after: Path, tolerance: float = 0.0, strict: bool = False) -> Answer[Check]:
    """The changes from one run to another, worst first; modules without a change are counted only. Modules
    are paired by their path in the source and their name, whatever device and release they are for.
    `tolerance` is in percent. HlofuseError for a folder that is no finished run."""
    link = opened(before, prefix="a_")
    opened(after, link, "b_")
    link.execute(document("queries")["pairs"])
    pairs = link.execute("SELECT path, module, a, b FROM pairs").fetchall()
    old, new, edges = (_by_module(link, *t) for t in (("a", "kernels"), ("b", "kernels"), ("b", "edges")))
    unread = {path for path, _, _, b in pairs if b is not None and b["error"] is not None}
    stored, measured, others = Baseline(), [], []
    builds: dict[str, None] = {}
    for path, module, a, b in pairs:
        name = f"{path} {module or ''}".strip()
        was_read = a is not None and a["error"] is None
        if b is None:
            if was_read and path not in unread:
                level = Level.ERROR if strict else Level.NOTE
                others.append(Finding(Code.MODULE_MISSING, level, name, f"in {before}, not in {after}"))
        elif b["error"] is not None:
            if was_read or a is None:
                others.append(Finding(Code.MODULE_MISSING, Level.ERROR, name, f"not read: {b['error']}"))
        else:
            if was_read:
                stored.profiles[name] = _profile(name, a, old)
                if _build(a) != _build(b):
                    builds[f"compares {_build(a)} → {_build(b)}"] = None
            refused = partial(_refused_edges, edges.get((b["key"], b["module"]), []))
            measured.append(Measured(_profile(name, b, new), b["source"], refused))
    check = check_modules(
        measured,
        baseline=stored,
        baseline_name=str(before),
        all_there=False,
        tolerance=tolerance / 100,
        strict=strict,
    )
    changed = tuple(m for m in check.modules if m.findings)
    (counted,) = link.execute("SELECT count(*) FROM b_modules WHERE error IS NULL").fetchone() or (0,)
    same = f"{counted - len(changed):,} of {counted:,} modules are the same"
    check = replace(check, modules=changed, others=tuple(others), notes=(same, *builds))

    def draw(console: Page) -> None:
        print_check(check, console, console.limit)
        console.print_rest(changed)

    return check_answer("batch diff", check, draw)


def _by_module(link: "duckdb.DuckDBPyConnection", run: str, table: str) -> ByModule:
    query = (
        f"SELECT t FROM {run}_{table} t WHERE (key, module) IN (SELECT ({run}.key, {run}.module) FROM pairs)"
    )
    return grouped(((row["key"], row["module"]), row) for (row,) in link.execute(query).fetchall())


def _build(row: Json) -> str:
    return " ".join(filter(None, (row["backend"], row["device"], f"XLA {row['release']}")))


def _profile(name: str, row: Json, kernels: ByModule) -> Profile:
    listed = tuple(
        BaselineKernel(k["what"] or k["opcode"], _where(k), k["name"], k["input_name"] or k["name"])
        for k in kernels.get((row["key"], row["module"]), ())
    )
    us, measured_us = (None if t is None else round(t, 2) for t in (row["time_us"], row["measured_us"]))
    memory, has_floors = row["memory_bytes"], bool(row["unknown"] or row["floors"])
    figures = Figures(row["kernels"], row["bytes"], us, measured_us, memory, has_floors=has_floors)
    return Profile(name, row["backend"], None, row["release"], figures, listed)


def _refused_edges(rows: list[Json]) -> list[RefusedEdge]:
    """As a replay has them, greatest value first."""
    return [
        RefusedEdge(
            e["rule"],
            e["title"] or "",
            "",
            Place(e["producer_kernel"], final=e["producer"]),
            Place(e["consumer_kernel"], final=e["consumer"]) if e["consumer_kernel"] else None,
            frozenset(filter(None, (e["producer_kernel"], e["consumer_kernel"]))),
            _where(e),
            e["bytes_between"],
            e["us_at_stake"],
            e["reason"] or "",
        )
        for e in rows
    ]


def _where(row: Json) -> Where:
    return Where(row["file"] or "", row["line"] or 0, row["function"] or "")
