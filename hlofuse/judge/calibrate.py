"""Measures the rates of a CPU by small programs that the user's JAX compiles and runs."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product
from operator import itemgetter
from pathlib import Path
from string import Template

import numpy as np
from numpy.typing import NDArray

from hlofuse.account import Account
from hlofuse.account.cpu import CpuTimes
from hlofuse.cost.cpu.device import CpuDevice, cpu_names, load_cpu, processor
from hlofuse.cost.cpu.work import Caches, Work, add_work
from hlofuse.ir import Progress, Record, numbered, parse_module, replace
from hlofuse.releases import release_of
from .judge import Judge, Refused, Timed

_SECONDS = 0.03  # time for the runs of each program in a pass, apart from those under the profiler
_PASSES = 2  # the least time of passes that are a minute apart is that of a machine without other work
_AS_A_WHOLE = ("call ", "loop ", "sort ")
"""Programs measured whole: launches, since the profiler slows these, and sorts, of which it sees one task."""
_FOLDS = 4
_CUT = 0.4  # a larger error, as a logarithm, counts no more than in proportion
_STEPS = 3000
_PULL = 0.03  # to where a rate begins, by the gradient of one sample of weight 1


class Sample(Record):
    """A measured time and what it was needed for."""

    kind: str  # The emitter or library of a kernel; `call` and `program` for those
    work: Work
    us: float
    weight: float = 1.0


def calibrate(name: str, python: str | None, report: Progress) -> CpuDevice:
    """The device of this machine, with the threads that this process may use. `report` is called with the
    number of programs that ran, and of all. Raises `HlofuseError` without JAX."""
    texts = probes()
    compiled = {}
    measured: dict[str, Timed] = {}
    with Judge(python) as judge:
        facts = judge.facts()
        model = processor()
        empty = CpuDevice(name, model, facts["threads"], facts["jaxlib"], _caches(), {}, {})
        times = CpuTimes(release_of(empty.jaxlib), empty)
        for done, title in enumerate([*texts] * _PASSES):
            report(done, _PASSES * len(texts))
            with suppress(Refused):  # an operation that this release does not compile
                if done < len(texts):
                    compiled[title] = judge.compile(parse_module(texts[title]), key=title).text
                if title in compiled:
                    as_a_whole = title.startswith(_AS_A_WHOLE)
                    timed = judge.time([title], _SECONDS, profile=not as_a_whole)[title]
                    measured[title] = faster(measured.get(title, timed), timed)
    samples = [s for title, timed in measured.items() for s in samples_of(times, compiled[title], timed)]
    return fitted(empty, samples)


def faster(a: Timed, b: Timed) -> Timed:
    """The runs of the faster of two measurements of a program, and the least time of each of its kernels. A
    profile that misses most of the time, which the other one has, does not count."""
    runs = min(a.runs, b.runs, key=lambda runs: Timed(runs, {}).us)
    half = Timed(runs, {}).us / 2
    found = [a.kernels, b.kernels]
    found = [k for k in found if sum(us for _, us in k.values()) > half] or found
    names = found[0].keys() | found[-1].keys()
    return Timed(runs, {n: min((k[n] for k in found if n in k), key=itemgetter(1)) for n in names})


def samples_of(times: CpuTimes, text: str, timed: Timed) -> Iterable[Sample]:
    """The samples of a program: a kernel each, or the whole without a profile."""
    account = Account(parse_module(text), backend="cpu", times=times)
    rows = [r for r in account.rows if r.runs]
    flops = account.totals.cost.flops
    if not timed.kernels:
        whole = defaultdict(float, account.call_work)
        for row in rows:
            add_work(whole, times.work(row.instruction, account.reuse[row.instruction]) or {}, row.runs)
            add_work(whole, times.launch_work(row.runs, row.together), row.runs)
        yield Sample("program", whole, timed.us, 10.0)
        return
    own = {n: us for n, (_, us) in timed.kernels.items() if n in account.by_name}
    kernels_us = sum(own.values())
    alone = len(own) == 1
    for row in rows:
        measured = own.get(row.instruction.name, 0.0)
        work = times.work(row.instruction, account.reuse[row.instruction])
        # The profiler's own time can be all of a short one; what has no rate is to stay without.
        is_short = measured <= _LEAST_IN_A_LOOP * (row.runs - 1)
        if is_short or work is None or any(name.startswith("other ") for name in work):
            continue
        us = measured / row.runs
        if alone:  # a thread that had to be woken slows a profiled run down more
            us = min(us, max(timed.us - _LEAST_CALL, us / 3))
        yield Sample(times.kind(row.instruction), {**work, "launch": float(row.runs <= 1)}, us)
    call = timed.us - kernels_us
    if call > 3 and kernels_us < 300:
        yield Sample("call", account.call_work | times.handoff_work(flops, kernels_us), call, 0.4)


_LEAST_CALL = 5.0  # microseconds
_LEAST_IN_A_LOOP = 0.2  # microseconds of one launch, of which the profiler's own time is a part


def fitted(device: CpuDevice, samples: Sequence[Sample]) -> CpuDevice:
    """The device with the rates that fit the samples best, and errors from samples that were left out."""
    errors = defaultdict[str, list[float]](list)
    similar = min(map(load_cpu, cpu_names()), key=lambda d: sum(error for _, error in _errors(d, samples)))
    for fold in range(_FOLDS):
        fit = replace(device, rates=_rates([s for k, s in enumerate(samples) if k % _FOLDS != fold], similar))
        for kind, error in _errors(fit, samples[fold::_FOLDS]):
            errors[kind].append(error)
            errors["total"].append(error)
    of_kind = {k: math.exp(float(np.quantile(v, 0.8))) for k, v in errors.items() if len(v) >= 5}
    return replace(device, rates=_rates(samples, similar), errors=of_kind)


def _errors(device: CpuDevice, samples: Sequence[Sample]) -> Iterable[tuple[str, float]]:
    return ((s.kind, abs(math.log(us / s.us))) for s in samples if (us := device.us(s.work)))


def _rates(samples: Sequence[Sample], similar: CpuDevice) -> dict[str, float]:
    """Positive rates of least error in logarithms, beyond `_CUT` in proportion; else near a like device's."""
    names = sorted({n for s in samples for n, amount in s.work.items() if amount})
    place = numbered(names)
    parts: NDArray[np.float64] = np.zeros((len(samples), len(names)))
    for row, s in zip(parts, samples, strict=True):
        for n, amount in s.work.items():
            if amount:
                row[place[n]] = amount / (s.us * 1e3)
    scale = parts.max(axis=0)
    parts /= scale
    weight = np.array([s.weight for s in samples])
    start = [np.median(1 / column[column > 0]) / 3 for column in parts.T]
    rated = scale * [similar.us({n: 1e3}) or 0.0 for n in names]
    begun = np.log(np.where(rated, rated, start))
    logs = begun.copy()
    mean, square = np.zeros_like(logs), np.zeros_like(logs)
    for step in range(1, _STEPS + 1):  # Adam, in logarithms of the rates
        values = np.exp(logs)
        estimate = parts @ values
        pull = weight * np.clip(np.log(estimate), -_CUT, _CUT) / estimate
        gradient = values * (parts.T @ pull) + _PULL * (logs - begun)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        pace = 0.05 if step < 0.7 * _STEPS else 0.01
        logs -= pace * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return {**similar.rates, **{n: float(v) for n, v in zip(names, np.exp(logs) / scale, strict=True)}}


def _caches() -> Caches:
    """The sizes that Linux reports; those of a common machine elsewhere."""
    sizes = {"1": 32 << 10, "2": 1 << 20, "3": _LARGEST}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        with suppress(OSError, ValueError):
            level, kind, size = ((index / n).read_text().strip() for n in ("level", "type", "size"))
            if kind != "Instruction":
                sizes[level] = int(size.removesuffix("K")) << 10
    return Caches(sizes["1"], sizes["2"], min(sizes["3"], _LARGEST))


_LARGEST = 32 << 20
"""From this size on, each new array takes fresh pages from the system (glibc), whatever the cache holds."""
_REPEATED = re.compile(r"^ *for k in (\d+)\.\.(\d+): (.*)$", re.MULTILINE)


def probes() -> dict[str, str]:
    """HLO texts before optimizations by name, from `probes.txt`."""
    found = {}
    _, *blocks = Path(__file__).with_name("probes.txt").read_text("utf-8").split("\n== ")
    for block in blocks:
        head, _, text = block.partition("\n")
        name, *variables = head.split(" | ")
        for choice in product(*map(_choices, variables)):
            values = {key: value for part in choice for key, value in part.items()}
            values = {key: Template(value).safe_substitute(values) for key, value in values.items()}
            filled = Template(text).safe_substitute(values)
            title = Template(name).substitute(values)
            found[title] = f"HloModule calibrate\n{_REPEATED.sub(_repeat, filled)}\n"
    return found


def _choices(variables: str) -> list[dict[str, str]]:
    """`a;b=1;2,3;4` as two choices of both."""
    names, _, values = variables.partition("=")
    keys = names.split(";")
    parts = re.split(r",(?! )", values)
    return [dict(zip(keys, part.split(";"), strict=True)) for part in parts]


def _repeat(line: re.Match[str]) -> str:
    first, last, text = line.groups()
    lines = []
    for k in range(int(first), int(last) + 1):
        lines.append(Template(text).safe_substitute(k=k, j=k - 1).replace("  ", "\n"))
    return "\n".join(lines)
