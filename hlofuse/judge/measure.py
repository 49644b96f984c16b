"""Measured times of a program and of its changes, by XLA:CPU on this machine with random inputs."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache

from hlofuse.inputs.profile import MeasuredTime, Profile, ProfiledModule
from hlofuse.ir import Module, Strings, parse_module, print_module
from .judge import Judge, Refused, Timed

_SECONDS = 1.0  # time for the runs of a program; of a longer program there are five
_ROUNDS = 4
_COMPILING = 60.0  # seconds after which no further changed module is compiled


def measured_profile(module: Module, flags: Sequence[str] = (), inputs: str | None = None) -> Profile:
    """The times of a module before optimizations, compiled with flags; raises `Refused`. `inputs` is an npz
    file with the arguments in order. A program that was measured before is not run again."""
    return _measured(print_module(module), tuple(flags), inputs)


@cache
def _measured(text: str, flags: Strings, inputs: str | None) -> Profile:
    module = parse_module(text)
    with Judge() as judge:
        judge.compile(module, flags)
        timed = judge.time(["a"], _SECONDS, inputs=inputs)["a"]
    times = {
        name: MeasuredTime(name, calls, us, us / calls, us / calls, us / calls)
        for name, (calls, us) in timed.kernels.items()
    }
    runs = len(timed.runs)
    source = ProfiledModule(module.name, None, times)
    return Profile(
        "this machine",
        (source,),
        (),
        run_us=timed.us,
        fastest_us=min(timed.runs),
        run_count=runs,
        noise=timed.noise,
        inputs=f"inputs of {inputs}" if inputs is not None else "random inputs",
    )


def measured_changes(
    module: Module,
    own: Sequence[str],
    flags: Sequence[str] = (),
    changed: Iterable[Module] = (),
    inputs: str | None = None,
) -> Mapping[str | int, Timed]:
    """Times of a module before optimizations with its own flags, under "", and of its changes. The module
    with each of `flags` as well has the flag as its key, and each `changed` module its place. Each flag has a
    process, and all run alternately. A change that XLA does not compile is missing."""
    with ExitStack() as stack:
        judges = {}
        keys = {}
        for flag in ("", *flags):
            judge = stack.enter_context(Judge(xla_flags=[*own, *flag.split()]))
            with suppress(Refused):
                judge.compile(module)
                judges[flag] = judge
        end = time.monotonic() + _COMPILING
        for place, other in enumerate(changed if "" in judges else ()):
            if time.monotonic() > end:
                break
            with suppress(Refused):
                judges[""].compile(other, key=f"change {place}")
                keys[f"change {place}"] = place
        runs: dict[str | int, list[float]] = {flag: [] for flag in judges}
        runs |= {place: [] for place in keys.values()}
        for _ in range(_ROUNDS):
            for flag, judge in judges.items():
                together = ["a"] if flag else ["a", *keys]
                seconds = _SECONDS / _ROUNDS * len(together)
                found = judge.time(together, seconds, profile=False, inputs=inputs)
                for key, timed in found.items():
                    runs[keys.get(key, flag)] += timed.runs
    return {key: Timed(found, {}) for key, found in runs.items()}
