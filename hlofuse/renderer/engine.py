"""Graphviz, wherever it is: the `dot` program, or the one inside pygraphviz's wheels.

Either runs as a program of its own, so that a layout that takes too long can be ended.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys

from hlofuse.ir import HlofuseError

TIMEOUT = 60.0
"""Seconds for one layout. The caps on boxes make a few the rule."""

_MISSING = (
    "drawing needs Graphviz: install hlofuse[render] (pip install 'hlofuse[render]'), or Graphviz itself; "
    "DOT output (-o FILE.dot) works without"
)


def engine() -> list[str]:
    """The command that reads DOT and takes `-Tformat`; raises HlofuseError where there is none."""
    dot = shutil.which("dot")
    if dot is not None:
        return [dot]
    if importlib.util.find_spec("pygraphviz") is not None:
        return [sys.executable, "-m", "hlofuse.renderer.worker"]
    raise HlofuseError(_MISSING)


def run(dot: str, fmt: str, *arguments: str, timeout: float = TIMEOUT) -> bytes:
    """Lay out `dot` and draw it as `fmt` (a Graphviz format: svg, png, pdf).

    Raises HlofuseError when Graphviz fails or needs longer than `timeout` seconds.
    """
    with subprocess.Popen(
        [*engine(), f"-T{fmt}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, complaints = process.communicate(dot.encode(), timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise HlofuseError(
                f"Graphviz needed more than {timeout:g} s for this picture: "
                "draw less with --max-nodes or --focus"
            ) from None
        except BaseException:
            _kill(process)
            raise
    if process.returncode or not output:
        said = complaints.decode(errors="replace").strip().splitlines()
        why = next(
            (line for line in said if line.lower().startswith("error")),
            said[-1] if said else "it says nothing",
        )
        raise HlofuseError(f"Graphviz failed: {why[:300]}")
    return output


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):  # no process groups here, or it is gone
        process.kill()
