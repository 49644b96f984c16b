"""Files next to a module: XLA's dumps, or those of a corpus next to `before.hlo`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.cost.tpu import tpu_devices, tpu_of
from hlofuse.format import printable
from hlofuse.ir import AnyPath, HlofuseError, Json, Module, Record, Strings, replace
from hlofuse.pipelines.flags import from_debug_options, merged, split_flags, that_change_fusion
from . import dump_directory as dumps
from .profile import device_of, is_profile, read_profile
from .text import read_text

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription


STAMP = "hlofuse.json"
MANIFEST = "manifest.json"


class Stamp(Record):
    """Versions, device and flags with which a module was compiled."""

    jaxlib: str  # The version of jaxlib; empty where the file lacks it, as for the other fields
    backend: str
    device: str
    flags: str
    file: str
    error: str = ""  # The compiler's error, after which the module was captured; empty without one


class Companions:
    """Files of the same program next to a module: XLA's dumps, those of a corpus, a capture's stamp. `path`
    is the module's own file or a directory with it, where `module` is its name; a text, a pipe and None have
    no companions. Every property is looked up when it is asked for, and once."""

    def __init__(self, path: AnyPath | None, module: str | None = None, given: Path | None = None) -> None:
        named = str(path) if path is not None else ""
        self.path = Path(named) if named and not named.startswith(("<", "-")) else None
        self.module = module
        self.given = given or self.path  # The path that the user gave: the file, or the directory of it

    @cached_property
    def is_directory(self) -> bool:
        try:
            return self.path is not None and self.path.is_dir()
        except (OSError, ValueError):
            return False

    @cached_property
    def file(self) -> dumps.DumpFile | None:
        """The parts of the name of a dump; None for another file."""
        return dumps.read_name(self.path) if self.path is not None else None

    @cached_property
    def folder(self) -> Path:
        path = self.path or Path()
        return path if self.is_directory else path.parent

    @cached_property
    def is_profile(self) -> bool:
        return self.path is not None and is_profile(str(self.path))

    @cached_property
    def dump(self) -> dumps.DumpedModule | None:
        """All dumps of the module; None where its file is no dump."""
        return dumps.dumped_module(self.path) if self.path is not None and self.file is not None else None

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the module's files, without folders."""
        try:
            return self._names()
        except (OSError, ValueError, HlofuseError):
            return []  # reading the input will say what is wrong with it

    def _names(self) -> Sequence[str]:
        if self.path is None:
            return []
        folder = self.folder
        is_case = dumps.is_corpus_case(folder)
        chosen = None if self.is_directory else self.dump
        if self.is_directory and not is_case:
            if cases := dumps.corpus_cases(folder):
                return [n for c in cases if self.module in (None, c.name) for n in os.listdir(c)]
            directory = dumps.DumpDirectory(folder)
            chosen = directory.pick(self.module) if self.module is not None else directory.main()
            folder = directory.path
        if chosen is not None:
            labels = tuple(f"{label}." for label in chosen.labels)
            return [n for n in os.listdir(folder) if n.startswith(labels)]
        if self.is_directory or (is_case and self.path.name.endswith((".hlo", ".hlo.gz"))):
            return os.listdir(folder)
        return [self.path.name]

    @cached_property
    def stamp(self) -> Stamp | None:
        """The stamp in the module's folder, else that of its corpus, or the facts of its profile."""
        if self.path is None:
            return None
        if self.is_profile:
            profile = read_profile(str(self.path))
            busiest = max(profile.devices, key=lambda d: d.busy_us)
            return Stamp(profile.jaxlib, busiest.kind, device_of(profile), "", "the profile")
        folders = [self.folder]
        if any(dumps.corpus_file(self.folder, name) for name in ("before", "before_optimizations")):
            folders.append(self.folder.resolve().parent)
        files = (folder / name for folder in folders for name in (STAMP, MANIFEST))
        return next((stamp for file in files if (stamp := _read_stamp(file)) is not None), None)

    @cached_property
    def recorded_device(self) -> RecordedDevice | None:
        """The device of the target configuration next to a module, else of XLA's fusion log or the stamp."""
        config = self._next_to("gpu_target_config.pbtxt")
        if config is not None:
            return RecordedDevice(device_in_dump(config))
        record = self._record(any_of_case=True)
        device = device_in_record(record) if record is not None else None
        if device is not None:
            return RecordedDevice(device, f"device {device.name}: from XLA's fusion log next to the module")
        return _stamped_device(self.stamp) if self.stamp is not None else None

    @property
    def tpu(self) -> tuple[str, str]:
        """The TPU that the module is for and the file that shows it; both empty where none does."""
        if self.stamp is not None and self.stamp.device in tpu_devices():
            return self.stamp.device, self.stamp.file
        arguments = self._next_to("target_arguments.txt")
        name = tpu_of(read_text(arguments, as_module=False)) if arguments is not None else ""
        return (name, arguments.name) if arguments is not None and name else ("", "")

    @property
    def flags(self) -> Strings:
        """XLA flags that change fusion, from a capture's stamp and the `debug_options` next to a module."""
        return that_change_fusion(self.all_flags or ())

    @cached_property
    def all_flags(self) -> Strings | None:
        """Every XLA flag of the stamp and of `debug_options`; None where neither is there."""
        path = self._next_to("debug_options")
        is_filled = path is not None and path.stat().st_size  # empty where all flags have their defaults
        found = from_debug_options(read_text(path, as_module=False)) if path is not None and is_filled else ()
        if self.stamp is None:
            return None if path is None else found
        try:
            return merged(split_flags(self.stamp.flags), found)
        except HlofuseError:  # edited by hand
            return found

    @property
    def record(self) -> Path | None:
        """`….priority_fusion_dump.txt`: XLA's fusion log."""
        return self._record()

    def _record(self, *, any_of_case: bool = False) -> Path | None:
        own = "priority_fusion.txtpb"
        return self._next_to("priority_fusion_dump.txt", own, f"{own}.gz", any_of_case=any_of_case)

    @property
    def before_optimizations(self) -> Path | None:
        """The module before optimizations, next to a later dump of it."""
        if self.dump is not None:
            return self.dump.whole.get("before_optimizations")
        return self._next_to("before_optimizations.txt", "before_optimizations.hlo")

    def fusion_result(self, target: str) -> tuple[Path, bool] | None:
        """XLA's own result next to a module before or at the input of fusion; None without one. The second
        value is True for the module after all passes, where that after fusion was not dumped."""
        if self.path is None:
            return None
        if self.path.name.startswith(("before.hlo", "before_optimizations.hlo")):
            after = dumps.corpus_file(self.folder, "after")
            return (after, False) if after is not None else None
        if self.dump is None:
            return None
        try:
            passes = self.dump.stages(target)[1]
        except HlofuseError:
            passes = []
        if passes:
            return passes[-1][1], False
        return (self.dump.finished, True) if self.dump.finished is not None else None

    def final_module(self, target: str) -> Path | None:
        """XLA's final module for this target's backend, of the same program; None without one."""
        if self.path is None:
            return None
        if self.path.name.startswith(("before.hlo", "before_optimizations.hlo", "after.hlo")):
            return dumps.corpus_file(self.folder, "after_optimizations")
        finished = self.dump.finished if self.dump is not None else None
        of_gpu = finished is not None and "gpu_after_optimizations" in finished.name
        return finished if of_gpu == target.startswith("gpu") else None

    @property
    def temporary_bytes(self) -> int | None:
        """Bytes of temporaries by XLA's buffer assignment, where its dump is next to the final module."""
        text = self._about_memory("buffer-assignment")
        return sum(map(int, _TEMPORARY.findall(text))) if text else None

    @property
    def memory_bytes(self) -> int | None:
        """Bytes of all allocations by XLA's memory usage report, if there and of one memory space."""
        found = _TOTAL.findall(self._about_memory("memory-usage-report"))
        return int(found[0]) if len(found) == 1 else None

    def _about_memory(self, ending: str) -> str:
        finished = self.dump.finished if self.dump is not None else None
        if finished is None:
            return ""
        path = finished.with_name(f"{finished.name.removesuffix('.txt')}-{ending}.txt")
        return read_text(path, as_module=False) if path.is_file() else ""

    def is_result_of(self, backend: str, device: str | None) -> bool:
        """False if XLA's result next to a module is for another backend, or device where one is given."""
        if self.stamp is not None and self.stamp.backend not in ("", backend):
            return False
        recorded = self.recorded_device if device is not None else None
        return recorded is None or recorded.device.name == device

    def is_written_by(self, release: str | None) -> bool:
        """False if XLA's results next to a module need not be of the release, where one is given."""
        return release is None or (self.stamp is not None and self.stamp.jaxlib == release)

    def _next_to(self, ending: str, *corpus_names: str, any_of_case: bool = False) -> Path | None:
        """The file with that ending of a dump, or the first of these names in the folder of a corpus program.
        Next to `before.hlo` only, unless they are about `any_of_case`: all modules of the program. So is one
        whose name is its ending, for which no others are given."""
        if self.path is None:
            return None
        any_of_case = any_of_case or not corpus_names
        names: Sequence[str] = ()
        if self.file is not None:
            names = [n for n in self.names if n.endswith(f".{ending}")]
        elif self.path.name in ("before.hlo", "before.hlo.gz") or (any_of_case and not self.is_profile):
            names = corpus_names or (ending,)
        return next((p for n in names if (p := self.path.with_name(n)).is_file()), None)


def companions_of(module: Module) -> Companions:
    """The companions of a module that was read, kept with it."""
    found: Companions | None = module.findings.get("companions")
    if found is None or str(found.path) != str(module.filename):
        found = module.findings["companions"] = Companions(module.filename)
    return found


def _read_stamp(file: Path) -> Stamp | None:
    """None for a missing file, or one in another format."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not _is_own(data):
        return None
    versions = data.get("versions")
    found = {**data, **versions} if isinstance(versions, dict) else data
    return Stamp(
        _first_text(found, "jaxlib", "jax"),
        _first_text(found, "backend", "target"),
        _first_text(found, "device", "spec"),
        _first_text(data, "flags"),
        file.name,
        _first_text(data, "error"),
    )


def _is_own(data: Json) -> bool:
    is_named = _first_text(data, "schema").startswith(("hlofuse.stamp/", "hlofuse.capture/"))
    return is_named or {"jax", "target", "modules"} <= set(data)


def _first_text(data: Json, *keys: str) -> str:
    return next((v for k in keys if isinstance(v := data.get(k), str)), "")


def device_in_dump(config: Path) -> DeviceDescription:
    """The device of a target configuration, with a name short enough for a headline."""
    from hlofuse.cost.gpu.device import load_device

    device = load_device(str(config))
    own = f"{device.name} of the dump" if device.name != config.stem else "the dump's device"
    return _builtin_device(device) or replace(device, name=own)


def device_in_record(record: Path) -> DeviceDescription | None:
    """The device that XLA's fusion log was written for; None where no known device has its numbers."""
    from hlofuse.cost.gpu.device import device_from_text_proto

    try:
        text = "\n" + read_text(record, as_module=False)
        return _builtin_device(device_from_text_proto(text[text.rindex("\ngpu_device_info {") :]))
    except (HlofuseError, ValueError):
        return None  # a record that is torn, or of a release that wrote no device: the user is asked


def _shipped_devices() -> list[DeviceDescription]:
    from hlofuse.cost.gpu.device import device_names, load_device

    return [replace(load_device(name), name=name) for name in device_names()]


def _builtin_device(device: DeviceDescription) -> DeviceDescription | None:
    same = (d for d in _shipped_devices() if replace(device, name=d.name, origin=d.origin) == d)
    return next(same, None)


_TEMPORARY = re.compile(r"^allocation \d+: size (\d+),.*\bpreallocated-temp\b", re.MULTILINE)
_TOTAL = re.compile(r"^Total bytes(?: used)?: (\d+)", re.MULTILINE)
_SM = re.compile(r"(?<![a-z0-9])sm_?(\d+)\.?(\d)a?(?![0-9])", re.IGNORECASE)
_GFX = re.compile(r"(?<![a-z0-9])gfx[0-9a-f]{3,4}(?![0-9a-z])", re.IGNORECASE)


def device_of_names(names: Iterable[str]) -> RecordedDevice | None:
    """The device of the architecture in file names such as `sm_9.0_gpu_after_optimizations`. The first of
    several devices with that architecture, as the note states. `HlofuseError` without one."""
    for name in names:
        sm = _SM.search(name)
        gfx = _GFX.search(name)
        if sm is None and gfx is None:
            continue
        if sm is not None:
            architecture = f"sm_{sm[1]}.{sm[2]}"
            fitting = [d for d in _shipped_devices() if d.compute_capability == (int(sm[1]), int(sm[2]))]
        else:
            assert gfx is not None
            architecture = gfx[0].lower()
            fitting = [d for d in _shipped_devices() if d.gfx_version == architecture]
        if not fitting:
            raise HlofuseError(
                f"the name {printable(name)} means {architecture}, and hlofuse has no such device; give"
                " --device FILE with its numbers (hlofuse devices)"
            )
        best = next((d for d in fitting if "sxm" in d.name), fitting[0])
        others = [d.name for d in fitting if d is not best]
        alone = f"; also matches {', '.join(others)}" if others else ""
        return RecordedDevice(best, f"device {best.name}: file names show {architecture}{alone}")
    return None


class RecordedDevice(Record):
    device: DeviceDescription
    note: str = ""  # The device and its source, where the file has another purpose; otherwise empty


def _stamped_device(stamp: Stamp) -> RecordedDevice | None:
    from hlofuse.cost.gpu.device import device_names, load_device

    if stamp.device not in device_names():
        return None
    device = replace(load_device(stamp.device), name=stamp.device)
    return RecordedDevice(device, f"device {device.name}: from {stamp.file}")


def compiled_with(module: Module, given: Strings) -> Strings:
    """XLA flags that change fusion: those of the dump, and the given ones in their place."""
    return merged(companions_of(module).flags, that_change_fusion(given))
