"""Measured times of a program and of its changes, by XLA:CPU on this machine with random inputs."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache

from hlofuse.inputs.profile import MeasuredTime, Profile, ProfiledModule
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.judge.judge import Judge, Refused, Timed

_SECONDS = 1.0
"""Time for the runs of a program; of a longer program there are five."""
_ROUNDS = 4


def measured_profile(module: Module, flags: Sequence[str] = ()) -> Profile:
    """The times of a module before optimizations, compiled with flags; raises `Refused`.

    A program that was measured before is not run again.
    """
    return _measured(print_module(module), tuple(flags))


@cache
def _measured(text: str, flags: tuple[str, ...]) -> Profile:
    module = parse_module(text)
    with Judge() as judge:
        judge.compile(module, flags)
        timed = judge.time(["a"], _SECONDS)["a"]
    times = {
        name: MeasuredTime(name, calls, us, us / calls, us / calls, us / calls)
        for name, (calls, us) in timed.kernels.items()
    }
    runs = len(timed.runs)
    source = ProfiledModule(module.name, None, times)
    return Profile("this machine", (source,), (), run_us=timed.us, run_count=runs, noise=timed.noise)


def measured_flags(module: Module, own: Sequence[str], flags: Sequence[str]) -> Mapping[str, Timed]:
    """Times of a module before optimizations with its own flags, under "", and with each of `flags` as well.

    Each has a process, and they run alternately. A flag with which XLA does not compile it is missing.
    """
    with ExitStack() as stack:
        judges = {}
        for flag in ("", *flags):
            judge = stack.enter_context(Judge(xla_flags=[*own, *flag.split()]))
            with suppress(Refused):
                judge.compile(module)
                judges[flag] = judge
        runs: dict[str, list[float]] = {flag: [] for flag in judges}
        for _ in range(_ROUNDS):
            for flag, judge in judges.items():
                runs[flag] += judge.time(["a"], _SECONDS / _ROUNDS, profile=False)["a"].runs
    return {flag: Timed(found, {}) for flag, found in runs.items()}
