"""A process for each program, ended as soon as XLA is past its fusion passes.

Generating code takes most of a compilation, and nothing about fusion depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hlofuse.capture.compiling import compile_request, flags_for
from hlofuse.capture.model import CaptureError, Destination
from hlofuse.inputs.dump_names import FUSION_STAGES

_MOST_JOBS = 4
"""Unless said: a compiling process needs a gigabyte or so."""


def only_fusion(target: str) -> str:
    """The flag that has XLA dump, of its passes, those of fusion and the first that follow.

    CaptureError for a target of which these are not known.
    """
    stage = FUSION_STAGES.get(target)
    if stage is None or stage.next_pipeline is None:
        raise CaptureError(
            f"--until-fusion: where {target}'s passes after fusion begin is not known; capture it without"
        )
    # Files' names have `_` for blanks, which flags cannot hold.
    pipelines = "|".join(name.replace("_", ".") for name in (*stage.pipelines, stage.next_pipeline))
    return f"--xla_dump_hlo_pipeline_re=^({pipelines})$"


def compile_until_fusion(
    request: dict[str, Any],
    destination: Destination,
    dump: Path,
    *,
    python: str | None,
    flags: str,
    jobs: int | None = None,
) -> tuple[dict[str, Any], list[Path]]:
    """What compile_request answers, and the folders within `dump` of the programs, in their order.

    flags: with only_fusion's. The first program tells how many there are; the others follow, `jobs` at a
    time. CaptureError as there.
    """
    until = FUSION_STAGES[destination.target].next_pipeline

    def one(number: int) -> tuple[dict[str, Any], Path]:
        folder = dump / f"{number:04d}"
        folder.mkdir()
        request_ = {**request, "alone": number, "until": until, "dump": str(folder)}
        return compile_request(request_, destination, python=python, flags=flags_for(folder, flags)), folder

    found, folder = one(0)
    folders = [folder]
    for answer, folder in _others(one, len(found["names"]), jobs):
        found["compiled"] += answer["compiled"]
        found["errors"].update(answer["errors"])
        folders.append(folder)
    return found, folders


def _others(one: Any, count: int, jobs: int | None) -> Iterator[tuple[dict[str, Any], Path]]:
    if count < 2:
        return
    pool = ThreadPoolExecutor(jobs or min(os.cpu_count() or 1, _MOST_JOBS))
    try:
        yield from pool.map(one, range(1, count))
    finally:
        pool.shutdown(cancel_futures=True)
