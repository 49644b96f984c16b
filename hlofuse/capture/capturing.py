"""Compiles a program and collects XLA's dumps in a folder."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from operator import itemgetter
from pathlib import Path

from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.cost.tpu import tpu_of
from hlofuse.format import fields, printable
from hlofuse.inputs.choose_target import target_of_files
from hlofuse.inputs.companions import MANIFEST, STAMP, Companions
from hlofuse.inputs.part import as_jaxlib_reads
from hlofuse.inputs.profile import is_profile
from hlofuse.inputs.profile.files import PROFILE
from hlofuse.inputs.release import default_python
from hlofuse.inputs.text import decode, input_name, read_bytes
from hlofuse.inputs.wire_format import BYTECODE, MLIR, PROTO, foreign_form, module_proto
from hlofuse.ir import HlofuseError, Json, packaged, replace
from hlofuse.ir.attributes.metadata import quote
from hlofuse.ir.shape import ELEMENT_TYPES
from hlofuse.releases import NAMES
from .arguments import check_axes
from .folder import collect, folder_name
from .model import Capture, CaptureError, Destination


class TooFewDevices(CaptureError):
    """The program failed with the one device that it found; `needed` is the number it needs, or 0."""

    def __init__(self, message: str, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


_COUNTS = (8, 4, 2, 16, 32, 64)
"""Numbers of devices to try for a program that needs several: those of one host first."""
CHILD = Path(__file__).with_name("ahead_of_time")
_PROFILED = Path(__file__).with_name("profiled.py")
_DUMP_TO = re.compile(r"--xla_dump_to=(?!DIR( |$))\S*")
_DUMP = "--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text --xla_dump_hlo_as_proto"
_BRINGS = {"cpu": "jax and jaxlib", "gpu": "the CUDA plugin of JAX", "tpu": "libtpu"}


def flags_for(dump: Path, more: str) -> str:
    """XLA_FLAGS for dumps into `dump`, after the user's; `CaptureError` where `more` names another folder."""
    if _DUMP_TO.search(more):
        raise CaptureError("--flags cannot set --xla_dump_to: the dumps go to the folder that -o names")
    if any(c.isspace() for c in str(dump)):
        raise CaptureError(f"XLA_FLAGS cannot contain a directory with spaces: {printable(dump)}")
    # XLA takes the last of several: a --xla_dump_to of the user's would leave nothing here.
    parts = [os.environ.get("XLA_FLAGS", ""), more, _DUMP.format(folder=dump)]
    return " ".join(p for p in parts if p)


def environment_for(target: str | None, flags: str) -> dict[str, str]:
    """The environment of a process that compiles for `target` (None: for existing devices)."""
    own = [f for f in flags.split() if f.startswith("--xla_tpu_")]  # libtpu's, not jaxlib's
    environment = dict(os.environ, XLA_FLAGS=" ".join(f for f in flags.split() if f not in own))
    if own:
        variable = "LIBTPU_INIT_ARGS"
        environment[variable] = " ".join([os.environ.get(variable, ""), *own]).strip()
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # what comes from a cache leaves no dump
    if target is not None:
        environment |= {
            "JAX_PLATFORMS": "cpu",  # the devices compiled for are not there
            "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
            "TPU_SKIP_MDS_QUERY": "1",
            "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # no TPU is used, so nothing has to be locked
        }
    return environment


# A device as the text of the `GpuTargetConfigProto` for XLA's ahead-of-time compilation. The cost models'
# numbers come from the device's file. XLA reads little of the rest (limits on threads in a dimension,
# versions of libraries) before code is generated; there every CUDA device is described alike.

_ACCELERATED = (9, 10)
"""Major compute capabilities with architecture-specific features in XLA's name (`sm_90a`)."""
_TABLES = packaged(__file__, "target_config")
FLAGS_OF_RELEASES: dict[str, list[dict[str, str]]] = _TABLES["flags"]
"""XLA_FLAGS that releases from `since` on, before `until`, need to compile for an absent device."""
_Value = str | int | float | Json


def target_config_of(device: str) -> tuple[DeviceDescription, str]:
    """The device of that name or file, and its target configuration. A text proto is passed on unchanged.
    Raises `HlofuseError` for an unknown device, or one without CUDA."""
    description = load_device(device)
    if description.platform != "CUDA":
        raise HlofuseError(
            f"device {device} is for {description.platform}, but hlofuse capture compiles for CUDA; dump the"
            " program where it runs and give hlofuse that directory"
        )
    path = Path(device)
    if path.is_file() and path.suffix != ".toml":
        return description, path.read_text(encoding="utf-8")
    return description, target_config_text(description)


def target_config_text(device: DeviceDescription) -> str:
    """The text of a GpuTargetConfigProto for a CUDA device, a field a line, with those of every release."""
    toolkit = device.toolkit_version if any(device.toolkit_version) else (12, 8, 0)
    major, minor = device.compute_capability
    capability: dict[str, _Value] = {"major": major, "minor": minor}
    if major in _ACCELERATED:
        capability["feature_extension"] = "ACCELERATED_FEATURES"
    given = [(n, getattr(device, n)) for n in _TABLES["from_device"]]
    own = dict(filter(itemgetter(1), given))
    info: list[tuple[str, _Value]] = [*(_TABLES["gpu_device_info"] | own).items()]
    info += [
        ("name", quote(device.name)),
        ("compile_time_toolkit_version", quote(".".join(map(str, toolkit)))),
        ("cuda_compute_capability", capability),
    ]
    lines = ["gpu_device_info {", *(f"  {line}" for field in info for line in _field(*field))]
    rates = [
        f"rate_infos {{ key: {ELEMENT_TYPES.index(name)} value {{ clock_rate_ghz: {clock}"
        f" units_per_core: {units} ops_per_clock: {operations} }} }}"
        for name, clock, units, operations in device.matrix_units
    ]
    if rates:
        lines += ["  matrix_unit_description {", *(f"    {r}" for r in rates), "  }"]
    lines += ["}", *_field("platform_name", quote("CUDA"))]
    lines += _field("device_description_str", quote(device.name))
    for name, version in _TABLES["libraries"].items():
        lines += _field(name, version)
    return "\n".join(lines) + "\n"


def _field(name: str, value: _Value) -> list[str]:
    if isinstance(value, dict):
        return [f"{name} {{", *(f"  {line}" for field in value.items() for line in _field(*field)), "}"]
    return [f"{name}: {value}"]


def doubt_about(version: str | None) -> str | None:
    """The note for a capture by an unverified jaxlib; None for a named release."""
    if version is None:
        return "the jaxlib release that compiled this is unknown; give --xla to choose the release to replay"
    if version in NAMES:
        return None
    return (
        f"jaxlib {version} is not one of the verified releases ({', '.join(NAMES)}); hlofuse verify shows"
        " where its XLA differs from the nearest of them"
    )


def compile_request(
    request: Json,
    destination: Destination,
    *,
    python: str | None,
    flags: str,
) -> Json:
    """The child's answer after compiling the programs in `request`. Where XLA aborts, that program gets an
    error and another child continues with the rest. `names` are those of all programs. Raises `CaptureError`
    where nothing can be compiled: no jax or plugin (the message names the extra), or its own fault."""
    python = default_python(python)
    found: Json = {"versions": {}, "unknown_fields": [], "compiled": [], "errors": {}}
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "answer.json")
        request_ = {**request, **fields(destination, "target topology=place mesh"), "answer": str(answer)}
        request_["flags_of_releases"] = FLAGS_OF_RELEASES.get(destination.target, [])
        if destination.device is not None:
            config = Path(scratch, "target_config.txtpb")
            config.write_text(target_config_of(destination.device)[1], encoding="utf-8")
            request_["target_config"] = str(config)
        environment = environment_for(destination.target, flags) | {"PYTHONWARNINGS": "ignore"}
        file = Path(scratch, "request.json")
        while True:
            request_["done"] = [*found["compiled"], *found["errors"]]
            file.write_text(json.dumps(request_), encoding="utf-8")
            run = partial(subprocess.run, [python, str(CHILD), str(file)], env=environment, text=True)
            try:
                done = run(capture_output=True, errors="replace")
            except OSError as error:
                raise CaptureError(f"cannot run {printable(python)}: {error.strerror or error}") from None
            try:
                output: Json = json.loads(answer.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise CaptureError(_aborted(done)) from None
            answer.unlink()
            if "problem" in output:
                message = _failure_text(output["problem"], destination, python)
                if "devices_needed" in output:
                    raise TooFewDevices(message, output["devices_needed"])
                raise CaptureError(message)
            compiled, errors = found["compiled"] + output["compiled"], found["errors"] | output["errors"]
            found |= output | {"compiled": compiled, "errors": errors}
            if "devices_needed" in output and not found["compiled"] and len(found["names"]) == 1:
                raise TooFewDevices(next(iter(found["errors"].values())), output["devices_needed"])
            at = output.get("started")
            if done.returncode == 0 or at is None or at in request_["done"]:
                return found
            if at not in found["compiled"] and at not in found["errors"]:
                found["errors"][at] = _aborted(done)


def _failure_text(problem: dict[str, str], destination: Destination, python: str) -> str:
    message = printable(problem["message"])
    if problem["kind"] != "missing":
        return message
    brings = _BRINGS["cpu" if message.startswith("jax ") else destination.target]
    extra = "capture" if destination.target == "cpu" else f"capture-{destination.target}"
    install = f'pip install ".[{extra}]" from a checkout of hlofuse'
    needs = f"needs {brings} in {printable(python)}; {install}, or give --python"
    return f"capture for {destination.text} {needs}\nReported: {message}"


def _aborted(done: subprocess.CompletedProcess[str]) -> str:
    last = [line for line in done.stderr.splitlines() if line.strip()][-3:]
    target_name = "".join(f"; {line.strip()[:300]}" for line in last)
    status = done.returncode
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"the compiling process {how} without a result{target_name}"


_ENDINGS = {
    None: "hlo",
    PROTO: "pb",
    MLIR: "mlir",
    BYTECODE: "mlirbc",
}


def function_in(program: str) -> tuple[str, str] | None:
    """The file or module, and the function, of `script.py:function`; None for a file."""
    where, _, name = program.rpartition(":")
    is_function = where and name.replace(".", "").isidentifier() and not Path(program).exists()
    return (where, name) if is_function else None


def capture_function(
    where: str,
    name: str,
    destination: Destination,
    out: Path,
    *,
    arguments: Sequence[Json] = (),
    arguments_from: str | None = None,
    only: Sequence[str] = (),
    python: str | None = None,
    flags: str = "",
) -> Capture:
    """Compile a function of a script or module, or each program of a mapping, ahead of time.

    where: a `.py` file or the name of a module. name: the function, or a mapping from names to (function,
    arguments), of which `only` selects some. arguments: as from parse_arguments; arguments_from: a function
    in the same file that makes them (only their shapes are used). Raises `CaptureError` for missing packages
    or faults; a compiler error of one program of many is in the result."""
    if where.endswith(".py") and not Path(where).is_file():
        raise CaptureError(f"{printable(where)} does not exist")
    check_axes(arguments, destination.mesh)
    request = {
        "where": where,
        "name": name,
        "arguments": list(arguments),
        "arguments_from": arguments_from,
        "only": list(only),
    }
    return _capture(request, destination, out, python, flags)


def capture_modules(
    modules: Sequence[tuple[str, Path]],
    destination: Destination,
    out: Path,
    *,
    python: str | None = None,
    flags: str = "",
) -> Capture:
    """Compile StableHLO (text or bytecode), HLO text or HLO protos, identified by their contents."""
    with tempfile.TemporaryDirectory() as folder:
        listed = []
        for number, (name, path) in enumerate(modules):
            data = read_bytes(path)
            form = foreign_form(data)
            if form is None:
                text = decode(data, input_name(path))
                header = text[: text.find("\n", text.find("HloModule"))]
                devices = re.search(r"\bnum_partitions=(\d+)", header)  # StableHLO will not have it
                if devices is not None and int(devices[1]) > prod(size for _, size in destination.mesh):
                    how = f"over {devices[1]} devices; give --mesh {devices[1]}"
                    raise CaptureError(f"the module is partitioned {how}")
                data = text.encode()
            elif form == PROTO:
                data = module_proto(data)
            elif form == MLIR:
                data = as_jaxlib_reads(data.decode()).encode()
            file = Path(folder, f"{number}.{_ENDINGS[form]}")
            file.write_bytes(data)
            listed.append({"name": name, "path": str(file)})
        return _capture({"modules": listed}, destination, out, python, flags)


def capture_command(
    command: Sequence[str],
    out: Path,
    *,
    target: str | None,
    flags: str,
    python: str,
) -> Capture:
    """Run a program and store every module that JAX compiles in it; a script by `python`, with a profile. It
    runs on the existing devices; with `target` cpu, on the CPU. Raises `CaptureError` where it compiled
    nothing; a failing program is captured up to the failure, with a warning."""
    name = printable(command[0])
    if python and not Path(command[0]).is_file():
        raise CaptureError(f"{name}: no such script")
    with _new_folder(out) as (dump, new):
        all_flags = flags_for(dump, flags)
        environment = environment_for(None, all_flags)
        if target is not None:
            environment["JAX_PLATFORMS"] = {"gpu": "cuda"}.get(target, target)
        if python:
            command = [python, str(_PROFILED), str(new / PROFILE), *command]
        try:
            status = subprocess.run(list(command), env=environment).returncode
        except OSError as error:
            raise CaptureError(f"cannot run {printable(command[0])}: {error.strerror or error}") from None
        target_name = target_of_files(Companions(dump))
        captured = Capture(
            new, target or (target_name.name if target_name is not None else "cpu"), flags=all_flags
        )
        captured.status = status
        if python and not is_profile(str(new / PROFILE)):
            captured.warnings.append("no profile was written: the script was killed, or ended by os._exit")
        if status:
            captured.warnings.append(
                f"the program exited with status {status}; modules compiled before that were captured"
            )
        captured.versions = versions_of(command[0])
        collect(dump, captured)
        _finish(captured, dump, out)
    if not captured.modules:
        raise CaptureError(f"{name} compiled no jitted function{_reasons(captured)}")
    return captured


def versions_of(program: str) -> dict[str, str]:
    """The versions of JAX, and of libtpu where it is there, for an interpreter; empty for other programs."""
    if not Path(program).name.startswith("python"):
        return {}
    script = (
        "import importlib.metadata as m; names = {d.name for d in m.distributions()};"
        " print(*(f'{n}={m.version(n)}' for n in ('jax', 'jaxlib', 'libtpu') if n in names))"
    )
    done = subprocess.run([program, "-c", script], capture_output=True, text=True, errors="replace")
    return dict(part.split("=", 1) for part in done.stdout.split())


def _capture(
    request: Json,
    destination: Destination,
    out: Path,
    python: str | None,
    flags: str,
) -> Capture:
    """The capture; on as many devices as a program needs that fails with one, if no mesh was requested."""
    try:
        return _capture_on(request, destination, out, python, flags)
    except TooFewDevices as error:
        refusal = error
    counts = list(_COUNTS) if refusal.needed == 0 else [refusal.needed] * (refusal.needed > 1)
    others = set()
    while counts:
        count = counts.pop(0)
        larger = replace(destination, mesh=((None, count),))
        tried = {**request, "takes_all": count != refusal.needed}
        try:
            captured = _capture_on(tried, larger, out, python, flags)
        except TooFewDevices as error:
            refusal.needed = error.needed
            counts.insert(0, error.needed)
            continue
        except CaptureError as error:
            others.add(str(error))
            continue
        captured.warnings.append(
            f"the program needs several devices and was compiled for {count}; --mesh N sets their number"
        )
        return captured
    hint = "JAX has one device here: give the number that the program runs on, as in --mesh 8"
    if others and all(str(refusal) in text for text in others):
        raise refusal  # with each number of devices
    raise CaptureError(f"{refusal}\n{hint}")


def _capture_on(
    request: Json,
    destination: Destination,
    out: Path,
    python: str | None,
    flags: str,
) -> Capture:
    with _new_folder(out) as (dump, new):
        if destination.target == "cpu" and destination.mesh:
            count = prod(size for _, size in destination.mesh)
            flags = f"--xla_force_host_platform_device_count={count} {flags}".strip()
        own = flags_for(dump, flags.strip())
        answer = compile_request({**request, "dump": str(dump)}, destination, python=python, flags=own)
        all_flags = f"{answer.get('flags_of_release', '')} {own}"
        given = {key: answer[key] for key in ("unknown_fields", "versions", "errors")}
        captured = Capture(new, destination.target, flags=all_flags.strip(), **given)
        collect(dump, captured)
        if destination.device is not None:
            for module in captured.modules:
                config = module.folder / "gpu_target_config.pbtxt"
                if not config.exists():
                    config.write_text(target_config_of(destination.device)[1], encoding="utf-8")
        if destination.target == "gpu" and _loses_host_memory(request.get("where", ""), captured):
            captured.warnings.append(_NO_HOST)
        _finish(captured, dump, out, destination)
    return captured


_NO_HOST = (
    "all arrays are in the GPU's memory: JAX drops memory_kind='pinned_host' where the GPU is not there, "
    "but keeps jax.device_put(x, jax.memory.Space.Host)"
)


def _loses_host_memory(script: str, captured: Capture) -> bool:
    """True if the script gives shardings a kind of memory, and no module places an array there."""
    path = Path(script)
    if path.suffix != ".py" or not {"memory_kind", "pinned_host"} <= _names_in(path):
        return False
    placed = (m.folder / "before_optimizations.hlo" for m in captured.modules)
    return not any("annotate_device_placement" in _names_in(p) for p in placed)


def _names_in(path: Path) -> set[str]:
    return set(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))


@contextmanager
def _new_folder(out: Path) -> Iterator[tuple[Path, Path]]:
    """Folders for the dump and for the result, which becomes `out` only on success."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        manifest = out / MANIFEST
        if not manifest.is_file() or '"hlofuse.capture/' not in manifest.read_text():
            raise CaptureError(f"{printable(out)} exists and has other files; give a new directory with -o")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.mkdtemp(prefix=".capture-", dir=out.parent)
    except OSError as error:
        raise CaptureError(f"cannot write {printable(out)}: {error.strerror or error}") from None
    try:
        new = Path(scratch, "new")
        new.mkdir()
        # XLA_FLAGS are separated by spaces; a folder within `out`'s may need more room than the system's has.
        elsewhere = any(c.isspace() for c in str(new.resolve()))
        with tempfile.TemporaryDirectory(dir=None if elsewhere else scratch) as dump:
            yield Path(dump).resolve(), new
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _finish(
    captured: Capture,
    dump: Path,
    out: Path,
    destination: Destination | None = None,
) -> None:
    """Write the manifest and put the folder in its place, unless it is empty."""
    captured.flags = captured.flags.replace(str(dump), "DIR")
    of_target = FLAGS_OF_RELEASES.get(captured.target, [])
    given = [f for f in of_target if f["flag"] in captured.flags.split()]
    advice = next((f["advice"] for f in given if "advice" in f), None)
    if advice is not None and captured.errors.keys() & captured.left_out.keys():
        captured.warnings.append(advice)
    if not captured.modules:
        if destination is not None:
            raise CaptureError(f"nothing was compiled for {destination.text}{_reasons(captured)}")
        return
    if other := _DUMP_TO.search(captured.flags):
        place = printable(f"{other[0]}, where nothing was written: it is all in {out}")
        captured.warnings.append(f"XLA_FLAGS has {place}")
    doubt = doubt_about(captured.versions.get("jaxlib"))
    if doubt is not None:
        captured.warnings.append(doubt)
    manifest = captured.manifest()
    if destination is not None:
        tpu = tpu_of(destination.topology or "")
        manifest |= {"device": destination.device or tpu or None, "topology": destination.place}
        manifest["mesh"] = destination.mesh
    _write_json(captured.folder / MANIFEST, manifest)
    for module in captured.modules:
        _write_json(module.folder / STAMP, captured.stamp(manifest.get("device"), module.name))
    if out.exists():
        shutil.rmtree(out)
    os.replace(captured.folder, out)
    os.chmod(out, 0o755)
    captured.folder = out
    captured.modules = [replace(m, folder=out / m.name) for m in captured.modules]


def _write_json(path: Path, data: Json) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _reasons(captured: Capture) -> str:
    found = [*captured.errors.items(), *captured.left_out.items()][:5]
    lines = [f"{printable(name)}: {printable(why)}" for name, why in found]
    return "".join(f"\n  {line}" for line in [*lines, *captured.warnings])


def module_names(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    return [(folder_name(p.name.split(".")[0]), p) for p in paths]
