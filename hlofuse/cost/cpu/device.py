"""CPUs by what was measured on them: rates of the amounts in `work.py`, and errors by kind of kernel. A file
in `devices/`, or one that `hlofuse calibrate` writes, is about one machine and number of threads."""

import json
import math
import os
import platform
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from hlofuse.ir import HlofuseError, Record, replace, values
from .work import Caches, Work

_PACKAGED = Path(__file__).parent / "devices"
CHOICE = "HLOFUSE_CPU"  # The environment variable that names the CPU: a device of hlofuse, or a file
DEFAULT = "xeon_2_threads"  # The CPU where this machine is unknown, and that of baselines that name none
_ASSUMED = ContextVar("cpu", default="")
_WIDE = values("f64 s64 c64")


class CpuDevice(Record, omit_defaults=True):
    """One machine and a number of threads."""

    name: str
    processor: str
    threads: int
    jaxlib: str  # The release that was measured
    caches: Caches
    rates: Mapping[str, float]  # Nanoseconds of one of each amount
    errors: Mapping[str, float]
    """By kind of kernel, and `total`: 8 of 10 estimates are within this factor of the measured time."""
    similar_to: str = ""  # `this machine`, and its threads if others, where chosen as the most similar one

    def us(self, work: Work, least: bool = False) -> float | None:
        """Microseconds of some work; None where one of its amounts has no rate. `least`: without those."""
        ns = 0.0
        for name, amount in work.items():
            if amount:
                # Its own rate, else that of the most similar amount that was measured.
                measured = (self.rates[n] * factor for n, factor in _similar(name) if n in self.rates)
                rate = next(measured, None)
                if rate is None and not least:
                    return None
                ns += (rate or 0.0) * amount
        return ns / 1e3

    def error(self, kind: str) -> float:
        """The factor within which 8 of 10 estimates of a kind of kernel are."""
        return self.errors.get(kind, self.errors.get("total", 3.0))


@cache
def _similar(name: str) -> list[tuple[str, float]]:
    """The name and those of similar amounts, by `similar.toml`, each with the factor between the two."""
    found = {name: 1.0}
    names = [name]
    for n in names:  # grows while it is walked
        for pattern, others in _rules().items():
            if (match := re.fullmatch(pattern, n)) is None:
                continue
            for other, factor in others:
                similar = match.expand(other)
                if similar not in found:
                    is_wide = not _WIDE.isdisjoint(n.split())
                    is_narrower = is_wide and _WIDE.isdisjoint(similar.split())
                    found[similar] = found[n] * factor * (2.0 if is_narrower else 1.0)
                    names.append(similar)
            break
    return list(found.items())


@cache
def _rules() -> dict[str, list[tuple[str, float]]]:
    text = Path(__file__).with_name("similar.toml").read_text("utf-8")
    return {k: list(v.items()) for k, v in tomllib.loads(text).items()}


def chosen_cpu() -> CpuDevice:
    """The CPU that `HLOFUSE_CPU` names, else that of `assumed_cpu`, else the most similar one shipped."""
    name = os.environ.get(CHOICE) or _ASSUMED.get()
    return load_cpu(name) if name else similar_cpu(*this_machine())


@contextmanager
def assumed_cpu(name: str) -> Iterator[None]:
    """Within it, this shipped CPU replaces the one that is similar to this machine; none for another name."""
    token = _ASSUMED.set(name if name in cpu_names() else "")
    try:
        yield
    finally:
        _ASSUMED.reset(token)


@cache
def similar_cpu(machine: str, threads: int) -> CpuDevice:
    """The shipped CPU of a vendor with most words of a description, then threads; the default for none."""
    parts = set(re.findall(r"\w+", machine))
    found = []
    for name in cpu_names():
        head = tomllib.loads((_PACKAGED / f"{name}.toml").read_text("utf-8").partition("[")[0])
        named = re.findall(r"\w+", head["processor"])
        if named[0] in machine:
            found.append((-len(parts & {*named}), abs(math.log(threads / head["threads"])), name))
    if not found:
        return load_cpu(DEFAULT)
    device = load_cpu(min(found)[-1])
    others = f" of {threads} threads" if threads != device.threads else ""
    return replace(device, similar_to=f"this machine{others}")


@cache
def this_machine() -> tuple[str, int]:
    """Its processor, and the threads that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return processor(), len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def processor() -> str:
    """The first `model name` in Linux's list; Python's name for it elsewhere."""
    with suppress(OSError), open("/proc/cpuinfo", "rb", 0) as file:
        listed = file.read(1024).decode("utf-8", "replace")
        if named := re.search(r"^model name\s*: (.*)", listed, re.MULTILINE):
            return named[1]
    return platform.processor() or platform.machine()


@cache
def load_cpu(name: str) -> CpuDevice:
    """A CPU by its name or file; HlofuseError where there is none, or its file is another kind of file."""
    packaged = _PACKAGED / f"{name}.toml"
    file = packaged if packaged.is_file() else Path(name)
    try:
        read = tomllib.loads(file.read_text("utf-8"))
        caches = Caches(**read["caches"])
        rates = {k: float(v) for k, v in read["rates"].items()}
        errors = {k: float(v) for k, v in read["errors"].items()}
        stem = file.name.removesuffix(".toml")
        return CpuDevice(stem, read["processor"], int(read["threads"]), read["jaxlib"], caches, rates, errors)
    except OSError as error:
        names = ", ".join(cpu_names())
        why = error.strerror or error
        raise HlofuseError(
            f"no CPU {name} ({why}); give a file of hlofuse calibrate, or one of {names}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HlofuseError(f"{file}: not a file of hlofuse calibrate ({error})") from None


def cpu_names() -> list[str]:
    return sorted(p.stem for p in _PACKAGED.glob("*.toml"))


def cpu_text(device: CpuDevice) -> str:
    lines = [f"processor = {json.dumps(device.processor)}", f"threads = {device.threads}"]
    lines += [f"jaxlib = {json.dumps(device.jaxlib)}", "", "[caches]  # bytes"]
    caches = device.caches
    lines += [f"l1 = {caches.l1}", f"l2 = {caches.l2}", f"l3 = {caches.l3}"]
    lines += ["", "[errors]  # 8 of 10 estimates are within this factor of the measured time"]
    lines += [f"{json.dumps(k)} = {v:.2f}" for k, v in sorted(device.errors.items())]
    lines += ["", "[rates]  # nanoseconds of one"]
    lines += [f"{json.dumps(k)} = {v:.4g}" for k, v in sorted(device.rates.items())]
    return "\n".join(lines) + "\n"
