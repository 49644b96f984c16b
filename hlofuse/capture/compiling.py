"""Start the process that compiles, and make sense of how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

from hlofuse.capture.model import CaptureError, Destination
from hlofuse.capture.target_config import FLAGS_OF_RELEASES, target_config_of
from hlofuse.format.escape import printable
from hlofuse.inputs.dump_names import FUSION_STAGES

CHILD = Path(__file__).with_name("ahead_of_time")
_DUMP = "--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text --xla_dump_hlo_as_proto"
_EXTRA = {
    "cpu": 'pip install "hlofuse[capture]"',
    "gpu": 'pip install "hlofuse[capture-gpu]"',
    "tpu": 'pip install "hlofuse[capture-tpu]"',
}
_BRINGS = {"cpu": "jax and jaxlib", "gpu": "the CUDA plugin of JAX", "tpu": "libtpu"}


def flags_for(dump: Path, more: str = "") -> str:
    """XLA_FLAGS that write everything wanted into `dump`, after the user's own."""
    if any(c.isspace() for c in str(dump)):
        raise CaptureError(f"XLA_FLAGS cannot hold a folder with spaces: {printable(str(dump))}")
    # XLA takes the last of several: a --xla_dump_to of the user's would leave nothing here.
    parts = [os.environ.get("XLA_FLAGS", ""), more, _DUMP.format(folder=dump)]
    return " ".join(p for p in parts if p)


def flags_of(destination: Destination) -> str:
    """XLA_FLAGS without which there are not as many CPU devices."""
    count = prod(size for _, size in destination.mesh)
    is_host = destination.target == "cpu" and destination.mesh
    return f"--xla_force_host_platform_device_count={count}" if is_host else ""


def environment_for(target: str | None, flags: str) -> dict[str, str]:
    """The environment of a process that compiles for `target` (for what there is, with None)."""
    environment = dict(os.environ, XLA_FLAGS=flags)
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # what comes from a cache leaves no dump
    if target is not None:
        environment["JAX_PLATFORMS"] = "cpu"  # the devices compiled for are not there
        environment["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
        environment["TPU_SKIP_MDS_QUERY"] = "1"
    return environment


def compile_request(
    request: dict[str, Any], destination: Destination, *, python: str | None, flags: str
) -> dict[str, Any]:
    """Have the child compile what `request` names; its answer.

    Where XLA aborts, the program at fault gets an error and another child goes on with the rest. `names` are
    those of all programs, of which `alone` (in the request) picks one by its place.
    CaptureError where nothing can be compiled: jax or a plugin missing (the message names the extra), or the
    program at fault.
    """
    python = python or sys.executable
    found: dict[str, Any] = {"versions": {}, "compiled": [], "errors": {}}
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "answer.json")
        request_ = {**request, "target": destination.target, "topology": destination.topology}
        request_["mesh"] = destination.mesh
        request_["answer"] = str(answer)
        request_["flags_of_releases"] = FLAGS_OF_RELEASES.get(destination.target, [])
        if destination.device is not None:
            config = Path(scratch, "target_config.txtpb")
            config.write_text(target_config_of(destination.device)[1], encoding="utf-8")
            request_["target_config"] = str(config)
        environment = environment_for(destination.target, flags)
        while True:
            request_["done"] = [*found["compiled"], *found["errors"]]
            done = _run_child(request_, Path(scratch), python, environment)
            try:
                output: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise CaptureError(_aborted(done)) from None
            answer.unlink()
            if "problem" in output:
                raise CaptureError(_failure_text(output["problem"], destination, python))
            found["versions"] = output.get("versions", {})
            found["flags_of_release"] = output.get("flags_of_release", "")
            found["unknown_fields"] = output.get("unknown_fields", [])
            found["names"] = output.get("names", [])
            found["compiled"] += output.get("compiled", [])
            found["errors"].update(output.get("errors", {}))
            at = output.get("started")
            if done.returncode == 0 or at is None or at in request_["done"]:
                return found
            if at not in found["compiled"] and at not in found["errors"]:
                found["errors"][at] = _aborted(done)
            if "alone" in request:
                return found


def _run_child(
    request_: dict[str, Any], scratch: Path, python: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    file = scratch / "request.json"
    file.write_text(json.dumps(request_), encoding="utf-8")
    command = [python, str(CHILD), str(file)]
    try:
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise CaptureError(f"cannot run {printable(python)}: {error.strerror or error}") from None


def _failure_text(problem: dict[str, str], destination: Destination, python: str) -> str:
    message = printable(problem["message"])
    if problem["kind"] != "missing":
        return message
    target = "cpu" if message.startswith("jax ") else destination.target
    return (
        f"to capture for {destination.text}, {_BRINGS[target]} must be installed for {printable(python)}:"
        f" {_EXTRA[target]} (or --python names another Python that has it)\nIt said: {message}"
    )


def _aborted(done: subprocess.CompletedProcess[str]) -> str:
    last = [line for line in done.stderr.splitlines() if line.strip()][-3:]
    target_name = "".join(f"; {line.strip()[:300]}" for line in last)
    status = done.returncode
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"the compiling process {how} before it had an answer{target_name}"


# A process for each program, ended as soon as XLA is past its fusion passes.
#
# Generating code takes most of a compilation, and nothing about fusion depends on it.


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
