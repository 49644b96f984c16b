"""Target devices of a compilation, which need not exist."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import inspect
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from .programs import MISSING, PROGRAM, Problem


@dataclass
class Devices:
    target: str
    all: list[Any]  # The devices; empty for the host CPU
    mesh: Any = None  # Their jax.sharding.Mesh, if requested
    is_named: bool = False  # True if the request named the axes of the mesh, which the function may then use
    unknown_fields: list[str] = field(default_factory=list)
    """Fields of the GPU's description omitted because this XLA does not know them."""
    are_counted: bool = False  # True once the program has asked JAX for its devices, without a requested mesh


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def add_flags(flags: list[dict[str, str]]) -> str:
    """Prepend the flags of this release to XLA_FLAGS: the last of several counts."""
    release = _numbers(version_of("jaxlib"))
    needed = [f["flag"] for f in flags if _numbers(f["since"]) <= release < _numbers(f["until"])]
    os.environ["XLA_FLAGS"] = " ".join([*needed, os.environ.get("XLA_FLAGS", "")]).strip()
    return " ".join(needed)


def find_nvcc() -> None:
    """Set the place of nvcc's package: JAX 0.4.35 reads its `__file__`, which newer packages lack."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ImportError:
        return
    if spec is not None and spec.origin is None and spec.submodule_search_locations:
        os.environ.setdefault("CUDA_ROOT", next(iter(spec.submodule_search_locations)))


def devices_of(request: dict[str, Any]) -> Devices:
    """The devices of the request's `target`, `target_config`, `topology` and `mesh`."""
    target, axes = request["target"], request.get("mesh") or []
    count = prod(size for _, size in axes)
    try:
        devices = _devices(target, request, count)
    except (NotImplementedError, ImportError) as error:
        raise Problem(MISSING, f"{target} plugin ({error})") from None
    except Problem:
        raise
    except Exception as error:
        text = str(error)
        kind = MISSING if "not installed" in text or "not implemented" in text else PROGRAM
        raise Problem(kind, f"{target} plugin ({text[:400]})") from None
    if axes:
        if len(devices.all) < count:
            raise Problem(
                PROGRAM, (f"--mesh needs {count} devices, but there are {len(devices.all)} {target} devices")
            )
        _set_mesh(devices, axes, count)
    else:
        _note_counting(devices)
    return devices


def _devices(target: str, request: dict[str, Any], count: int) -> Devices:
    if target == "cpu":
        import jax

        return Devices(target, jax.devices("cpu") if request.get("mesh") else [])
    if target == "tpu":
        from jax.experimental import topologies

        found = topologies.get_topology_desc(platform="tpu", topology_name=request["topology"])
        return Devices(target, list(found.devices))
    config = Path(request["target_config"]).read_text(encoding="utf-8")
    found, unknown = gpu_topology(config, request["topology"] or f"1x1x{count}")
    return Devices(target, list(found.devices), unknown_fields=unknown)


_UNKNOWN_FIELD = re.compile(r"GpuTargetConfigProto: (\d+):\d+: .*has no field named \"(\w+)\"")
_REFUSED = re.compile(r"(?:Error parsing|GpuTargetConfigProto: \d).*")


def gpu_topology(config: str, topology: str) -> tuple[Any, list[str]]:
    """The topology of such GPUs, and the omitted fields, which this XLA reports one by one as unknown."""
    lines = config.splitlines()
    unknown: list[str] = []
    while True:
        found, why = _try_gpu_topology("\n".join(lines) + "\n", topology)
        if found is not None:
            return found, unknown
        refused = _UNKNOWN_FIELD.search(why)
        at = int(refused[1]) - 1 if refused is not None else -1
        if refused is None or not lines[at].lstrip().startswith(refused[2]):
            text = _REFUSED.search(why)
            note = (text[0] if text is not None else why)[:400]
            raise Problem(PROGRAM, f"the XLA of jaxlib {version_of('jaxlib')} rejects the device: {note}")
        del lines[at : _end_of_field(lines, at)]
        unknown.append(refused[2])


def _end_of_field(lines: list[str], at: int) -> int:
    depth = 0
    while True:
        depth += lines[at].count("{") - lines[at].count("}")
        at += 1
        if depth <= 0 or at == len(lines):
            return at


def _try_gpu_topology(config: str, topology: str) -> tuple[Any, str]:
    """The topology, or None and XLA's message; raises `NotImplementedError` without a plugin."""
    from jax.experimental import topologies

    with tempfile.TemporaryFile() as note, _redirect_stderr(note):
        try:
            return topologies.get_topology_desc(platform="cuda", target_config=config, topology=topology), ""
        except NotImplementedError:
            raise
        except Exception as error:
            note.seek(0)
            return None, f"{note.read().decode(errors='replace')}\n{error}".strip()


@contextmanager
def _redirect_stderr(file: Any) -> Iterator[None]:
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _set_mesh(devices: Devices, axes: list[tuple[str | None, int]], count: int) -> None:
    """Make a mesh of the first devices, which the program sees as JAX's devices."""
    import jax
    import numpy
    from jax.experimental import mesh_utils

    devices.all = devices.all[:count]
    devices.is_named = all(name is not None for name, _ in axes)
    grid = numpy.array(devices.all).reshape([size for _, size in axes])
    names = tuple(name or "devices" for name, _ in axes)
    devices.mesh = jax.sharding.Mesh(grid, names)
    found = list(devices.all)
    jax.devices = jax.local_devices = lambda *_, **__: list(found)
    jax.device_count = jax.local_device_count = lambda *_, **__: len(found)
    jax.make_mesh = _with_devices(jax.make_mesh, found)
    mesh_utils.create_device_mesh = _with_devices(mesh_utils.create_device_mesh, found)


def alone(devices: Devices) -> Devices:
    """The first of them as a mesh of one device, which tells a traced function what it runs on."""
    import jax
    import numpy

    mesh = jax.sharding.Mesh(numpy.array(devices.all[:1]), ("devices",))
    return Devices(devices.target, devices.all[:1], mesh, is_named=True)


def _note_counting(devices: Devices) -> None:
    """Set `are_counted` when the program asks for JAX's devices: the one that it finds may be too few."""
    jax = sys.modules.get("jax")

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_note(*arguments: Any, **named: Any) -> Any:
            devices.are_counted = True
            return function(*arguments, **named)

        return with_note

    for name in ("devices", "local_devices", "device_count", "local_device_count", "make_mesh"):
        if hasattr(jax, name):
            setattr(jax, name, noting(getattr(jax, name)))


def devices_needed(arguments: Any) -> int:
    """The number of devices of the largest mesh on which an argument is placed; 0 for none."""
    if not arguments:
        return 0
    import jax

    shardings = (getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(arguments))
    sizes = [s.mesh.size for s in shardings if isinstance(s, jax.sharding.NamedSharding)]
    return max(sizes, default=0)


def _with_devices(function: Callable[..., Any], devices: list[Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def with_devices(*arguments: Any, **named: Any) -> Any:
        call = signature.bind(*arguments, **named)
        if call.arguments.get("devices") is None:
            call.arguments["devices"] = devices
        return function(*call.args, **call.kwargs)

    return with_devices
