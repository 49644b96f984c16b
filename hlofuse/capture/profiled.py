"""Run a script under JAX's profiler: `profiled.py FOLDER SCRIPT [ARGUMENT…]`. Needs jax and nothing else."""

import runpy
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax


class _Profiler:
    """Profiles the script into a folder: its own traces, or without any all from its first compilation on.
    JAX has one trace at a time. One that the script begins ends this one, and its files are copied."""

    def __init__(self, folder: str) -> None:
        self._folder, self._log = Path(folder), Path()
        self._has_begun = self._is_running = False
        self._begin_trace, self._end_trace = jax.profiler.start_trace, jax.profiler.stop_trace
        # `jax.profiler.trace` looks both up in the module that defines them.
        for module in (sys.modules[self._begin_trace.__module__], jax.profiler):
            vars(module).update(start_trace=self._begin_script_trace, stop_trace=self._end_script_trace)
        jax.monitoring.register_event_duration_secs_listener(self._begin)

    def _begin(self, event: str, _seconds: float, **_more: object) -> None:
        # Earlier it would choose the devices before the script can.
        if "backend_compile" in event and not self._has_begun:
            self._has_begun = self._is_running = True
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            self._begin_trace(str(self._folder), profiler_options=options)

    def end(self) -> None:
        """Write the profile, if it is not one of the script's."""
        if self._is_running:
            self._is_running = False
            jax.block_until_ready(jax.live_arrays())
            self._end_trace()

    def _begin_script_trace(self, log_dir: Any, *arguments: Any, **options: Any) -> None:
        self.end()
        self._begin_trace(log_dir, *arguments, **options)
        self._has_begun, self._log = True, Path(log_dir)

    def _end_script_trace(self) -> None:
        self.end()
        self._end_trace()
        runs = Path("plugins", "profile")
        with suppress(OSError, ValueError):  # a log that is no local folder stays where it is
            latest = max((self._log / runs).iterdir(), key=lambda run: run.stat().st_mtime)
            shutil.rmtree(self._folder, ignore_errors=True)
            shutil.copytree(latest, self._folder / runs / latest.name)


def main(folder: str, script: str, *arguments: str) -> None:
    """Run the script as Python would, and write its profile into `folder`."""
    results = []  # arrays of the script, which may not have been computed yet
    profiler = _Profiler(folder)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        results.append(runpy.run_path(script, run_name="__main__"))
    finally:
        profiler.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
