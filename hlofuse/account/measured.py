"""Measured time of a module's instructions: a profile joined by XLA's final names."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from hlofuse.compilation import Compilation
from hlofuse.inputs.profile import MeasuredTime, Profile, ProfiledModule
from hlofuse.inputs.wire_format import Signature, signatures
from hlofuse.ir import Instruction, Module, Record, Strings, grouped, replace
from hlofuse.matching.key import signature

_FINDING = "measured"
NO_MEASURED_TIME = "no kernel of the module has a measured time; give a profile of this program"


class Measured(Record):
    profile: Profile
    source: ProfiledModule
    times: Mapping[str, MeasuredTime]
    found_us: float  # Microseconds of kernels matched to an instruction
    found_calls: int
    calls: int  # Launches of all kernels with an instruction name
    unmatched: tuple[MeasuredTime, ...]
    """Times without an instruction, longest first; loops have the time of their contents."""
    refused: Strings  # Names of different operations in the profile and the module: these are not joined
    runs: int  # Runs of the program, on all devices together

    @property
    def share(self) -> float:
        """The matched part of the module's measured time."""
        total = self.source.total_us
        return self.found_us / total if total else 1.0


def attach(module: Module, profile: Profile) -> None:
    """Join a final module with its times in the profile; raises `HlofuseError` where there are none. Of
    several programs of that name, the one with most time in common is used."""
    # A profile without XLA's ranges has names of kernels alone.
    same = [m for m in profile.modules if m.name in (module.name, "")] or [profile.pick(module.name)]
    joins = [_join(module, profile, source) for source in same]
    module.findings[_FINDING] = max(joins, key=lambda j: j.found_us)


def share(module: Module, replay: Compilation, names: Mapping[str, str] | None = None) -> None:
    """Copy a module's measured times to a replay's final module; `names` maps the names where they differ."""
    found, final = measured_of(module), replay.replayed_final
    final.findings[_FINDING] = found if found is None or names is None else _rename(found, final, names)


def _rename(m: Measured, module: Module, names: Mapping[str, str]) -> Measured:
    """Times by the module's own names; those without a name become unmatched."""
    times = {names[n]: replace(t, name=names[n]) for n, t in m.times.items() if n in names}
    lost = [t for n, t in m.times.items() if n not in names]
    found = m.found_us - sum(t.total_us for t in lost if t.name not in m.source.containers)
    return replace(
        m,
        times=times,
        found_us=found,
        found_calls=m.found_calls - sum(t.calls for t in lost),
        unmatched=_longest(m.source, [*m.unmatched, *lost]),
        runs=_runs(module, times),
    )


def measured_of(module: Module) -> Measured | None:
    """The measured times of a module from a profile, or joined by `attach`."""
    found = module.findings.get(_FINDING)
    if found is None and (origin := module.findings.get("profile")) is not None:
        found = module.findings[_FINDING] = _join(module, *origin, is_own=True)
    return found if isinstance(found, Measured) else None


def _join(module: Module, profile: Profile, source: ProfiledModule, *, is_own: bool = False) -> Measured:
    by_name = {i.name: i for i in module.instructions()}
    # A kernel's name has underscores where the instruction's has dots.
    by_kernel = grouped((name.replace(".", "_").replace("-", "_"), name) for name in by_name)
    expected = dict[str, Signature]()
    if source.proto is not None and not is_own:
        with suppress(ValueError, IndexError):
            expected = signatures(source.proto())
    times = dict[str, MeasuredTime]()
    refused, unmatched = [], []
    found_us, found_calls = 0.0, 0
    for name, time in source.times.items():
        like = by_kernel.get(name.replace(".", "_").replace("-", "_"), [])
        own = name if name in by_name else like[0] if len(like) == 1 else None
        if own is None:
            unmatched.append(time)
            continue
        if name in expected and expected[name] != signature(by_name[own]):
            refused.append(name)
            continue
        times[own] = replace(time, name=own)
        found_calls += time.calls
        found_us += 0.0 if name in source.containers else time.total_us
    _join_ends(by_name, times)
    calls = sum(t.calls for t in source.times.values())
    left = _longest(source, unmatched)
    runs = _runs(module, times)
    return Measured(profile, source, times, found_us, found_calls, calls, left, tuple(refused), runs)


def _longest(source: ProfiledModule, times: Iterable[MeasuredTime]) -> tuple[MeasuredTime, ...]:
    return tuple(sorted((t for t in times if t.name not in source.containers), key=lambda t: -t.total_us))


def _join_ends(by_name: Mapping[str, Instruction], times: dict[str, MeasuredTime]) -> None:
    for name in [n for n in times if by_name[n].opcode.endswith("-done")]:
        begin = next((x.name for x in by_name[name].operands if x.opcode.endswith("-start")), None)
        if begin is None:
            continue
        wait, own = times.pop(name), times.get(begin)
        times[begin] = wait.plus(own) if own is not None else replace(wait, name=begin)


def _runs(module: Module, times: Mapping[str, MeasuredTime]) -> int:
    """Runs of the program: the entry computation launches each kernel once in every run."""
    calls = sorted(times[i.name].calls for i in module.entry if i.name in times)
    return calls[(len(calls) - 1) // 2] if calls else 1
