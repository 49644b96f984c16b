"""CPUs by what was measured on them: rates of the amounts in `work.py`, and errors by kind of kernel. A file
in `devices/`, or one that `hlofuse calibrate` writes, is about one machine and number of threads."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from hlofuse.ir import HlofuseError, Record
from .work import Caches, Work

_PACKAGED = Path(__file__).parent / "devices"
CHOICE = "HLOFUSE_CPU"
"""The environment variable that names the CPU: a device of hlofuse, or a file."""
_DEFAULT = "xeon_2_threads"
_LEVELS = ("l1", "l2", "near l3", "l3", "memory", "fresh")
_WIDE = frozenset({"f64", "s64", "c64"})


class CpuDevice(Record):
    """One machine and a number of threads."""

    name: str
    processor: str
    threads: int
    jaxlib: str
    """The release that was measured."""
    caches: Caches
    rates: Mapping[str, float]
    """Nanoseconds of one of each amount."""
    errors: Mapping[str, float]
    """By kind of kernel, and `total`: 8 of 10 estimates are within this factor of the measured time."""

    def us(self, work: Work, least: bool = False) -> float | None:
        """Microseconds of some work; None where one of its amounts has no rate. `least`: without those."""
        ns = 0.0
        for name, amount in work.items():
            if amount:
                rate = self._rate(name)
                if rate is None and not least:
                    return None
                ns += (rate or 0.0) * amount
        return ns / 1e3

    def error(self, kind: str) -> float:
        """The factor within which 8 of 10 estimates of a kind of kernel are."""
        return self.errors.get(kind, self.errors.get("total", 3.0))

    def _rate(self, name: str) -> float | None:
        """The rate of an amount, else that of the most similar one that was measured."""
        return next((self.rates[n] * factor for n, factor in _alternatives(name) if n in self.rates), None)


def _alternatives(name: str) -> Iterator[tuple[str, float]]:
    """Names of similar amounts, with the factor between the two."""
    yield name, 1.0
    first, _, last = name.rpartition(" ")
    level = next((x for x in ("near l3", *_LEVELS) if name.endswith(" " + x)), "")
    if level:
        place = _LEVELS.index(level)
        stem = name.removesuffix(level)
        if level == "fresh":  # the pages take most of the time, whoever writes them
            yield "bytes fresh", 1.0
        for other in (*reversed(_LEVELS[:place]), *_LEVELS[place + 1 :]):
            yield stem + other, 1.0
        if name.startswith("transposed "):
            yield name.removeprefix("transposed "), 4.0  # as reads across rows
        return
    factor = 2.0 if last in _WIDE else 1.0
    for start in ("concatenate along rows", "pad between"):
        if name.startswith(start):
            yield f"{start.split()[0]} {last}", 4.0
            yield f"{start.split()[0]} f32", 4.0 * factor
    if name.startswith("reduce "):
        for other in ("add", "multiply", "several"):
            yield f"reduce {other} {last}", 1.0
            yield f"reduce {other} f32", factor
    elif name.startswith("scalar "):
        yield from _alternatives(name.removeprefix("scalar "))
    elif name.startswith("ynn ") and not first.startswith(("ynn dot", "ynn convolution")):
        yield f"{first} f32", factor
        yield from _alternatives(name.removeprefix("ynn "))
    elif name.startswith("convert "):
        source, _, result = last.partition(">")
        if source == result:
            yield f"operation {source}", 1.0
        yield "convert s32>f32", factor
    elif name == "absolute c64":
        yield "divide c64", 1.0
    elif name == "ynn batch":
        yield "ynn call", 1.0
    elif name.endswith(" short"):
        yield first, 2.0
        stem, _, kind = first.rpartition(" ")
        yield f"{stem} f32 short", 2.0 if kind in _WIDE else 1.0
    elif not name.startswith("other "):
        yield f"{first} f32", factor
        yield f"{first} s32", factor


def chosen_cpu() -> CpuDevice:
    """The CPU that the environment variable `HLOFUSE_CPU` names, else the default."""
    return load_cpu(os.environ.get(CHOICE) or _DEFAULT)


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
    """The CPUs that come with hlofuse."""
    return sorted(p.stem for p in _PACKAGED.glob("*.toml"))


def cpu_text(device: CpuDevice) -> str:
    """A device as the text of its file."""
    lines = [f"processor = {_quoted(device.processor)}", f"threads = {device.threads}"]
    lines += [f"jaxlib = {_quoted(device.jaxlib)}", "", "[caches]  # bytes"]
    caches = device.caches
    lines += [f"l1 = {caches.l1}", f"l2 = {caches.l2}", f"l3 = {caches.l3}"]
    lines += ["", "[errors]  # 8 of 10 estimates are within this factor of the measured time"]
    lines += [f"{_quoted(k)} = {v:.2f}" for k, v in sorted(device.errors.items())]
    lines += ["", "[rates]  # nanoseconds of one"]
    lines += [f"{_quoted(k)} = {v:.4g}" for k, v in sorted(device.rates.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
