"""Run a script under JAX's profiler: `profiled.py FOLDER SCRIPT [ARGUMENT…]`. Needs jax and nothing else."""

import runpy
import sys
from pathlib import Path

import jax


def main(folder: str, script: str, *arguments: str) -> None:
    """Run the script as Python would, and write a profile from its first compilation on into `folder`."""
    begun: list[str] = []
    results: list[object] = []  # arrays of the script, which may not have been computed yet

    def begin(event: str, _seconds: float, **_more: object) -> None:
        # Earlier it would choose the devices before the script can.
        if "backend_compile" in event and not begun:
            begun.append(event)
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            jax.profiler.start_trace(folder, profiler_options=options)

    jax.monitoring.register_event_duration_secs_listener(begin)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        results.append(runpy.run_path(script, run_name="__main__"))
    finally:
        if begun:
            jax.block_until_ready(jax.live_arrays())
            jax.profiler.stop_trace()


if __name__ == "__main__":
    main(*sys.argv[1:])
