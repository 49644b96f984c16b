"""Fusion against a budget or a stored baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.ir.errors import HlofuseError
from hlofuse.library.answer import Answer
from hlofuse.library.measuring import has_several, measure_all

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.library.options import ReplayOptions
    from hlofuse.reports.check import Check


@dataclass(frozen=True, slots=True)
class Limits:
    """What modules are held against."""

    max_kernels: int | None = None
    max_bytes: str | None = None
    """`1.5MB`."""
    max_time: str | None = None
    """`120us`."""
    baseline: Path | None = None
    tolerance: float = 0.0
    """Percent by which bytes and time may exceed the baseline."""
    strict: bool = False


def checked(
    requests: Sequence[ReplayOptions], limits: Limits, root: Path, *, update: bool = False
) -> tuple[Answer[Check], dict[Path, str]]:
    """What broke, and the files of the baseline that `update` is to write; none without it.

    HlofuseError for limits that cannot be read, and where there are none.
    """
    from hlofuse.reports.check import Baseline, check_modules, read_baseline
    from hlofuse.reports.check.baseline import updated_files
    from hlofuse.reports.check.json import check_json
    from hlofuse.reports.check.limits import Budget, parse_bytes, parse_time
    from hlofuse.reports.check.markdown import check_markdown
    from hlofuse.reports.check.text import print_check
    from hlofuse.reports.common.head import head_lines

    budget = Budget(
        kernels=limits.max_kernels,
        bytes=parse_bytes(limits.max_bytes) if limits.max_bytes is not None else None,
        us=parse_time(limits.max_time) if limits.max_time is not None else None,
    )
    baseline = limits.baseline
    if update and baseline is None:
        raise HlofuseError("--update needs --baseline FILE, the baseline to write")
    if baseline is None and budget.is_empty:
        raise HlofuseError(
            "nothing to check against; give --baseline, --max-kernels, --max-bytes or --max-time"
        )
    stored = Baseline()
    if baseline is not None and not (update and _nothing_there(baseline)):
        stored = read_baseline(baseline)
    measured = measure_all(requests, root, stored.profiles)
    files: dict[Path, str] = {}
    if update and baseline is not None:
        files = updated_files(baseline, [m.profile for m in measured])
        stored.profiles = {}
    found = check_modules(
        measured,
        budgets=[] if budget.is_empty else [budget],
        baseline=stored,
        baseline_name=str(baseline) if baseline is not None else None,
        all_there=any(has_several(r.input) for r in requests) and requests[0].module is None,
        tolerance=limits.tolerance / 100,
        strict=limits.strict,
    )
    found = replace(found, updated=update)
    heads = [m.head for m in measured if m.head is not None]

    def markdown(check: Check) -> str:
        from hlofuse.format.escape import markdown

        return "".join(f"{markdown(line)}\n\n" for line in head_lines(heads)) + check_markdown(check)

    def draw(console: Console) -> None:
        for line in head_lines(heads):
            console.print(line, style="dim")
        print_check(found, console)

    answer = Answer(
        "check",
        lambda: found,
        json=check_json,
        body=draw,
        rows_of=lambda document: [f for m in document["modules"] for f in m["findings"]] + document["others"],
        entries_of=lambda data: [f for m in data.modules for f in m.findings] + list(data.others),
        markdown=markdown,
        heads=heads,
        prints_heads=True,
    )
    return answer, files


def _nothing_there(baseline: Path) -> bool:
    return not baseline.exists() or (baseline.is_dir() and not any(baseline.glob("*.toml")))
