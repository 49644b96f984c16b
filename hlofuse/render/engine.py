"""Graphviz in a separate process: the `dot` program, or the one inside pygraphviz's wheels."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys

from hlofuse.ir import HlofuseError

TIMEOUT = 60.0
"""Seconds for one layout. The limits on boxes make a few seconds usual."""

# Graphviz 2.43 dies in the routing of curved edges around some clusters; straight ones it draws.
_STRAIGHT = "-Gsplines=line"
_WINDOWS_CRASH = 0xC0000000

_MISSING = (
    "drawing needs Graphviz, and there are no wheels of pygraphviz for this machine: install Graphviz, so "
    "that its program dot is on PATH; -o FILE.dot and plots as SVG work without"
)


def engine() -> list[str]:
    """The command that reads DOT and takes `-Tformat`; raises `HlofuseError` without Graphviz."""
    dot = shutil.which("dot")
    if dot is not None:
        return [dot]
    if importlib.util.find_spec("pygraphviz") is not None:
        return [sys.executable, "-m", "hlofuse.render.worker"]
    raise HlofuseError(_MISSING)


def require_engine(form: str) -> None:
    """Raise `HlofuseError` where `form` cannot be drawn, before the replay for the picture."""
    if form != "dot":
        engine()


def run(dot: str, fmt: str, *arguments: str, timeout: float = TIMEOUT) -> bytes:
    """Lay out `dot` and draw it as `fmt` (a Graphviz format: svg, png, pdf).

    Where Graphviz crashes, the picture is drawn again with straight edges. Raises `HlofuseError` when
    Graphviz fails or exceeds `timeout` seconds.
    """
    status, output, text = _run_once(dot, [f"-T{fmt}", *arguments], timeout)
    if _crashed(status):
        status, output, text = _run_once(dot, [f"-T{fmt}", *arguments, _STRAIGHT], timeout)
    if _crashed(status):
        raise HlofuseError(
            "Graphviz crashed on this picture: draw another part (--focus NAME), less (--max-nodes N), "
            "or DOT (-o FILE.dot)"
        )
    if status or not output:
        why = next(
            (line for line in text if line.lower().startswith("error")),
            text[-1] if text else "it says nothing",
        )
        raise HlofuseError(f"Graphviz failed: {why[:300]}")
    return output


def _crashed(status: int) -> bool:
    """True if the program crashed (a signal, or Windows' code for one) instead of exiting."""
    return status < 0 or status >= _WINDOWS_CRASH


def _run_once(dot: str, arguments: list[str], timeout: float) -> tuple[int, bytes, list[str]]:
    with subprocess.Popen(
        [*engine(), *arguments],
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
    return process.returncode, output, complaints.decode(errors="replace").strip().splitlines()


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):  # no process groups here, or it has ended
        process.kill()
