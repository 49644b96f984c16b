"""Recognizes profiles and reads each kind."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.format import printable
from hlofuse.inputs.dump_directory import DumpDirectory, corpus_cases, corpus_file, is_corpus_case
from hlofuse.inputs.text import decode, read_bytes
from hlofuse.ir import HlofuseError, replace
from .model import Profile, ProfiledModule

if TYPE_CHECKING:
    from .collector import Collector

_XPLANE, _TRACES, _NSIGHT = ".xplane.pb", (".trace.json.gz", ".trace.json", "trace.json.gz"), ".sqlite"
_REPORTS = (".nsys-rep", ".qdrep", ".ncu-rep")
_RUNS = ("plugins", "profile")
PROFILE = "profile"  # The folder in a capture with its profile


def is_profile(path: str) -> bool:
    """True if a path looks like a profile: by its name, or as a folder without HLO dumps."""
    file = Path(path)
    if file.name.endswith((_XPLANE, *_TRACES, _NSIGHT, *_REPORTS)):
        return True
    has_dumps = file.is_dir() and any(file.glob("*module_[0-9]*"))
    return path != "-" and file.is_dir() and not has_dumps and bool(_latest_files(file))


def companion_profile(path: str) -> Profile | None:
    """The profile in a dump directory or a capture, or in the capture of `path`; None without one."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    roots = [folder.parent] if is_corpus_case(folder) else [folder] if Path(path).is_dir() else []
    for found in (place for root in roots for place in (root / PROFILE, root)):
        if found.is_dir() and _latest_files(found):
            profile = read_profile(str(found))
            # That of a capture is of a whole script: while it compiles nothing runs.
            return replace(profile, devices=()) if (roots[0] / "manifest.json").exists() else profile
    return None


def slowest_module(
    path: str,
    profile: str | None = None,
) -> str | None:
    """The name in a directory of several modules of the one that took most time in its profile, or in
    `profile`; of several with that name the one whose instructions ran. None without a profile."""
    folder = Path(path)
    if path == "-" or not folder.is_dir() or is_corpus_case(folder) or is_profile(path):
        return None
    found = read_profile(profile) if profile is not None else companion_profile(path)
    if found is None or not found.modules:
        return None
    files = dict[str, list[tuple[str, Path | None]]]()
    try:
        for case in corpus_cases(folder):
            file = corpus_file(case, "after_optimizations")
            files.setdefault(re.sub(r"-\d+$", "", case.name), []).append((case.name, file))
        modules = DumpDirectory(folder).modules if not files else []
    except HlofuseError:
        return None
    count = Counter(m.name for m in modules)
    for m in modules:
        files.setdefault(m.name, []).append((m.name if count[m.name] == 1 else m.label, m.finished))
    ran = found.modules[0]
    own = files.get(ran.name) or files.get(ran.name.removeprefix("jit_"))
    if not own:
        return None
    return own[0][0] if len(own) == 1 else max(own, key=lambda f: _covered_us(f[1], ran))[0]


def _covered_us(
    file: Path | None,
    ran: ProfiledModule,
) -> float:
    """The time in a profile of instructions with names in this file."""
    text = decode(read_bytes(file), str(file), as_module=False) if file is not None else ""
    names = {*re.findall(r"(?m)^ *(?:ROOT )?%?([\w.-]+) = ", text)}
    return sum(t.total_us for name, t in ran.times.items() if name in names)


def _latest_files(folder: Path) -> Sequence[Path]:
    """The files of the latest run in a folder: a run, `plugins/profile`, or the log folder above it."""
    for runs in (folder, *(folder.joinpath(*_RUNS[k:]) for k in (0, 1))):
        inside = sorted(runs.glob("*/")) if runs.name == _RUNS[1] else []
        for run in (runs, *reversed(inside)):
            for ending in (_XPLANE, *_TRACES, _NSIGHT):
                if found := sorted(run.glob(f"*{ending}")):
                    return found
    return ()


def device_of(profile: Profile) -> str:
    """The name of the device whose numbers match the profile's; empty without a match."""
    from hlofuse.cost.gpu.device import device_names, load_device

    numbers = profile.numbers
    if numbers is None:
        return ""
    architecture = "gfx{}{}".format(*numbers.compute_capability)
    fitting = {
        name: device.memory_bandwidth
        for name in device_names()
        if (device := load_device(name)).core_count == numbers.core_count
        and (
            device.compute_capability == numbers.compute_capability
            if numbers.vendor == "Nvidia"
            else (device.gfx_version or "").startswith(architecture)
        )
    }
    return min(fitting, key=lambda name: abs(fitting[name] - numbers.memory_bandwidth), default="")


@lru_cache(maxsize=4)
def read_profile(path: str) -> Profile:
    """The profile in a file or folder; raises `HlofuseError` where it cannot be read."""
    from .collector import Collector

    file = Path(path)
    if not file.exists():
        raise HlofuseError(f"{printable(path)} does not exist")
    files = _latest_files(file) if file.is_dir() else (file,)
    if not files:
        raise HlofuseError(f"{printable(path)} holds no profile (*.xplane.pb, *.trace.json.gz or *.sqlite)")
    collector = Collector()
    for one in files:
        collector.host = f"{one.name.removesuffix(_XPLANE)} " if len(files) > 1 else ""
        _read_file(one, collector)
    if not (modules := collector.modules()):
        raise HlofuseError(
            f"{printable(path)} has no event that names an HLO instruction: either nothing that XLA compiled"
            " ran while it was recorded, or the profile is of another framework"
        )
    devices = collector.devices()
    waits = collector.waits()
    of = (collector.numbers, collector.jaxlib, collector.tpu_kind, len(files))
    return Profile(path, modules, devices, *of, *waits)


def _read_file(file: Path, collector: "Collector") -> None:
    import sqlite3  # slow to import
    import zlib

    from .traces import read_nsight, read_trace
    from .xplane import read_xplane

    name = printable(file)
    if file.name.endswith(_REPORTS):
        raise HlofuseError(f"{name} is a report of Nsight: export it with nsys export --type sqlite {name}")
    try:
        if file.stat().st_size == 0:
            raise HlofuseError(f"{name} is empty")
        if file.name.endswith(_XPLANE):
            read_xplane(file, collector)
        elif file.name.endswith(_NSIGHT):
            read_nsight(file, collector)
        else:
            read_trace(file, collector)
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise HlofuseError(f"{name} is no whole profile: {printable(error)}") from None
    except (EOFError, zlib.error) as error:
        raise HlofuseError(f"{name} is no whole gzip file: {printable(error)}") from None
    except sqlite3.Error as error:
        raise HlofuseError(f"{name} is no export of Nsight Systems: {printable(error)}") from None
    except OSError as error:
        raise HlofuseError(f"cannot read {name}: {error.strerror or error}") from None
